//! Making what a relation leads to these and no others.

use anabranch::prelude::*;
use anabranch_tests::Mode;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders", has_many(lines: Line), has_many(notes: Note), has_many(tags: Tag, through = OrderTag))]
#[entity(has_many(places: Place), has_many(bare: Tag, through = Weighed))]
struct Order {
    #[entity(id)]
    id: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(live = Line::live))]
struct Line {
    #[entity(id)]
    id: i64,
    #[entity(references = Order, index)]
    order_id: i64,
    item: String,
    deleted: bool,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Note {
    #[entity(id)]
    id: i64,
    #[entity(references = Order, index)]
    order_id: Option<i64>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Place {
    #[entity(id, references = Order)]
    order_id: i64,
    #[entity(id)]
    position: i64,
    item: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Tag {
    #[entity(id)]
    code: String,
    label: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct OrderTag {
    #[entity(id, references = Order)]
    order_id: i64,
    #[entity(id, references = Tag, index)]
    tag_code: String,
}

/// Needs more than its keys.
#[derive(Debug, Clone, PartialEq, Entity)]
struct Weighed {
    #[entity(id, references = Order)]
    order_id: i64,
    #[entity(id, references = Tag, index)]
    tag_code: String,
    weight: i64,
}

impl Line {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }
}

fn line(id: i64, item: &str) -> Line {
    Line {
        id,
        order_id: 0,
        item: item.to_owned(),
        deleted: false,
        version: 0,
    }
}

fn note(id: i64, text: &str) -> Note {
    Note {
        id,
        order_id: None,
        text: text.to_owned(),
    }
}

fn tag(code: &str) -> Tag {
    Tag {
        code: code.to_owned(),
        label: code.to_uppercase(),
    }
}

/// Orders 1 and 2; the first has the lines 1, 2 and, hidden, 3, the second has 4; notes and tags likewise.
async fn orders() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Order, Line, Note, Place, Tag, OrderTag, Weighed)>()
        .await
        .unwrap();
    let mut ctx = db.context();
    for (order, items) in [(1, &["tea", "jam", "pan"][..]), (2, &["cup"])] {
        let order = ctx.add(Order { id: order });
        for (position, item) in (1..).zip(items) {
            let order_id = ctx[order].id;
            let deleted = *item == "pan";
            ctx.add(Line {
                order_id,
                deleted,
                ..line(0, item)
            });
            ctx.add(Note {
                order_id: Some(order_id),
                ..note(0, item)
            });
            let item = (*item).to_owned();
            ctx.add(Place {
                order_id,
                position,
                item,
            });
        }
    }
    let first = ctx.iter::<Order>().next().unwrap().0;
    for code in ["a", "b", "c"] {
        let tag = ctx.add(tag(code));
        if code != "c" {
            ctx.link(first, Order::TAGS, tag).unwrap();
        }
    }
    ctx.save_changes().await.unwrap();
    db
}

async fn lines(db: &Database) -> Vec<(i64, i64, String, i64)> {
    let query = Line::query().without_filters().order_by(Line::ID.asc());
    let columns = (Line::ID, Line::ORDER_ID, Line::ITEM, Line::VERSION);
    query.select(columns).all(db).await.unwrap()
}

fn row(id: i64, order: i64, item: &str, version: i64) -> (i64, i64, String, i64) {
    (id, order, item.to_owned(), version)
}

async fn replaces_lines(ctx: &mut Context<'_>) -> Result<(), Error> {
    let order = ctx.find::<Order>(1).await?.unwrap();
    let given = [line(0, "new"), line(2, "jam"), line(4, "cup!")];
    let handles = ctx.replace_related(order, Order::LINES, given).await?;
    let keys: Vec<_> = handles[1..].iter().map(|line| ctx[*line].id).collect();
    assert_eq!(keys, [2, 4]);
    let mut found = ctx.related(order, Order::LINES)?;
    found.retain(|line| !ctx[*line].deleted);
    assert_eq!(found.len(), 3);
    // What is as it was is not written.
    assert_eq!(ctx.entry(handles[1]).state(), EntityState::Unchanged);
    assert_eq!(
        ctx.entry(handles[2]).modified_columns(),
        ["order_id", "item"]
    );
    let saved = ctx.save_changes().await?;
    assert_eq!((saved.inserted, saved.updated, saved.deleted), (1, 1, 1));
    Ok(())
}

#[tokio::test]
async fn children_are_changed_added_moved_and_removed_in_every_place() {
    // The one that a filter hides stays.
    let expected = [
        row(2, 1, "jam", 1),
        row(3, 1, "pan", 1),
        row(4, 1, "cup!", 2),
        row(5, 1, "new", 1),
    ];
    let db = orders().await;
    replaces_lines(&mut db.context()).await.unwrap();
    assert_eq!(lines(&db).await, expected);
    let db = orders().await;
    db.write(async |tx| replaces_lines(&mut tx.context()).await)
        .await
        .unwrap();
    assert_eq!(lines(&db).await, expected);
    let db = orders().await;
    db.concurrent(async |s| replaces_lines(&mut s.context()).await)
        .await
        .unwrap();
    assert_eq!(lines(&db).await, expected);
}

#[tokio::test]
async fn a_child_that_a_filter_hides_is_not_severed_when_it_is_tracked() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    let all = Line::query()
        .without_filters()
        .load(&mut ctx)
        .await
        .unwrap();
    assert_eq!(all.len(), 4);
    ctx.replace_related(order, Order::LINES, []).await.unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().deleted, 2);
    assert_eq!(lines(&db).await, [row(3, 1, "pan", 1), row(4, 2, "cup", 1)]);
}

