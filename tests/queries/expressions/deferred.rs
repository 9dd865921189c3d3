//! Deferred columns in queries: left out of whole rows wherever these are read, and a column like any other elsewhere.

use anabranch::{
    prelude::*,
    query::{Whole, With, case, count, upsert},
};
use anabranch_tests::statement_log::Logged;
use futures_util::TryStreamExt as _;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(papers: Paper), has_one(cover: Cover))]
struct Shelf {
    #[entity(id)]
    id: i64,
    notes: Deferred<Option<String>>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(words: Word, through = PaperWord))]
struct Paper {
    #[entity(id)]
    id: i64,
    body: Deferred<String>,
    #[entity(references = Shelf, index)]
    shelf_id: i64,
    size: Deferred<i64>,
    title: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Cover {
    #[entity(id)]
    id: i64,
    #[entity(references = Shelf, unique)]
    shelf_id: i64,
    picture: Deferred<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(papers: Paper, through = PaperWord))]
struct Word {
    #[entity(id)]
    id: i64,
    text: Deferred<String>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct PaperWord {
    #[entity(id, references = Paper)]
    paper_id: i64,
    #[entity(id, references = Word, index)]
    word_id: i64,
    remark: Deferred<Option<String>>,
}

fn paper(id: i64, title: &str, body: &str) -> Paper {
    Paper {
        id,
        body: Deferred::new(body.to_owned()),
        shelf_id: 1,
        size: i64::try_from(body.len()).unwrap().into(),
        title: title.to_owned(),
    }
}

async fn archive() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Shelf, Paper, Cover, Word, PaperWord)>()
        .await
        .unwrap();
    let mut ctx = db.context();
    for id in [1, 2] {
        ctx.add(Shelf {
            id,
            notes: Some(format!("notes {id}")).into(),
        });
    }
    ctx.add(paper(1, "tea", "how to make tea"));
    ctx.add(paper(2, "jam", "jam"));
    ctx.add(Cover {
        id: 1,
        shelf_id: 1,
        picture: vec![7].into(),
    });
    ctx.add(Word {
        id: 1,
        text: Deferred::new("sweet".to_owned()),
    });
    ctx.add(PaperWord {
        paper_id: 2,
        word_id: 1,
        remark: None.into(),
    });
    ctx.save_changes().await.unwrap();
    db
}

fn papers() -> Query<Paper> {
    Paper::query().order_by(Paper::ID.asc())
}

/// What was run named none of these columns.
fn unread(logged: &Logged) {
    for statement in logged.take() {
        for column in ["notes", "body", "size", "picture", "text", "remark"] {
            assert!(!statement.contains(&format!("\"{column}\"")), "{statement}");
        }
    }
}

#[tokio::test]
async fn no_whole_row_is_read_with_it_unless_it_is_asked_for() {
    let db = archive().await;
    let logged = Logged::new(&db);
    let at = &logged;
    let is_bare = |paper: &Paper| !paper.body.is_loaded() && !paper.size.is_loaded();
    let read = papers().all(at).await.unwrap();
    assert_eq!((&read[0].title[..], read[0].shelf_id), ("tea", 1));
    assert!(read.iter().all(is_bare));
    assert!(
        papers()
            .stream(at)
            .try_all(|paper| std::future::ready(is_bare(&paper)))
            .await
            .unwrap()
    );
    assert!(is_bare(&Paper::find(at, 1).await.unwrap().unwrap()));
    assert!(is_bare(
        &papers().offset(1).first(at).await.unwrap().unwrap()
    ));
    let pairs = papers()
        .select((Paper::TITLE, Whole, Paper::ID, Whole))
        .all(at)
        .await
        .unwrap();
    assert_eq!(
        (&pairs[1].0[..], pairs[1].2, is_bare(&pairs[1].3)),
        ("jam", 2, true)
    );
    let page = papers().page(None, 1).read(at).await.unwrap();
    assert!(is_bare(&page.items[0]) && page.next.is_some());
    let (tea, jam) = (
        Paper::query().filter(Paper::ID.eq(1)),
        Paper::query().filter(Paper::ID.eq(2)),
    );
    let both = tea.union(jam).order_by_position_desc(0);
    assert_eq!(both.clone().count(at).await.unwrap(), 2);
    let both = both.all(at).await.unwrap();
    assert_eq!((&both[0].title[..], is_bare(&both[0])), ("jam", true));
    let sql = Paper::from_sql("SELECT * FROM paper WHERE id = {}", (2,))
        .all(at)
        .await
        .unwrap();
    assert!(is_bare(&sql[0]));

    // By each kind of relation.
    let (tea, shelf) = papers().with(Paper::SHELF).all(at).await.unwrap().remove(0);
    assert!(is_bare(&tea) && !shelf.notes.is_loaded());
    let shelves = Shelf::query()
        .order_by(Shelf::ID.asc())
        .with(Shelf::PAPERS.order_by(Paper::ID.asc()))
        .with(Shelf::COVER);
    let shelves = shelves.all(at).await.unwrap();
    assert_eq!((shelves[0].1.len(), &shelves[0].1[1].title[..]), (2, "jam"));
    assert!(shelves[0].1.iter().all(is_bare));
    let cover = shelves[0].2.as_ref().unwrap();
    assert_eq!(
        (cover.id, cover.shelf_id, cover.picture.get()),
        (1, 1, None)
    );
    assert!(shelves[1].2.is_none());
    let worded = papers().with(Paper::WORDS).all(at).await.unwrap();
    assert_eq!((worded[0].1.len(), worded[1].1[0].text.get()), (0, None));
    unread(&logged);
}

