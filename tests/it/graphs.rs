//! Graphs that come from elsewhere, and children that leave their parents.

use anabranch::{context::Graph, prelude::*};
use anabranch_tests::Mode;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders")]
struct Order {
    #[entity(id)]
    id: i64,
    item: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Line {
    #[entity(id)]
    id: i64,
    #[entity(references = Order)]
    order_id: i64,
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Remark {
    #[entity(id)]
    id: i64,
    #[entity(references = Line)]
    line_id: Option<i64>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Folder {
    #[entity(id)]
    id: i64,
    #[entity(references = Folder)]
    parent_id: Option<i64>,
}

async fn orders() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Order, Line, Remark, Folder)>()
        .await
        .unwrap();
    db
}

fn order(id: i64) -> Order {
    Order {
        id,
        item: "tea".to_owned(),
    }
}

fn line(id: i64, order_id: i64) -> Line {
    Line {
        id,
        order_id,
        amount: 1,
    }
}

fn remark(text: &str) -> Remark {
    Remark {
        id: 0,
        line_id: None,
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn a_new_graph_is_inserted_with_references_at_every_depth() {
    let db = orders().await;
    let mut ctx = db.context();
    let lines = (0..3).map(|_| {
        Graph::attach(line(0, 0)).with(Remark::LINE_ID, [remark("fragile"), remark("urgent")])
    });
    let root = ctx
        .attach_graph(Graph::attach(order(0)).with(Line::ORDER_ID, lines))
        .unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 10);
    for line in Line::query().all(&db).await.unwrap() {
        assert_eq!(line.order_id, ctx[root].id);
        let remarks = Remark::query().filter(Remark::LINE_ID.eq(line.id));
        assert_eq!(remarks.count(&db).await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_graph_of_rows_is_unchanged_but_for_what_moves_and_what_is_new() {
    let db = orders().await;
    let mut ctx = db.context();
    let saved = ctx.attach_graph(order(0)).unwrap();
    let other = ctx.add(order(0));
    for parent in [saved, saved, other] {
        ctx.add(line(0, ctx[parent].id));
    }
    ctx.save_changes().await.unwrap();

    let mut ctx = db.context();
    let lines = [line(1, 1), line(0, 0), line(3, 2)];
    let root = ctx
        .attach_graph(Graph::attach(order(1)).with(Line::ORDER_ID, lines))
        .unwrap();
    assert_eq!(ctx.entry(root).state(), EntityState::Unchanged);
    let states: Vec<_> = ctx
        .iter::<Line>()
        .map(|(handle, line)| (line.order_id, ctx.entry(handle).state()))
        .collect();
    assert_eq!(
        states,
        [
            (1, EntityState::Unchanged),
            (1, EntityState::Added),
            (1, EntityState::Modified)
        ]
    );
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated), (1, 1));
    let of_first = Line::query().filter(Line::ORDER_ID.eq(1));
    assert_eq!(of_first.count(&db).await.unwrap(), 4);

    // A row below a parent that is new.
    let mut ctx = db.context();
    ctx.attach_graph(Graph::add(order(0)).with(Line::ORDER_ID, [line(1, 1)]))
        .unwrap();
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated), (1, 1));
    assert_eq!(Line::find(&db, 1).await.unwrap().unwrap().order_id, 3);
}

#[tokio::test]
async fn a_graph_with_a_key_that_is_tracked_is_not_tracked_at_all() {
    let db = orders().await;
    let mut ctx = db.context();
    ctx.attach(line(7, 1)).unwrap();
    let twice = || [line(5, 1), line(5, 1)];
    for graph in [
        Graph::attach(order(1)).with(Line::ORDER_ID, [line(0, 0), line(7, 1)]),
        Graph::attach(order(1)).with(Line::ORDER_ID, twice()),
        Graph::attach(order(1)).with(Line::ORDER_ID, twice().map(Graph::add)),
    ] {
        let error = ctx.attach_graph(graph).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
        assert_eq!(error.table(), Some("line"));
        assert_eq!(ctx.len(), 1);
        assert!(!ctx.has_changes());
    }
    // A column that refers to another entity than the one above.
    let error = ctx
        .attach_graph(Graph::attach(order(1)).with(Remark::LINE_ID, [remark("lost")]))
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Refused, Some("line_id"))
    );
    let error = ctx
        .attach_graph(Graph::attach(order(1)).with(Line::AMOUNT, [line(0, 0)]))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(ctx.len(), 1);
    // Nothing of it is in the way afterwards.
    ctx.attach_graph(Graph::attach(order(1)).with(Line::ORDER_ID, [line(5, 1)]))
        .unwrap();
    assert_eq!(ctx.len(), 3);
}

