//! SQL of the application inside of queries, and whole statements of it.

use anabranch::{
    prelude::*,
    query::{Query, fragment, raw},
};
use anabranch_tests::execute;

use crate::expressions::{
    places::{by_hand, everywhere, same},
    thing::{Thing, things},
};

#[tokio::test]
async fn placeholders_of_a_fragment_are_its_arguments() {
    let db = things().await;
    let select = |expression: Expr<Thing, String>| {
        Thing::query()
            .order_by(Thing::ID.asc())
            .limit(1)
            .select(expression)
    };
    let told = async |expression| {
        everywhere(&db, &select(expression))
            .await
            .map(|mut rows| rows.remove(0))
    };
    let hostile = "'); DROP TABLE thing; --{}";
    assert_eq!(
        told(fragment("{}", (hostile,))).await,
        Ok(hostile.to_owned())
    );
    assert_eq!(
        told(fragment("'{{' || {1} || '}}' || {0} || {1}", ("a", "b"))).await,
        Ok("{b}ab".to_owned())
    );
    assert_eq!(
        told(fragment(
            "upper({}) || {}",
            ("a".to_owned(), Thing::ID.expr())
        ))
        .await,
        Ok("A1".to_owned())
    );
    // An operator inside binds to what is inside.
    let precedence = Thing::query()
        .order_by(Thing::ID.asc())
        .filter(
            fragment::<Thing, bool>("{} OR {}", (false, true))
                .is_true()
                .and(Thing::ID.eq(2)),
        )
        .select((fragment::<Thing, i64>("1 + {}", (Thing::ID,)) * 3,));
    same(&db, precedence, "SELECT 9").await;
    for (sql, args) in [
        ("{} {}", 1),
        ("{0} {2}", 2),
        ("{", 1),
        ("}", 1),
        ("{a}", 1),
        ("", 1),
        ("{-1}", 1),
        ("{99999999999999999999}", 1),
        ("{1}", 2),
        ("{ }", 1),
    ] {
        let mismatch: Expr<Thing, String> = if args == 1 {
            fragment(sql, (1,))
        } else {
            fragment(sql, (1, 2))
        };
        assert_eq!(told(mismatch).await, Err(ErrorKind::Refused), "{sql}");
    }
    assert_eq!(told(fragment("{}", ())).await, Err(ErrorKind::Refused));
    assert_eq!(told(fragment("{}", ("a\0",))).await, Err(ErrorKind::Value));
    assert_eq!(
        told(fragment("'a' -- a comment", ())).await,
        Ok("a".to_owned())
    );
    let wrong = select(fragment("no such thing", ()))
        .all(&db)
        .await
        .unwrap_err();
    assert!(wrong.statement().is_some(), "{wrong}");
    assert!(
        told(fragment("1); DELETE FROM thing; SELECT (1", ()))
            .await
            .is_err()
    );
    assert_eq!(
        by_hand::<(i64,)>(&db, "SELECT count(*) FROM thing"),
        [(12,)]
    );
}

#[tokio::test]
async fn raw_queries_read_what_sqlite_gives() {
    let db = things().await;
    let numbers = raw::<(i64, String, Option<f64>)>(
        "WITH RECURSIVE n (x) AS (SELECT {0} UNION ALL SELECT x + 1 FROM n WHERE x < {1}) SELECT x, printf('%02d', x), NULL FROM n -- all",
        (3, 12),
    );
    let rows = everywhere(&db, &numbers).await.unwrap();
    assert_eq!((rows.len(), &rows[0]), (10, &(3, "03".to_owned(), None)));
    assert_eq!(numbers.clone().first(&db).await.unwrap().unwrap().0, 3);
    assert_eq!(
        numbers.one(&db).await.unwrap_err().kind(),
        ErrorKind::MoreThanOne
    );
    assert_eq!(
        raw::<i64>("SELECT 1 WHERE 0", ())
            .one(&db)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        everywhere(
            &db,
            &raw::<String>("SELECT {}", ("'; DROP TABLE thing; --",))
        )
        .await,
        Ok(vec!["'; DROP TABLE thing; --".to_owned()])
    );
    // What is not of its type, and another number of columns than was asked for.
    assert_eq!(
        everywhere(&db, &raw::<i64>("SELECT 'a'", ())).await,
        Err(ErrorKind::Decode)
    );
    assert_eq!(
        everywhere(&db, &raw::<i64>("SELECT NULL", ())).await,
        Err(ErrorKind::Decode)
    );
    assert_eq!(
        everywhere(&db, &raw::<(i64, Option<i64>)>("SELECT 1", ())).await,
        Err(ErrorKind::Decode)
    );
    assert_eq!(
        everywhere(&db, &raw::<i64>("SELECT 1, 2", ())).await,
        Err(ErrorKind::Decode)
    );
    assert!(everywhere(&db, &raw::<i64>("SELECT ?", ())).await.is_err());
}