#[tokio::test]
async fn what_is_asked_for_is_read_and_nothing_else() {
    let db = archive().await;
    let body = |paper: &Paper| (paper.body.get().cloned(), paper.size.get().copied());
    let tea = (Some("how to make tea".to_owned()), None);
    let jam = (Some("jam".to_owned()), Some(3));
    let read = || papers().including(Paper::BODY);
    assert_eq!(body(&read().all(&db).await.unwrap()[0]), tea);
    let both = || read().including(Paper::SIZE).including(Paper::TITLE);
    assert_eq!(body(&both().all(&db).await.unwrap()[1]), jam);
    assert_eq!(
        both().filter(Paper::ID.eq(2)).one(&db).await.unwrap(),
        paper(2, "jam", "jam")
    );
    let sizes = papers().including(Paper::SIZE).all(&db).await.unwrap();
    assert_eq!(body(&sizes[1]), (None, Some(3)));
    assert_eq!(
        body(&read().select((Paper::ID, Whole)).all(&db).await.unwrap()[0].1),
        tea
    );
    let page = both().page(None, 1).read(&db).await.unwrap();
    let page = both().page(page.next, 1).read(&db).await.unwrap();
    assert_eq!(body(&page.items[0]), jam);
    let sql = Paper::from_sql("SELECT * FROM paper WHERE id = {}", (1,)).including(Paper::BODY);
    assert_eq!(body(&sql.one(&db).await.unwrap()), tea);

    // Each relation says for itself.
    let with = papers()
        .including(Paper::BODY)
        .with(Paper::SHELF)
        .all(&db)
        .await
        .unwrap();
    assert_eq!(
        (body(&with[0].0), with[0].1.notes.get()),
        (tea.clone(), None)
    );
    let with = papers()
        .with(Paper::SHELF.including(Shelf::NOTES))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(
        (body(&with[0].0), with[0].1.notes.get()),
        ((None, None), Some(&Some("notes 1".to_owned())))
    );
    let down = Shelf::PAPERS
        .order_by(Paper::ID.desc())
        .including(Paper::SIZE)
        .including(Paper::BODY);
    let down = down.limit(1).then(Paper::WORDS.including(Word::TEXT));
    let read = Shelf::query()
        .filter(Shelf::ID.eq(1))
        .with(down)
        .with(Shelf::COVER.including(Cover::PICTURE));
    let (shelf, papers, cover) = read.one(&db).await.unwrap();
    assert!(!shelf.notes.is_loaded());
    assert_eq!((papers.len(), body(&papers[0].0)), (1, jam));
    assert_eq!(papers[0].1[0].text.get().map(String::as_str), Some("sweet"));
    assert_eq!(cover.unwrap().picture.get(), Some(&vec![7]));
}

#[tokio::test]
async fn what_a_context_tracks_is_read_so_too() {
    let db = archive().await;
    let mut ctx = db.context();
    let tracked = papers().with(Paper::WORDS).load(&mut ctx).await.unwrap();
    let (jam, word) = (tracked[1].0, tracked[1].1[0]);
    assert!(!ctx[jam].body.is_loaded() && !ctx[word].text.is_loaded());
    let link = ctx.find::<PaperWord>((2, 1)).await.unwrap().unwrap();
    assert!(!ctx[link].remark.is_loaded());
    let words = Paper::WORDS.including(Word::TEXT);
    let again = papers()
        .including(Paper::SIZE)
        .with(words)
        .load(&mut ctx)
        .await
        .unwrap();
    assert_eq!(again[1], (jam, vec![word]));
    assert_eq!((ctx[jam].size.get(), ctx[jam].body.get()), (Some(&3), None));
    assert!(ctx[word].text.is_loaded() && !ctx.has_changes());
    let page = papers()
        .including(Paper::BODY)
        .page(None, 9)
        .load(&mut ctx)
        .await
        .unwrap();
    assert_eq!(page.items[1], jam);
    assert!(ctx[jam].body.is_loaded() && !ctx.has_changes());
}

