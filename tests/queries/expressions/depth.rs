//! Queries that are deep, wide or long.

use anabranch::{
    prelude::*,
    query::{Over, Query, Whole, case, count, exists, fragment, raw, row_number},
};

use crate::expressions::{
    places::everywhere,
    thing::{Thing, things},
};

const DEEP: usize = 10_000;

fn expressions() -> Vec<Expr<Thing, i64>> {
    let start = || Thing::ID.expr();
    let deep =
        |step: fn(Expr<Thing, i64>) -> Expr<Thing, i64>| (0..DEEP).fold(start(), |it, _| step(it));
    vec![
        deep(|it| it + 1),
        deep(|it| 1_i64.pair(it)),
        deep(|it| -it),
        deep(|it| it.abs()),
        deep(|it| it.nullable().coalesce(0)),
        deep(|it| it.as_integer()),
        deep(|it| fragment("{}", (it,))),
        deep(|it| case().when(it.gt(0), 1).otherwise(2)),
        deep(|it| case().when(Thing::ID.gt(0), it).otherwise(2)),
        deep(|it| {
            it.gt(1)
                .not()
                .as_bool()
                .is_true()
                .and(Thing::ID.gt(1))
                .as_bool()
                .is_true()
                .number()
        }),
        deep(|it| row_number().over(Over::all().order_by([it.asc()]))),
        deep(|it| row_number().over(Over::all().partition_by(it))),
        deep(|it| count().only(it.gt(1))),
        deep(|it| Thing::query().select(it).as_value().coalesce(0)),
        deep(|it| {
            Thing::query()
                .filter(it.gt(0))
                .select(Thing::ID)
                .as_value()
                .coalesce(0)
        }),
        deep(|it| {
            Thing::query()
                .order_by(it.asc())
                .select(Thing::ID)
                .as_value()
                .coalesce(0)
        }),
        deep(|it| {
            Thing::query()
                .group_by(it)
                .select(count())
                .as_value()
                .coalesce(0)
        }),
        deep(|it| {
            Query::<Thing>::from_sql("SELECT * FROM thing WHERE id = {}", (it,))
                .select(Thing::ID)
                .as_value()
                .coalesce(0)
        }),
    ]
}

/// What makes a step of the same shape from the other side.
trait Steps {
    fn pair(self, it: Expr<Thing, i64>) -> Expr<Thing, i64>;
}

impl Steps for i64 {
    fn pair(self, it: Expr<Thing, i64>) -> Expr<Thing, i64> {
        Thing::ID + it
    }
}

trait AsNumber {
    fn number(self) -> Expr<Thing, i64>;
}

impl AsNumber for Condition<Thing> {
    fn number(self) -> Expr<Thing, i64> {
        case().when(self, 1).otherwise(0)
    }
}

fn conditions() -> Vec<Condition<Thing>> {
    let deep = |step: fn(Condition<Thing>) -> Condition<Thing>| {
        (0..DEEP).fold(Thing::ID.gt(0), |it, _| step(it))
    };
    vec![
        deep(|it| !it.and(Thing::ID.lt(100))),
        deep(|it| !(Thing::ID.lt(100).or(it))),
        deep(|it| it.and(Thing::ID.lt(100)).or(Thing::ID.eq(3))),
        deep(|it| it.as_bool().is_true()),
        deep(|it| exists(Thing::query().filter(it))),
        deep(|it| Thing::ID.is_in_query(Thing::query().filter(it).select(Thing::ID))),
        deep(|it| Thing::ID.not_in_query(Thing::query().having(it).select(Thing::ID))),
    ]
}

#[tokio::test]
async fn what_is_too_deep_is_an_error_and_not_the_end_of_the_process() {
    let db = things().await;
    for (number, expression) in expressions().into_iter().enumerate() {
        let told = everywhere(&db, &Thing::query().select(expression)).await;
        assert_eq!(told, Err(ErrorKind::TooBig), "expression {number}");
    }
    for (number, condition) in conditions().into_iter().enumerate() {
        let told = everywhere(&db, &Thing::query().filter(condition)).await;
        assert_eq!(told, Err(ErrorKind::TooBig), "condition {number}");
    }
}