#[tokio::test]
async fn a_tree_of_folders_may_be_deep() {
    let db = orders().await;
    let mut ctx = db.context();
    let folder = || {
        Graph::attach(Folder {
            id: 0,
            parent_id: None,
        })
    };
    let mut tree = folder();
    for _ in 1..2_000 {
        tree = folder().with(Folder::PARENT_ID, [tree]);
    }
    let root = ctx.attach_graph(tree).unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 2_000);
    assert_eq!(ctx[root].parent_id, None);
    let orphans = Folder::query().filter(Folder::PARENT_ID.is_null());
    assert_eq!(orphans.count(&db).await.unwrap(), 1);
}

#[tokio::test]
async fn a_severed_child_refers_to_nothing_or_is_removed() {
    let db = orders().await;
    let mut ctx = db.context();
    let root = ctx
        .attach_graph(Graph::attach(order(0)).with(
            Line::ORDER_ID,
            [Graph::attach(line(0, 0)).with(Remark::LINE_ID, [remark("kept")])],
        ))
        .unwrap();
    ctx.save_changes().await.unwrap();
    let (line, _) = ctx.iter::<Line>().next().unwrap();
    let (kept, _) = ctx.iter::<Remark>().next().unwrap();
    assert!(ctx.sever(kept, Remark::LINE_ID).unwrap());
    assert!(ctx.sever(line, Line::ORDER_ID).unwrap());
    assert_eq!(ctx.entry(line).state(), EntityState::Deleted);
    let error = ctx.sever(root, Order::ITEM).unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Refused, Some("item"))
    );
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.updated, saved.deleted), (1, 1));
    assert_eq!(ctx[kept].line_id, None);
    assert!(!ctx.sever(line, Line::ORDER_ID).unwrap(), "stale by now");
    assert_eq!(Line::query().count(&db).await.unwrap(), 0);
}

/// Each level dropped the one below it: a deep tree ran out of stack.
#[tokio::test]
async fn a_deep_graph_is_attached_and_dropped_level_by_level() {
    fn nested(depth: i64, id: i64) -> Graph<Folder> {
        let folder = |id| Folder {
            id,
            parent_id: None,
        };
        (1..depth).fold(Graph::attach(folder(id)), |below, _| {
            Graph::attach(folder(0)).with(Folder::PARENT_ID, [below])
        })
    }
    let db = orders().await;
    let mut ctx = db.context();
    drop(nested(50_000, 0));
    ctx.attach_graph(nested(20_000, 0)).unwrap();
    assert_eq!(ctx.len(), 20_000);
    ctx.clear();
    ctx.attach(Folder {
        id: 1,
        parent_id: None,
    })
    .unwrap();
    let error = ctx.attach_graph(nested(20_000, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
    assert_eq!(ctx.len(), 1);
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(without_rowid)]
struct Part {
    #[entity(id, references = Order, on_delete = Cascade)]
    order_id: i64,
    #[entity(id)]
    number: i64,
}

/// A key of several columns is never unset, so new lines of an order were taken for rows, and not saved.
#[tokio::test]
async fn children_whose_key_holds_that_of_their_parent_are_new_with_it() {
    let db = orders().await;
    db.create_tables::<(Order, Part)>().await.unwrap();
    let part = |order_id, number| Part { order_id, number };
    let mut ctx = db.context();
    let parts = [part(0, 1), part(0, 2)];
    ctx.attach_graph(Graph::attach(order(0)).with(Part::ORDER_ID, parts))
        .unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 3);

    let mut ctx = db.context();
    let graph = Graph::update(order(1)).with(Part::ORDER_ID, [part(0, 3), part(1, 2)]);
    ctx.attach_graph(graph).unwrap();
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated), (1, 1));
    assert_eq!(Part::query().count(&db).await.unwrap(), 3);
}
