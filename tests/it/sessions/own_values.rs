//! What a session computes once and no second time: chance, the time, arguments, generated columns.

use anabranch::prelude::*;
use anabranch_tests::{Mode, execute, outsider};
use sqlx::Row;

use crate::sessions::{
    LEVELS, MODES, Result, conflict, found_number, found_text, number, run, session, session_of,
    text, with,
};

/// The clock shows another time than at the call.
fn time_passes() {
    let clock = rusqlite::Connection::open_in_memory().unwrap();
    let now = || -> f64 {
        clock
            .query_row("SELECT unixepoch('subsec')", [], |row| row.get(0))
            .unwrap()
    };
    let before = now();
    while now() < before + 0.002 {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn what_chance_gave_in_the_session_is_what_is_stored() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = with(mode, &["CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)"]).await;
            let mut s = session_of(&db, isolation).await;
            run(
                &mut *s,
                "INSERT INTO t VALUES (1, random(), hex(randomblob(16)))",
            )
            .await?;
            run(
                &mut *s,
                "INSERT INTO t SELECT 10 + value, random(), hex(randomblob(4))
                 FROM json_each('[1, 2, 3, 4, 5]')",
            )
            .await?;
            let all = "SELECT group_concat(a || ':' || b) FROM (SELECT a, b FROM t ORDER BY id)";
            let seen = text(&mut *s, all).await?;
            let picked = number(&mut *s, "SELECT id FROM t ORDER BY random() LIMIT 1").await?;
            let rolled = number(&mut *s, "SELECT abs(random() % 6) + 1").await?;
            assert!(picked >= 1 && (1..=6).contains(&rolled));
            s.commit().await?;
            assert_eq!(found_text(&db, all), seen, "{mode:?}, {isolation:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn chance_differs_between_sessions_and_statements() -> Result {
    let db = with(Mode::Inline, &["CREATE TABLE t (a)"]).await;
    for _ in 0..3 {
        let mut s = session(&db).await;
        for _ in 0..3 {
            run(
                &mut *s,
                "INSERT INTO t (rowid, a) VALUES (next_id('t'), random())",
            )
            .await?;
        }
        s.commit().await?;
    }
    assert_eq!(found_number(&db, "SELECT count(DISTINCT a) FROM t"), 9);
    Ok(())
}

/// The same statement goes through another number of rows where it is merged: what chance gives to rows that the
/// session had not seen is new, and what was seen of it is compared.
#[tokio::test]
async fn chance_for_rows_that_came_meanwhile_is_new() -> Result {
    let db = with(
        Mode::Inline,
        &[
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
            "INSERT INTO t VALUES (1, 0)",
        ],
    )
    .await;
    let mut s = session(&db).await;
    assert_eq!(run(&mut *s, "UPDATE t SET a = random()").await?, 1);
    execute(&db, "INSERT INTO t VALUES (2, 0)").await;
    conflict(s).await;
    assert_eq!(found_text(&db, "SELECT typeof(sum(a)) FROM t"), "integer");
    Ok(())
}

#[tokio::test]
async fn the_time_seen_in_the_session_is_what_is_stored() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = with(
                mode,
                &["CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, at TEXT DEFAULT CURRENT_TIMESTAMP,
                    exact REAL DEFAULT (unixepoch('subsec')))"],
            )
            .await;
            let mut s = session_of(&db, isolation).await;
            run(
                &mut *s,
                "INSERT INTO t (id, a, b) VALUES (1, datetime('now'), julianday('now'))",
            )
            .await?;
            time_passes();
            run(
                &mut *s,
                "INSERT INTO t (id, a, b) VALUES (2, strftime('%f', 'now'), unixepoch('subsec'))",
            )
            .await?;
            let all = "SELECT group_concat(a || ' ' || b || ' ' || at || ' ' || exact) FROM t";
            let seen = text(&mut *s, all).await?;
            text(&mut *s, "SELECT CAST(unixepoch('subsec') AS TEXT)").await?;
            text(&mut *s, "SELECT time('now', 'localtime')").await?;
            time_passes();
            s.commit().await?;
            assert_eq!(found_text(&db, all), seen, "{mode:?}, {isolation:?}");
            assert_eq!(
                found_number(&db, "SELECT count(DISTINCT exact) FROM t"),
                2,
                "time goes on inside of a session"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn arguments_of_every_kind_are_what_is_stored() -> Result {
    let blob: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let long = "ä\u{1F600}x".repeat(20_000);
    for mode in MODES {
        let db = with(mode, &["CREATE TABLE t (id INTEGER PRIMARY KEY, a)"]).await;
        let mut s = session(&db).await;
        macro_rules! insert {
            ($id:literal, $value:expr) => {
                sqlx::query("INSERT INTO t VALUES (?, ?)")
                    .bind($id)
                    .bind($value)
                    .execute(&mut *s)
                    .await?;
            };
        }
        insert!(1, i64::MIN);
        insert!(2, 0.1_f64);
        insert!(3, f64::NEG_INFINITY);
        insert!(4, f64::NAN);
        insert!(5, true);
        insert!(6, "text");
        insert!(7, "");
        insert!(8, "with \0 inside");
        insert!(9, long.as_str());
        insert!(10, Vec::<u8>::new());
        insert!(11, blob.clone());
        insert!(12, None::<i64>);
        // A number and a name for one, and one that is bound and not used.
        sqlx::query("INSERT INTO t VALUES (?2, ?1)")
            .bind("first")
            .bind(13)
            .execute(&mut *s)
            .await?;
        s.commit().await?;
        let types = "SELECT group_concat(typeof(a), ' ') FROM (SELECT a FROM t ORDER BY id)";
        assert_eq!(
            found_text(&db, types),
            "integer real real null integer text text text text blob blob null text",
            "{mode:?}"
        );
        let other = outsider(db.path());
        let read = |id: i64| -> rusqlite::types::Value {
            other
                .query_row("SELECT a FROM t WHERE id = ?", [id], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(read(1), i64::MIN.into());
        assert_eq!(read(3), f64::NEG_INFINITY.into());
        assert_eq!(read(8), "with \0 inside".to_owned().into());
        assert_eq!(read(9), long.clone().into());
        assert_eq!(read(11), blob.clone().into());
        assert_eq!(read(13), "first".to_owned().into());
    }
    Ok(())
}

#[tokio::test]
async fn a_parameter_that_is_not_bound_is_null_there_and_here() -> Result {
    for mode in MODES {
        let db = with(mode, &["CREATE TABLE t (a, b)"]).await;
        let mut s = session(&db).await;
        sqlx::query("INSERT INTO t (rowid, a, b) VALUES (1, ?, ?)")
            .bind("bound")
            .execute(&mut *s)
            .await?;
        let row = sqlx::query("SELECT ?1, a, b FROM t")
            .fetch_one(&mut *s)
            .await?;
        assert_eq!(row.get::<Option<i64>, _>(0), None);
        assert_eq!(row.get::<Option<String>, _>(2), None);
        s.commit().await?;
        assert_eq!(
            found_number(&db, "SELECT a = 'bound' AND b IS NULL FROM t"),
            1
        );
    }
    Ok(())
}

#[tokio::test]
async fn generated_columns_are_computed_where_they_are_merged() -> Result {
    let db = with(
        Mode::Inline,
        &[
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, twice INT AS (a * 2) STORED,
                label TEXT AS ('no. ' || a) VIRTUAL)",
            "INSERT INTO t (id, a) VALUES (1, 1)",
        ],
    )
    .await;
    let (mut one, mut two) = (session(&db).await, session(&db).await);
    run(&mut *one, "UPDATE t SET a = a + 1").await?;
    run(&mut *two, "UPDATE t SET a = a + 10").await?;
    let error = run(&mut *two, "UPDATE t SET twice = 1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement);
    one.commit().await?;
    two.commit().await?;
    assert_eq!(found_text(&db, "SELECT twice || label FROM t"), "24no. 12");

    let mut s = session(&db).await;
    assert_eq!(number(&mut *s, "SELECT twice FROM t").await?, 24);
    execute(&db, "UPDATE t SET a = 5").await;
    run(&mut *s, "UPDATE t SET a = 6").await?;
    conflict(s).await;
    Ok(())
}

/// A result has no more than 2,000 columns, and arguments are read as columns.
#[tokio::test]
async fn as_many_arguments_as_sqlite_takes_are_what_is_merged() -> Result {
    for count in [2000, 2001, 32_766] {
        let db = with(Mode::Inline, &["CREATE TABLE t (a)"]).await;
        let mut s = session(&db).await;
        let rows = vec!["(?)"; count].join(", ");
        let sql = sqlx::AssertSqlSafe(format!("INSERT INTO t VALUES {rows}"));
        let mut insert = sqlx::query(sql);
        for value in 1..=count {
            insert = insert.bind(i64::try_from(value).unwrap());
        }
        insert.execute(&mut *s).await?;
        s.commit().await?;
        let right = "SELECT count(*) FROM t WHERE a = rowid";
        assert_eq!(found_number(&db, right), i64::try_from(count).unwrap());
    }
    Ok(())
}
