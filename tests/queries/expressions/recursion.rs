//! All that relations of entities to themselves lead to.

use anabranch::{
    prelude::*,
    query::{Query, count, exists, outer},
};
use anabranch_tests::execute;

use crate::expressions::places::{by_hand, everywhere, plan, same};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(children: Folder, by = parent_id), filter(live = Folder::live))]
struct Folder {
    #[entity(id)]
    id: i64,
    #[entity(references = Folder, index)]
    parent_id: Option<i64>,
    size: i64,
    deleted: bool,
}

impl Folder {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }
}

/// A key of two columns, and a way through another entity that has a filter.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(parts: Part, through = Within, by = whole_code, to = part_code))]
#[entity(has_many(wholes: Part, through = Within, by = part_code, to = whole_code))]
struct Part {
    #[entity(id)]
    maker: i64,
    #[entity(id, collate = "NOCASE")]
    code: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(foreign_key(columns(whole_maker, whole_code), references = Part, relation = whole))]
#[entity(foreign_key(columns(part_maker, part_code), references = Part, relation = part))]
#[entity(filter(valid = Within::valid))]
struct Within {
    #[entity(id)]
    id: i64,
    whole_maker: i64,
    #[entity(collate = "NOCASE")]
    whole_code: String,
    part_maker: i64,
    #[entity(collate = "NOCASE")]
    part_code: String,
    valid: bool,
}

impl Within {
    fn valid() -> Condition<Self> {
        Self::VALID.eq(true)
    }
}

/// 1 to 2 and 3, 2 to 4 and 5, 5 to 6 and 7; 3 is deleted and leads to 8; 9 and 10 lead to each other.
async fn tree() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Folder, Part, Within)>().await.unwrap();
    execute(
        &db,
        "INSERT INTO folder VALUES (1, NULL, 1, 0), (2, 1, 2, 0), (3, 1, 4, 1), (4, 2, 8, 0), (5, 2, 16, 0),
            (6, 5, 32, 0), (7, 5, 64, 0), (8, 3, 128, 0), (9, 9, 256, 0), (10, 9, 512, 0)",
    )
    .await;
    execute(&db, "UPDATE folder SET parent_id = 10 WHERE id = 9").await;
    execute(
        &db,
        "INSERT INTO part VALUES (1, 'a'), (1, 'b'), (2, 'a'), (2, 'c'), (2, 'd')",
    )
    .await;
    execute(
        &db,
        "INSERT INTO within VALUES (1, 1, 'A', 2, 'a', 1), (2, 2, 'a', 2, 'C', 1), (3, 2, 'c', 1, 'a', 1),
            (4, 2, 'c', 2, 'd', 0), (5, 1, 'b', 2, 'd', 1)",
    )
    .await;
    db
}

fn ids(query: Query<Folder>) -> impl crate::expressions::places::Reading<Row = (i64,)> {
    query.order_by(Folder::ID.asc()).select((Folder::ID,))
}

const BELOW: &str = "WITH RECURSIVE below (id) AS (SELECT id FROM folder WHERE id = 2
    UNION SELECT f.id FROM folder f JOIN below ON f.parent_id = below.id WHERE NOT f.deleted)";

fn from(id: i64) -> Query<Folder> {
    Folder::query().filter(Folder::ID.eq(id))
}