#[tokio::test]
async fn in_an_expression_it_is_a_column_like_any_other() {
    #[derive(Debug, PartialEq, Projection)]
    #[projection(entity = Paper)]
    struct View {
        title: String,
        body: String,
    }

    let db = archive().await;
    let found = Paper::query().filter(Paper::BODY.contains("make").and(Paper::SIZE.gt(3)));
    assert_eq!(found.one(&db).await.unwrap().id, 1);
    let sorted = Paper::query()
        .order_by([Paper::SIZE.asc(), Paper::BODY.desc()])
        .all(&db)
        .await
        .unwrap();
    assert_eq!((sorted[0].id, sorted[0].size.get()), (2, None));
    let bodies: Vec<String> = papers().select(Paper::BODY).all(&db).await.unwrap();
    assert_eq!(bodies, ["how to make tea", "jam"]);
    let made = papers()
        .select((Paper::BODY.char_length(), Paper::SIZE + 1))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(made[1], (3, 4));
    let view = papers()
        .offset(1)
        .limit(1)
        .project::<View>()
        .one(&db)
        .await
        .unwrap();
    assert_eq!(
        view,
        View {
            title: "jam".into(),
            body: "jam".into()
        }
    );
    assert_eq!(
        Paper::query().sum(Paper::SIZE, &db).await.unwrap(),
        Some(18)
    );
    let small = case()
        .when(Paper::SIZE.lt(9), "small".to_owned())
        .otherwise("large".to_owned());
    let sizes = Paper::query()
        .group_by(small.clone())
        .select((small, count()))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(sizes, [("large".to_owned(), 1), ("small".to_owned(), 1)]);
    let shelves = Shelf::query().filter(Shelf::PAPERS.any(Paper::BODY.eq("jam")));
    assert_eq!(shelves.count(&db).await.unwrap(), 1);
    assert_eq!(
        Shelf::query()
            .filter(Shelf::NOTES.is_null())
            .count(&db)
            .await
            .unwrap(),
        0
    );
    // Of equal rows one is left, whatever of them is read; the key tells them apart.
    assert_eq!(Paper::query().distinct().all(&db).await.unwrap().len(), 2);
    let bodies = papers()
        .order_by(Paper::BODY.asc())
        .page(None, 1)
        .read(&db)
        .await
        .unwrap();
    assert!(!bodies.items[0].body.is_loaded());
}

#[tokio::test]
async fn writes_set_it_and_return_it_as_queries_read_it() {
    let db = archive().await;
    let jam = || Paper::query().filter(Paper::ID.eq(2));
    let update = jam()
        .update()
        .set(Paper::BODY, "plum jam".to_owned())
        .set(Paper::SIZE, Paper::SIZE + 5);
    let changed = update
        .returning((Whole, Paper::BODY))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(
        (
            &changed[0].0.title[..],
            changed[0].0.body.get(),
            &changed[0].1[..]
        ),
        ("jam", None, "plum jam")
    );
    let same = upsert(paper(2, "marmalade", "orange"))
        .execute(&db)
        .await
        .unwrap()
        .into_inner();
    assert_eq!((&same.title[..], same.body.get()), ("marmalade", None));
    let read = jam()
        .including(Paper::BODY)
        .including(Paper::SIZE)
        .one(&db)
        .await
        .unwrap();
    assert_eq!(read, paper(2, "marmalade", "orange"));
    PaperWord::query().delete().execute(&db).await.unwrap();
    let gone = jam().delete().returning(Whole).all(&db).await.unwrap();
    assert_eq!((gone[0].id, gone[0].body.get()), (2, None));
}

#[tokio::test]
async fn parts_of_a_compound_query_read_alike_and_are_sorted_by_what_is_read() {
    let db = archive().await;
    let part = |id: i64| Paper::query().filter(Paper::ID.eq(id));
    let with = |id: i64| part(id).including(Paper::BODY);
    let read = with(1)
        .union(with(2))
        .order_by_position_desc(1)
        .all(&db)
        .await
        .unwrap();
    assert_eq!(read[0].body.get().map(String::as_str), Some("jam"));
    assert_eq!(with(1).intersect(with(1)).all(&db).await.unwrap().len(), 1);
    for (mixed, word) in [
        (with(1).union(part(2)), "including"),
        (part(1).union_all(with(2)), "including"),
        (part(1).union(part(2)).order_by_position(1), "sorted"),
        (part(1).union(part(2)).order_by_position(5), "sorted"),
    ] {
        let error = mixed.all(&db).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains(word), "{error}");
    }
    let pairs = |query: Query<Paper>| query.with(Paper::SHELF);
    let mixed = pairs(part(1)).union(part(2).with(Paper::SHELF.including(Shelf::NOTES)));
    let error = mixed.all(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

/// A query with an `including` is of the same type, so that one function makes either.
#[tokio::test]
async fn asking_for_it_does_not_change_the_type_of_a_query() {
    fn asked<S: With<Relation<Paper, Shelf>>>(
        query: Query<Paper, S>,
        is_whole: bool,
    ) -> Query<Paper, S> {
        if is_whole {
            query.including(Paper::BODY)
        } else {
            query
        }
    }
    let db = archive().await;
    for is_whole in [true, false] {
        let read = asked(papers(), is_whole).all(&db).await.unwrap();
        assert!(read.iter().all(|paper| paper.body.is_loaded() == is_whole));
    }
}
