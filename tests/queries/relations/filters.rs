//! The filters that an entity declares: for its queries, for relations to it, and lifted.

use anabranch::prelude::*;

use crate::world::{Document, DocumentLabel, Folder, Label, shop};

#[tokio::test]
async fn they_apply_to_queries_counts_and_keys() {
    let db = shop().await;
    let ids = |query: Query<Document>| query.order_by(Document::ID.asc()).select(Document::ID);
    gives!(db, ids(Document::query()), [1, 4, 5, 6]);
    gives!(
        db,
        ids(Document::query().without_filter("live")),
        [1, 2, 4, 5, 6]
    );
    gives!(
        db,
        ids(Document::query().without_filter("tenant")),
        [1, 3, 4, 5, 6]
    );
    let neither = Document::query()
        .without_filter("live")
        .without_filter("tenant");
    gives!(db, ids(neither), [1, 2, 3, 4, 5, 6]);
    gives!(
        db,
        ids(Document::query().without_filters()),
        [1, 2, 3, 4, 5, 6]
    );
    gives!(
        db,
        ids(Document::query().without_filters().without_filter("live")),
        [1, 2, 3, 4, 5, 6]
    );
    assert_eq!(Document::query().count(&db).await.unwrap(), 4);
    let deleted = Document::query().filter(Document::DELETED.eq(true));
    assert!(!deleted.clone().exists(&db).await.unwrap());
    assert!(deleted.without_filters().exists(&db).await.unwrap());
    assert_eq!(Document::find(&db, 2).await.unwrap(), None);
    assert!(Document::find(&db, 1).await.unwrap().is_some());
    let mut ctx = db.context();
    assert!(ctx.find::<Document>(2).await.unwrap().is_none());
    assert!(ctx.find::<Document>(1).await.unwrap().is_some());
    let updated = Document::query().update().set(Document::FOLDER_ID, 4);
    assert_eq!(updated.execute(&db).await.unwrap(), 4);
}

#[tokio::test]
async fn they_apply_to_relations_but_not_to_the_one_that_has_to_be_there() {
    let db = shop().await;
    let folders = || Folder::query().order_by(Folder::ID.asc());
    let ids = Folder::DOCUMENTS
        .order_by([Document::ID.asc()])
        .select(Document::ID);
    gives!(
        db,
        folders().select((Folder::ID, ids.clone())),
        [(1, vec![1, 6]), (4, vec![])]
    );
    let with_deleted = ids.clone().without_filter("live");
    gives!(db, folders().select(with_deleted), [vec![1, 2, 6], vec![]]);
    let everything = folders()
        .without_filters()
        .select(ids.clone().without_filters());
    gives!(db, everything, [vec![1, 2, 3, 6], vec![4], vec![5], vec![]]);
    gives!(db, folders().select(Folder::DOCUMENTS.count()), [2, 0]);
    let all = Folder::DOCUMENTS.without_filter("live").count();
    gives!(db, folders().select(all), [3, 0]);
    let deleted = Document::DELETED.eq(true);
    let any = folders()
        .filter(Folder::DOCUMENTS.any(deleted.clone()))
        .select(Folder::ID);
    gives!(db, any, [0_i64; 0]);
    let any = Folder::DOCUMENTS.without_filters().any(deleted);
    gives!(db, folders().filter(any).select(Folder::ID), [1]);

    let documents = || Document::query().order_by(Document::ID.asc());
    let of_each = (
        Document::ID,
        Document::FOLDER.select(Folder::ID),
        Document::COPY_OF.select(Folder::ID),
    );
    gives!(
        db,
        documents().select(of_each),
        [(1, 1, Some(1)), (4, 2, None), (5, 3, None), (6, 1, None)]
    );
    let copies = Document::COPY_OF.without_filters().select(Folder::ID);
    gives!(
        db,
        documents().select(copies),
        [Some(1), Some(2), Some(3), None]
    );
    gives!(
        db,
        documents().select(Document::COPY_OF.get(Folder::TENANT)),
        [Some(1), None, None, None]
    );
    gives!(
        db,
        documents().select(Document::FOLDER.get(Folder::TENANT)),
        [1, 1, 2, 1]
    );
    gives!(
        db,
        documents()
            .filter(Document::COPY_OF.exists())
            .select(Document::ID),
        [1]
    );
    let deleted = documents().filter(Document::FOLDER.any(Folder::DELETED.eq(true)));
    gives!(db, deleted.select(Document::ID), [4]);
}

