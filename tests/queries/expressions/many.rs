//! What is made of many rows: aggregates, windows, subqueries, compounds.

use anabranch::{
    prelude::*,
    query::{Over, count, dense_rank, exists, rank, row_number},
};

use crate::expressions::{
    places::{everywhere, same},
    thing::{Thing, things},
};

#[tokio::test]
async fn groups_are_those_of_sql() {
    let db = things().await;
    let groups = Thing::query()
        .group_by(Thing::MAYBE)
        .order_by([count().desc(), Thing::MAYBE.asc()])
        .select((
            Thing::MAYBE,
            count(),
            Thing::WHOLE.sum(),
            Thing::MAYBE_REAL.avg(),
            Thing::OTHER_NAME.count(),
            Thing::OTHER_NAME.count_distinct(),
            Thing::DAY.min().year(),
            Thing::WHOLE.max() + Thing::ID.min(),
        ));
    let sql = "SELECT maybe, count(*), sum(whole), avg(maybe_real), count(other_name), count(DISTINCT other_name),
        CAST(substr(min(day), 1, 4) AS INTEGER), max(whole) + min(id)
        FROM thing GROUP BY maybe ORDER BY count(*) DESC, maybe";
    same(&db, groups.clone(), sql).await;
    assert_eq!(groups.count(&db).await.unwrap(), 5);
    let having = Thing::query()
        .group_by(Thing::WHOLE + 1)
        .group_by(Thing::FLAG)
        .having(count().gt(1))
        .having(Thing::ID.sum().gt(Some(8)).or(Thing::MAYBE.max().is_null()))
        .order_by([(Thing::WHOLE + 1).asc(), Thing::FLAG.asc()])
        .select((
            Thing::WHOLE + 1,
            Thing::FLAG,
            count().only(Thing::MAYBE.gt(0)),
            Thing::ID
                .sum()
                .only(Thing::FLAG.is_true())
                .only(Thing::ID.gt(3)),
        ));
    let sql = "SELECT whole + 1, flag, count(*) FILTER (WHERE maybe > 0), sum(id) FILTER (WHERE flag AND id > 3) FROM thing
        GROUP BY whole + 1, flag HAVING count(*) > 1 AND (sum(id) > 8 OR max(maybe) IS NULL) ORDER BY 1, 2";
    same(&db, having, sql).await;
    let joined = Thing::query()
        .filter(Thing::NAME.eq("tea"))
        .select((Thing::NAME.join("', '"), Thing::OTHER_NAME.join("")));
    same(&db, joined, "SELECT group_concat(name, ''', '''), group_concat(other_name, '') FROM thing WHERE name = 'tea'").await;
}

#[tokio::test]
async fn of_no_rows_there_is_one_aggregate_and_no_group() {
    let db = things().await;
    let none = || Thing::query().filter(Thing::ID.lt(0));
    let aggregates = none().select((
        count(),
        Thing::ID.sum(),
        Thing::ID.min(),
        Thing::NAME.join(","),
    ));
    assert_eq!(
        everywhere(&db, &aggregates).await,
        Ok(vec![(0, None, None, None)])
    );
    assert_eq!(aggregates.clone().count(&db).await.unwrap(), 1);
    assert!(aggregates.exists(&db).await.unwrap());
    assert_eq!(
        Thing::query()
            .select(Thing::ID.sum())
            .count(&db)
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        Thing::query()
            .select((count(), Thing::ID.max()))
            .count(&db)
            .await
            .unwrap(),
        1
    );
    let groups = none().group_by(Thing::NAME).select(count());
    assert_eq!(everywhere(&db, &groups).await, Ok(vec![]));
    assert!(!groups.exists(&db).await.unwrap());
    assert_eq!(none().sum(Thing::ID, &db).await.unwrap(), None);
    assert_eq!(none().min(Thing::NAME, &db).await.unwrap(), None);
    assert_eq!(none().avg(Thing::ID, &db).await.unwrap(), None);
    assert_eq!(
        Thing::query().max(Thing::REAL, &db).await.unwrap(),
        Some(10.0)
    );
}