#[tokio::test]
async fn sql_that_writes_is_refused_everywhere_and_leaves_nothing_open() {
    let db = things().await;
    let texts = [
        "DELETE FROM thing",
        "DELETE FROM thing RETURNING id",
        "WITH a AS (SELECT 1) UPDATE thing SET whole = 0 RETURNING id",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 5",
        "ATTACH ':memory:' AS x",
        "CREATE TABLE x (y)",
        "SELECT 1; DELETE FROM thing",
        "",
        "{}",
    ];
    for text in texts {
        let told = everywhere(&db, &raw::<i64>(text, ())).await;
        assert_eq!(told, Err(ErrorKind::Refused), "{text}");
        let told = everywhere(&db, &Query::<Thing>::from_sql(text, ())).await;
        assert!(told.is_err(), "{text}");
    }
    assert!(everywhere(&db, &raw::<i64>("SELEC 1", ())).await.is_err());
    assert!(
        everywhere(&db, &raw::<i64>("SELECT nothing FROM thing", ()))
            .await
            .is_err()
    );
    assert_eq!(
        by_hand::<(i64,)>(&db, "SELECT count(*) FROM thing"),
        [(12,)]
    );
    assert_eq!(by_hand::<(i64,)>(&db, "PRAGMA user_version"), [(0,)]);
    // Nothing holds the writer.
    execute(&db, "UPDATE thing SET whole = 1").await;
}

#[tokio::test]
async fn rows_of_written_sql_are_a_query_like_any_other() {
    let db = things().await;
    let odd = || {
        Query::<Thing>::from_sql(
            "SELECT *, 5 AS more FROM thing WHERE flag AND id > {} -- odd ones",
            (2,),
        )
    };
    let query = odd()
        .filter(Thing::ID.lt(9))
        .order_by(Thing::ID.desc())
        .limit(2)
        .select((Thing::ID, Thing::WHOLE + 1));
    same(
        &db,
        query,
        "SELECT id, whole + 1 FROM thing WHERE flag AND id > 2 AND id < 9 ORDER BY id DESC LIMIT 2",
    )
    .await;
    assert_eq!(odd().count(&db).await.unwrap(), 5);
    assert_eq!(odd().all(&db).await.unwrap().len(), 5);
    let inside = Thing::query()
        .filter(Thing::ID.is_in_query(odd().select(Thing::ID)))
        .count(&db)
        .await
        .unwrap();
    assert_eq!(inside, 5);
    let page = odd()
        .order_by(Thing::WHOLE.asc())
        .page(None, 3)
        .read(&db)
        .await
        .unwrap();
    assert_eq!(
        odd()
            .order_by(Thing::WHOLE.asc())
            .page(page.next, 3)
            .read(&db)
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    let refused = odd().delete().execute(&db).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    let lacking = Query::<Thing>::from_sql("SELECT 1 AS id", ())
        .all(&db)
        .await
        .unwrap_err();
    assert!(lacking.statement().is_some(), "{lacking}");
}

#[tokio::test]
async fn a_value_that_is_none_names_table_and_place() {
    let db = things().await;
    execute(&db, "UPDATE thing SET at = 'yesterday' WHERE id = 4").await;
    let error = Thing::query().all(&db).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.table(), error.column()),
        (ErrorKind::Decode, Some("thing"), Some("at"))
    );
    let error = Thing::query()
        .select((Thing::ID, (Thing::NAME, Thing::AT)))
        .all(&db)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.table()),
        (ErrorKind::Decode, Some("thing"))
    );
    assert!(error.to_string().contains("value 3"), "{error}");
    assert!(!error.to_string().contains("yesterday"), "{error}");
}

#[tokio::test]
async fn empty_filters_filter_nothing() {
    let db = things().await;
    let search = |name: Option<&str>, most: Option<i64>| {
        Thing::query()
            .filter_if(name.map(|name| Thing::NAME.contains(name)))
            .filter_if(most.map(|most| Thing::ID.le(most)))
            .order_by(Thing::ID.asc())
            .select((Thing::ID,))
    };
    same(&db, search(None, None), "SELECT id FROM thing ORDER BY id").await;
    same(
        &db,
        search(Some("t"), Some(8)),
        "SELECT id FROM thing WHERE name LIKE '%t%' AND id <= 8 ORDER BY id",
    )
    .await;
}