/// The filter of the entity between applied when labels were tracked, and not when they were read or counted.
#[tokio::test]
async fn those_of_the_entity_between_apply_too() {
    let db = shop().await;
    let documents = || Document::query().order_by(Document::ID.asc());
    let labels = Document::LABELS.order_by([Label::ID.asc()]);
    let ids = labels.clone().select(Label::ID);
    gives!(
        db,
        documents().select(ids.clone()),
        [vec![1], vec![], vec![], vec![3]]
    );
    gives!(
        db,
        documents().select(ids.clone().limit(5)),
        [vec![1], vec![], vec![], vec![3]]
    );
    gives!(
        db,
        documents().select(Document::LABELS.count()),
        [1, 0, 0, 1]
    );
    let sums = Document::LABELS.of_all(Label::ID.sum());
    gives!(db, documents().select(sums), [Some(1), None, None, Some(3)]);
    let odd = documents().filter(Document::LABELS.any(Label::TEXT.eq("odd")));
    gives!(db, odd.select(Document::ID), [6]);
    let none = documents().filter(!Document::LABELS.exists());
    gives!(db, none.select(Document::ID), [4, 5]);
    // Each is lifted by its name, or all together.
    let detached = ids.clone().without_filter("attached");
    gives!(
        db,
        documents().select(detached),
        [vec![1, 3], vec![], vec![], vec![3]]
    );
    let deleted = ids.clone().without_filter("live");
    gives!(
        db,
        documents().select(deleted),
        [vec![1, 2], vec![], vec![], vec![3]]
    );
    let all = ids.without_filters();
    gives!(
        db,
        documents().select(all),
        [vec![1, 2, 3], vec![], vec![], vec![3]]
    );
    let all = Document::LABELS
        .without_filter("live")
        .without_filter("attached")
        .count();
    gives!(db, documents().select(all), [3, 0, 0, 1]);
    let attached = Document::ATTACHED.select(DocumentLabel::LABEL_ID);
    gives!(
        db,
        documents().select(attached.order_by([DocumentLabel::LABEL_ID.asc()])),
        [vec![1, 2], vec![], vec![], vec![3]]
    );

    let count = async |labels: Fetch<Document, Vec<Label>, DocumentLabel>| {
        let mut ctx = db.context();
        let found = documents().with(labels).load(&mut ctx).await.unwrap();
        found
            .iter()
            .map(|(_, labels)| labels.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(count(labels.clone()).await, [1, 0, 0, 1]);
    assert_eq!(count(labels.clone().limit(9)).await, [1, 0, 0, 1]);
    assert_eq!(
        count(labels.clone().without_filter("attached")).await,
        [2, 0, 0, 1]
    );
    assert_eq!(
        count(labels.clone().without_filter("live")).await,
        [2, 0, 0, 1]
    );
    assert_eq!(count(labels.without_filters()).await, [3, 0, 0, 1]);
}

#[tokio::test]
async fn what_is_loaded_for_one_entity_is_what_its_relation_reads() {
    let db = shop().await;
    let mut ctx = db.context();
    let document = ctx.find::<Document>(4).await.unwrap().unwrap();
    // Its folder is deleted, and has to be there.
    let folder = ctx
        .load_related(document, Document::FOLDER)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ctx[folder].id, 2);
    let mut ctx = db.context();
    let document = ctx.find::<Document>(4).await.unwrap().unwrap();
    let copied = ctx.load_related(document, Document::COPY_OF).await.unwrap();
    assert!(copied.is_none());
    let mut ctx = db.context();
    let document = ctx.find::<Document>(1).await.unwrap().unwrap();
    let labels = ctx.load_related(document, Document::LABELS).await.unwrap();
    let ids: Vec<_> = labels.into_iter().map(|label| ctx[label].id).collect();
    assert_eq!(ids, [1]);
}

#[tokio::test]
async fn a_name_that_is_none_is_an_error() {
    let db = shop().await;
    let message = "no filter `nosuch`";
    fails!(
        db,
        Document::query().without_filter("nosuch"),
        Model,
        message
    );
    let read = Folder::query().with(Folder::DOCUMENTS.without_filter("nosuch"));
    fails!(db, read, Model, message);
    let count = Folder::query().select(Folder::DOCUMENTS.without_filter("nosuch").count());
    fails!(db, count, Model, message);
    let any = Folder::query().filter(Folder::DOCUMENTS.without_filter("nosuch").exists());
    fails!(db, any, Model, message);
    let through = Document::query().with(Document::LABELS.without_filter("nosuch"));
    fails!(db, through, Model, message);
    let required = Document::query().with(Document::FOLDER.without_filter("nosuch"));
    fails!(db, required, Model, message);
}

/// A filter that asks about its own entity.
#[derive(Debug, Clone, Entity)]
#[entity(filter(staffed = Post::staffed))]
struct Post {
    #[entity(id)]
    id: i64,
    #[entity(references = Post, relation = above)]
    above_id: Option<i64>,
}

impl Post {
    fn staffed() -> Condition<Self> {
        Self::ABOVE.none(Self::ID.eq(7))
    }
}

/// It called itself until the stack was full.
#[tokio::test]
async fn a_filter_that_asks_for_itself_is_an_error() {
    let db = shop().await;
    db.create_tables::<Post>().await.unwrap();
    fails!(db, Post::query(), Model, "without_filter");
    gives!(
        db,
        Post::query().without_filters().select(Post::ID),
        [0_i64; 0]
    );
}