#[tokio::test]
async fn an_aggregate_is_refused_where_a_row_is_asked() {
    let db = things().await;
    let refused = [
        Thing::query().filter(count().gt(1)),
        Thing::query().filter((Thing::ID.max().coalesce(0) + 1).gt(1).not()),
        Thing::query().filter(Thing::ID.gt(1).and(Thing::ID.sum().is_null())),
        Thing::query().filter(row_number().over(Over::all()).le(3)),
        Thing::query().filter((Thing::ID.sum().over(Over::all()).coalesce(0) + 1).le(3)),
        Thing::query()
            .group_by(Thing::ID)
            .having(row_number().over(Over::all()).le(3)),
    ];
    for query in refused {
        assert_eq!(
            everywhere(&db, &query).await,
            Err(ErrorKind::Refused),
            "{query:?}"
        );
    }
    let only = Thing::query().select((Thing::ID + 1).only(Thing::FLAG.is_true()));
    assert_eq!(everywhere(&db, &only).await, Err(ErrorKind::Refused));
    let set = |expression| Thing::query().update().set(Thing::WHOLE, expression);
    for update in [set(count()), set(row_number().over(Over::all()))] {
        assert_eq!(
            update.execute(&db).await.unwrap_err().kind(),
            ErrorKind::Refused
        );
    }
    for limited in [
        Thing::query().limit(3),
        Thing::query().offset(1),
        Thing::query().distinct(),
    ] {
        let error = limited.sum(Thing::ID, &db).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
}

#[tokio::test]
async fn windows_are_those_of_sql() {
    let db = things().await;
    let by_flag = || {
        Over::all()
            .partition_by(Thing::FLAG)
            .order_by([Thing::WHOLE.desc(), Thing::ID.asc()])
    };
    let ranked = || Over::all().order_by([Thing::WHOLE.asc()]);
    let windows = Thing::query().order_by(Thing::ID.asc()).select((
        (
            row_number().over(by_flag()),
            rank().over(ranked()),
            dense_rank().over(ranked()),
        ),
        (
            Thing::ID.lag(1).over(by_flag()),
            Thing::MAYBE.lead(2).over(by_flag()),
        ),
        (
            Thing::ID.sum().over(by_flag()),
            count().over(Over::all()),
            count().only(Thing::MAYBE.gt(0)).over(ranked()),
        ),
        Thing::REAL
            .avg()
            .over(Over::all().partition_by(Thing::WHOLE % 2)),
    ));
    let found = everywhere(&db, &windows).await.unwrap();
    let found: Vec<_> = found
        .into_iter()
        .map(|((a, b, c), (d, e), (f, g, h), i)| (a, b, c, d, e, f, g, h, i))
        .collect();
    let sql = "SELECT row_number() OVER f, rank() OVER r, dense_rank() OVER r, lag(id) OVER f, lead(maybe, 2) OVER f,
        sum(id) OVER f, count(*) OVER (), count(*) FILTER (WHERE maybe > 0) OVER r, avg(real) OVER (PARTITION BY whole % 2)
        FROM thing WINDOW f AS (PARTITION BY flag ORDER BY whole DESC, id), r AS (ORDER BY whole) ORDER BY id";
    assert_eq!(found, crate::expressions::places::by_hand(&db, sql));
    assert_eq!(windows.count(&db).await.unwrap(), 12);
}

#[tokio::test]
async fn rows_that_are_equal_are_one() {
    let db = things().await;
    let distinct = Thing::query()
        .distinct()
        .select((Thing::LABEL.is_null().as_bool(), Thing::MAYBE))
        .order_by([Thing::LABEL.is_null().as_bool().asc(), Thing::MAYBE.desc()]);
    let sql = "SELECT DISTINCT label IS NULL, maybe FROM thing ORDER BY 1, 2 DESC";
    same(&db, distinct.clone(), sql).await;
    let expected = everywhere(&db, &distinct).await.unwrap().len() as u64;
    assert_eq!(distinct.clone().count(&db).await.unwrap(), expected);
    assert_eq!(distinct.limit(2).count(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn other_queries_are_values_lists_and_conditions() {
    let db = things().await;
    let ids = |condition: Condition<Thing>| {
        Thing::query()
            .filter(condition)
            .order_by(Thing::ID.asc())
            .select((Thing::ID,))
    };
    let all = || Thing::query().select(Thing::MAYBE);
    same(
        &db,
        ids(Thing::MAYBE.is_in_query(all())),
        "SELECT id FROM thing WHERE maybe IN (SELECT maybe FROM thing) ORDER BY id",
    )
    .await;
    same(
        &db,
        ids(Thing::MAYBE.not_in_query(all())),
        "SELECT id FROM thing WHERE maybe IS NULL ORDER BY id",
    )
    .await;
    let first = || {
        Thing::query()
            .order_by(Thing::WHOLE.desc())
            .order_by(Thing::ID.asc())
            .limit(3)
            .select(Thing::ID)
    };
    same(&db, ids(Thing::ID.not_in_query(first())), "SELECT id FROM thing WHERE id NOT IN (SELECT id FROM thing ORDER BY whole DESC, id LIMIT 3) ORDER BY id").await;
    same(
        &db,
        ids(Thing::ID.nullable().eq(first().as_value())),
        "SELECT id FROM thing WHERE id = (SELECT id FROM thing ORDER BY whole DESC, id)",
    )
    .await;
    let large = Thing::query()
        .group_by(Thing::WHOLE)
        .having(count().gt(2))
        .select(Thing::WHOLE);
    same(&db, ids(Thing::WHOLE.is_in_query(large)), "SELECT id FROM thing WHERE whole IN (SELECT whole FROM thing GROUP BY 1 HAVING count(*) > 2) ORDER BY id").await;
    let mean = || Thing::query().select(Thing::REAL.avg()).as_value();
    let query = Thing::query()
        .order_by(Thing::ID.asc())
        .select((Thing::REAL.nullable() - mean(), mean()));
    same(&db, query, "SELECT real - (SELECT avg(real) FROM thing), (SELECT avg(real) FROM thing) FROM thing ORDER BY id").await;
    assert_eq!(
        everywhere(&db, &ids(exists(Thing::query().filter(Thing::ID.gt(12))))).await,
        Ok(vec![])
    );
    same(
        &db,
        ids(!exists(Thing::query().filter(Thing::ID.gt(12)))),
        "SELECT id FROM thing ORDER BY id",
    )
    .await;
    same(
        &db,
        ids(exists(
            Thing::query().select(count()).filter(Thing::ID.lt(0)),
        )),
        "SELECT id FROM thing ORDER BY id",
    )
    .await;
}

#[tokio::test]
async fn compounds_are_done_in_their_order() {
    let db = things().await;
    let part = |low: i64, high: i64| {
        Thing::query()
            .filter(Thing::ID.between(low, high))
            .select((Thing::WHOLE, Thing::MAYBE))
    };
    let chain = part(1, 6)
        .union_all(part(3, 9))
        .except(part(8, 8))
        .union(part(10, 12))
        .intersect(part(2, 12))
        .order_by_position(1)
        .order_by_position_desc(0);
    let one = |low: i64, high: i64| {
        format!("SELECT whole, maybe FROM thing WHERE id BETWEEN {low} AND {high}")
    };
    let sql = format!(
        "{} UNION ALL {} EXCEPT {} UNION {} INTERSECT {} ORDER BY 2, 1 DESC",
        one(1, 6),
        one(3, 9),
        one(8, 8),
        one(10, 12),
        one(2, 12)
    );
    same(&db, chain.clone(), &sql).await;
    let counted = chain.clone().count(&db).await.unwrap();
    assert_eq!(
        counted,
        everywhere(&db, &chain.clone()).await.unwrap().len() as u64
    );
    let window = chain.limit(3).offset(1);
    same(&db, window, &format!("{sql} LIMIT 3 OFFSET 1")).await;
    // A part with an order and a limit keeps them.
    let tops = Thing::query()
        .order_by(Thing::ID.desc())
        .limit(2)
        .select(Thing::ID);
    let lows = Thing::query()
        .order_by(Thing::ID.asc())
        .limit(2)
        .offset(1)
        .select(Thing::ID);
    let both = everywhere(&db, &tops.union_all(lows).order_by_position(0)).await;
    assert_eq!(both, Ok(vec![2, 3, 11, 12]));
    let none = Thing::query()
        .select(Thing::ID)
        .union(Thing::query().select(Thing::WHOLE))
        .order_by_position(1);
    assert_eq!(everywhere(&db, &none).await, Err(ErrorKind::Refused));
    let whole = Thing::query()
        .filter(Thing::ID.le(3))
        .except(Thing::query().filter(Thing::ID.gt(1)))
        .order_by_position(0);
    let whole = everywhere(&db, &whole).await.unwrap();
    assert_eq!((whole.len(), whole[0].id), (1, 1));
    // Of the NOCASE column the first part decides, as SQL has it.
    let labels = Thing::query()
        .select(Thing::LABEL)
        .union(Thing::query().select(Thing::OTHER_NAME.or_else("RED")));
    let sql = "SELECT count(*) FROM (SELECT label FROM thing UNION SELECT coalesce(other_name, 'RED') FROM thing)";
    let expected: Vec<(i64,)> = crate::expressions::places::by_hand(&db, sql);
    assert_eq!(
        labels.count(&db).await.unwrap(),
        expected[0].0.unsigned_abs()
    );
}