#[tokio::test]
async fn what_is_long_and_not_deep_runs() {
    let db = things().await;
    let any = (0..2_000).fold(Thing::ID.eq(0), |it, number| {
        it.or(Thing::ID.eq(number).and(Thing::FLAG.eq(true)))
    });
    assert_eq!(Thing::query().filter(any).count(&db).await.unwrap(), 6);
    let nots = (0..DEEP).fold(Thing::ID.gt(3), |it, _| !it);
    assert_eq!(Thing::query().filter(nots).count(&db).await.unwrap(), 9);
    let deep = (0..200).fold(Thing::ID.expr(), |it, _| it + 1);
    assert_eq!(
        Thing::query()
            .filter(deep.le(203))
            .count(&db)
            .await
            .unwrap(),
        3
    );
    let filters = (0..500).fold(Thing::query(), |query, number| {
        query.filter(Thing::ID.ne(number + 3))
    });
    assert_eq!(filters.count(&db).await.unwrap(), 2);
    // More arguments than SQLite takes are an error with a kind.
    let many = (0..40_000).fold(Thing::ID.eq(0), |it, number| it.or(Thing::ID.eq(number)));
    assert!(
        everywhere(&db, &Thing::query().filter(many).select(Thing::ID))
            .await
            .is_err()
    );
    let pattern = "a".repeat(60_000);
    assert!(
        everywhere(
            &db,
            &Thing::query()
                .filter(Thing::NAME.contains(pattern))
                .select(Thing::ID)
        )
        .await
        .is_err()
    );
    assert_eq!(Thing::query().count(&db).await.unwrap(), 12);
}

/// As deep as is allowed: SQLite's own answer then, which is rows or an error with a kind.
#[tokio::test]
async fn queries_inside_of_queries_end_before_the_stack_does() {
    let db = things().await;
    let mut told = Vec::new();
    for deep in [10, 60, 120, 240] {
        let nested = (0..deep).fold(Thing::ID.gt(3), |it, _| {
            Thing::ID.is_in_query(Thing::query().filter(it).select(Thing::ID))
        });
        told.push(
            everywhere(&db, &Thing::query().filter(nested).select(Thing::ID))
                .await
                .map(|rows| rows.len()),
        );
    }
    assert_eq!(told[0], Ok(9));
    assert!(
        told.iter().all(|told| matches!(told, Ok(9) | Err(_))),
        "{told:?}"
    );
    assert_eq!(
        raw::<i64>("SELECT count(*) FROM thing", ())
            .one(&db)
            .await
            .unwrap(),
        12
    );
}

#[tokio::test]
async fn selections_are_as_wide_as_one_likes() {
    let db = things().await;
    let eight = |from: i64| {
        (
            Thing::ID + from,
            Thing::ID + (from + 1),
            Thing::ID + (from + 2),
            Thing::ID + (from + 3),
            Thing::ID + (from + 4),
            Thing::ID + (from + 5),
            Thing::ID + (from + 6),
            Thing::ID + (from + 7),
        )
    };
    let wide = (
        eight(0),
        eight(8),
        eight(16),
        eight(24),
        (eight(32), (eight(40), Whole)),
        eight(48),
        eight(56),
        Thing::NAME,
    );
    let query = Thing::query().filter(Thing::ID.eq(2)).select(wide);
    let rows = everywhere(&db, &query).await.unwrap();
    let (first, _, _, _, (_, (fifth, whole)), _, last, name) = &rows[0];
    assert_eq!((first.0, fifth.7, last.7), (2, 49, 65));
    assert_eq!((whole.id, name), (2, &whole.name));
    let page = query.page(None, 3).read(&db).await.unwrap();
    assert_eq!(page.items, rows);
}