#[tokio::test]
async fn missing_children_whose_reference_may_be_null_are_set_free() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    let given = [note(3, "pan"), note(0, "more")];
    ctx.replace_related(order, Order::NOTES, given)
        .await
        .unwrap();
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated, saved.deleted), (1, 2, 0));
    let free = Note::query()
        .filter(Note::ORDER_ID.is_null())
        .select(Note::ID);
    assert_eq!(free.all(&db).await.unwrap(), [1, 2]);
    assert_eq!(
        Note::query()
            .filter(Note::ORDER_ID.eq(1))
            .count(&db)
            .await
            .unwrap(),
        2
    );
}

#[tokio::test]
async fn what_is_not_saved_yet_counts() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    let added = ctx.add(Line {
        order_id: 1,
        ..line(0, "added")
    });
    let moved = ctx.find::<Line>(4).await.unwrap().unwrap();
    ctx[moved].order_id = 1;
    let removed = ctx.find::<Line>(1).await.unwrap().unwrap();
    ctx.remove(removed);
    let kept = ctx.add(Line {
        order_id: 1,
        ..line(0, "kept")
    });
    let again = Line {
        item: "kept!".to_owned(),
        ..ctx[kept].clone()
    };
    let handles = ctx
        .replace_related(order, Order::LINES, [again])
        .await
        .unwrap();
    assert_eq!(handles, [kept]);
    assert_eq!(ctx.entry(added).state(), EntityState::Detached);
    assert_eq!(ctx.entry(moved).state(), EntityState::Deleted);
    ctx.save_changes().await.unwrap();
    assert_eq!(
        lines(&db).await,
        [row(3, 1, "pan", 1), row(5, 1, "kept!", 1)]
    );
}

#[tokio::test]
async fn children_are_given_to_a_parent_that_is_not_saved() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.add(Order { id: 0 });
    for _ in 0..2 {
        let given = [line(0, "new"), line(1, "tea")];
        ctx.replace_related(order, Order::LINES, given)
            .await
            .unwrap();
    }
    ctx.save_changes().await.unwrap();
    let order = ctx[order].id;
    let found = Line::query()
        .filter(Line::ORDER_ID.eq(order))
        .order_by(Line::ID.asc());
    assert_eq!(
        found.select(Line::ITEM).all(&db).await.unwrap(),
        ["tea", "new"]
    );
}

#[tokio::test]
async fn the_key_of_the_parent_may_be_part_of_that_of_the_child() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    let place = |position, item: &str| Place {
        order_id: 0,
        position,
        item: item.to_owned(),
    };
    let given = [place(1, "tea"), place(2, "jam!"), place(9, "new")];
    ctx.replace_related(order, Order::PLACES, given)
        .await
        .unwrap();
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated, saved.deleted), (1, 1, 1));
    let of_first = Place::query().filter(Place::ORDER_ID.eq(1));
    assert_eq!(
        of_first.select(Place::POSITION).all(&db).await.unwrap(),
        [1, 2, 9]
    );
}