#[tokio::test]
async fn all_below_and_all_above_are_found_once() {
    let db = tree().await;
    same(
        &db,
        ids(from(2).recursive(Folder::CHILDREN)),
        &format!("{BELOW} SELECT id FROM below ORDER BY id"),
    )
    .await;
    same(
        &db,
        ids(from(6).recursive(Folder::PARENT)),
        "VALUES (1), (2), (5), (6)",
    )
    .await;
    // Filters hold at each step unless they are lifted; circles end.
    same(
        &db,
        ids(from(1).recursive(Folder::CHILDREN)),
        "VALUES (1), (2), (4), (5), (6), (7)",
    )
    .await;
    same(
        &db,
        ids(from(1).recursive(Folder::CHILDREN.without_filters())),
        "VALUES (1), (2), (3), (4), (5), (6), (7), (8)",
    )
    .await;
    same(
        &db,
        ids(from(3).without_filter("live").recursive(Folder::CHILDREN)),
        "VALUES (3), (8)",
    )
    .await;
    same(
        &db,
        ids(from(9).recursive(Folder::CHILDREN)),
        "VALUES (9), (10)",
    )
    .await;
    assert_eq!(
        everywhere(&db, &ids(from(3).recursive(Folder::CHILDREN))).await,
        Ok(Vec::new())
    );
    let narrowed = Folder::CHILDREN.filter(Folder::SIZE.ne(16));
    same(&db, ids(from(2).recursive(narrowed)), "VALUES (2), (4)").await;
    // A step that asks about the row that it comes from.
    let smaller = Folder::CHILDREN.filter(Folder::SIZE.lt(outer(Folder::SIZE) * 5));
    same(&db, ids(from(2).recursive(smaller)), "VALUES (2), (4)").await;
    for (steps, all) in [(0, 1), (1, 3), (2, 5), (9, 5)] {
        let bounded = from(2).recursive_up_to(steps, Folder::CHILDREN);
        assert_eq!(bounded.count(&db).await.unwrap(), all, "{steps}");
    }
    let circle = from(9).recursive_up_to(5, Folder::CHILDREN);
    assert_eq!(circle.count(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn what_follows_is_of_all_that_were_reached() {
    let db = tree().await;
    // One to begin with, and two of those that were reached.
    let query = Folder::query()
        .filter(Folder::ID.ge(2))
        .order_by(Folder::ID.asc())
        .limit(1)
        .recursive(Folder::CHILDREN)
        .filter(Folder::SIZE.gt(2))
        .order_by(Folder::SIZE.desc())
        .limit(2)
        .select((Folder::ID, Folder::PARENT.get(Folder::SIZE)));
    same(&db, query, "VALUES (7, 16), (6, 16)").await;
    let below = || from(2).recursive(Folder::CHILDREN);
    assert_eq!(below().sum(Folder::SIZE, &db).await.unwrap(), Some(122));
    // Of each, how much there is below it.
    let weight = from(0)
        .filter(Condition::all_of([]))
        .recursive(Folder::CHILDREN);
    assert_eq!(weight.count(&db).await.unwrap(), 0);
    let weight = Folder::query()
        .filter(Folder::ID.eq(outer(Folder::ID)))
        .recursive(Folder::CHILDREN)
        .select(Folder::SIZE.sum())
        .as_value::<Folder>();
    same(
        &db,
        Folder::query()
            .filter(Folder::ID.le(7))
            .order_by(Folder::ID.asc())
            .select((Folder::ID, weight)),
        "VALUES (1, 123), (2, 122), (4, 8), (5, 112), (6, 32), (7, 64)",
    )
    .await;
    let inside = Folder::query().filter(Folder::ID.is_in_query(below().select(Folder::PARENT_ID)));
    same(&db, ids(inside), "VALUES (1), (2), (5)").await;
    let union = ids_of(below()).except(ids_of(from(5).recursive(Folder::CHILDREN)));
    assert_eq!(union.order_by_position(0).all(&db).await.unwrap(), [2, 4]);
    let twice = below().filter(Folder::SIZE.gt(10)).limit(1).as_table();
    assert_eq!(twice.recursive(Folder::PARENT).count(&db).await.unwrap(), 3);
    let mut ctx = db.context();
    let tracked = below().with(Folder::CHILDREN).load(&mut ctx).await.unwrap();
    assert_eq!(tracked.len(), 5);
    let none = Folder::query().filter(exists(below().filter(Folder::SIZE.gt(1_000))));
    assert_eq!(none.count(&db).await.unwrap(), 0);
    // Set-based changes.
    let changed = below().update().set(Folder::SIZE, Folder::SIZE + 1);
    assert_eq!(changed.execute(&db).await.unwrap(), 5);
    assert_eq!(below().delete().execute(&db).await.unwrap(), 5);
    assert_eq!(
        by_hand::<(i64,)>(&db, "SELECT count(*) FROM folder"),
        [(5,)]
    );
}

#[tokio::test]
async fn each_step_is_by_an_index() {
    let db = tree().await;
    let below = plan(&db, &from(2).recursive(Folder::CHILDREN));
    let above = plan(&db, &from(2).recursive(Folder::PARENT));
    assert!(below.contains("USING INDEX folder_parent_id"), "{below}");
    for plan in [below, above] {
        // One is what was reached and not gone on from.
        assert_eq!(plan.matches("SCAN t").count(), 1, "{plan}");
        assert!(!plan.contains("SCAN folder"), "{plan}");
    }
}

fn ids_of(
    query: Query<Folder>,
) -> Query<Folder, impl anabranch::query::Selection<Folder, Output = i64>> {
    query.select(Folder::ID)
}

#[tokio::test]
async fn a_step_may_go_through_another_entity_by_keys_of_several_columns() {
    let db = tree().await;
    let all = |maker: i64, code: &str| {
        Part::query()
            .filter(Part::MAKER.eq(maker).and(Part::CODE.eq(code)))
            .recursive(Part::PARTS)
            .order_by([Part::MAKER.asc(), Part::CODE.asc()])
            .select((Part::MAKER, Part::CODE))
    };
    // 1a leads to 2a, to 2c, and back to 1a; by what is not valid nothing is reached.
    same(&db, all(1, "a"), "VALUES (1, 'a'), (2, 'a'), (2, 'c')").await;
    same(&db, all(1, "b"), "VALUES (1, 'b'), (2, 'd')").await;
    let any = Part::query()
        .filter(Part::MAKER.eq(1).and(Part::CODE.eq("a")))
        .recursive(Part::PARTS.without_filters());
    assert_eq!(any.count(&db).await.unwrap(), 4);
    let back = Part::query()
        .filter(Part::CODE.eq("d"))
        .recursive_up_to(1, Part::WHOLES)
        .select(count());
    assert_eq!(back.one(&db).await.unwrap(), 2);
    let limited = Part::query().recursive(Part::PARTS.limit(1));
    assert_eq!(
        limited.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
}