async fn replaces_tags(ctx: &mut Context<'_>) -> Result<(), Error> {
    let order = ctx.find::<Order>(1).await?.unwrap();
    let named = Tag {
        label: "other".to_owned(),
        ..tag("c")
    };
    let given = [tag("a"), named, tag("d")];
    let handles = ctx.replace_related(order, Order::TAGS, given).await?;
    let mut found = ctx.related(order, Order::TAGS)?;
    found.sort_by_key(|tag| ctx[*tag].code.clone());
    assert_eq!(found, handles);
    let saved = ctx.save_changes().await?;
    // A tag, and the links to `c` and `d`; the label; the link to `b`.
    assert_eq!((saved.inserted, saved.updated, saved.deleted), (3, 1, 1));
    Ok(())
}

#[tokio::test]
async fn links_are_replaced_and_what_they_lead_to_stays() {
    let db = orders().await;
    replaces_tags(&mut db.context()).await.unwrap();
    assert_eq!(Tag::query().count(&db).await.unwrap(), 4);
    let linked = OrderTag::query()
        .order_by(OrderTag::TAG_CODE.asc())
        .select(OrderTag::TAG_CODE);
    assert_eq!(linked.clone().all(&db).await.unwrap(), ["a", "c", "d"]);
    let db = orders().await;
    db.write(async |tx| replaces_tags(&mut tx.context()).await)
        .await
        .unwrap();
    assert_eq!(linked.all(&db).await.unwrap(), ["a", "c", "d"]);
}

#[tokio::test]
async fn an_error_leaves_the_context_as_it_was() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    let stale = ctx.add(Order { id: 0 });
    ctx.remove(stale);
    let twice = [line(1, "x"), line(0, "new"), line(1, "y")];
    let error = ctx
        .replace_related(order, Order::LINES, twice)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.table()),
        (ErrorKind::AlreadyTracked, Some("line"))
    );
    let unknown = [line(1, "x"), line(99, "y")];
    let error = ctx
        .replace_related(order, Order::LINES, unknown)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.key(), [anabranch::value::Value::Integer(99)]);
    let bad = [line(1, "x"), line(0, "nul\0")];
    let error = ctx
        .replace_related(order, Order::LINES, bad)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("item"))
    );
    let error = ctx
        .replace_related(stale, Order::LINES, [line(1, "x")])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let mut other = db.context();
    let foreign = other.add(line(0, "x"));
    let error = ctx
        .replace_related(order, Order::LINES, [other[foreign].clone()])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert!(!ctx.has_changes());
}

#[tokio::test]
async fn links_that_cannot_be_made_leave_the_context_as_it_was() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    // A join entity that cannot be made, after a tag was changed and one was added.
    let tags = [
        Tag {
            label: "x".to_owned(),
            ..tag("a")
        },
        tag("z"),
    ];
    let error = ctx
        .replace_related(order, Order::BARE, tags)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Model, Some("weight"))
    );
    assert!(!ctx.has_changes());
    assert_eq!(
        ctx.iter::<Tag>().filter(|(_, tag)| tag.code == "z").count(),
        0
    );
}

#[tokio::test]
async fn an_old_version_that_is_given_is_a_conflict() {
    let db = orders().await;
    let mut ctx = db.context();
    let order = ctx.find::<Order>(1).await.unwrap().unwrap();
    let known = ctx.find::<Line>(1).await.unwrap().unwrap();
    let old = Line {
        item: "old".to_owned(),
        ..ctx[known].clone()
    };
    ctx[known].item = "newer".to_owned();
    ctx.save_changes().await.unwrap();
    ctx.replace_related(order, Order::LINES, [old, line(2, "jam")])
        .await
        .unwrap();
    assert!(ctx.save_changes().await.unwrap_err().is_conflict());
    assert_eq!(lines(&db).await[0], row(1, 1, "newer", 2));
}
