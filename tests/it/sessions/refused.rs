//! What a session refuses, each with what to do instead; it goes on afterwards.

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
};

use crate::{
    sessions::{LEVELS, MODES, Result, found_number, number, run, session, session_of, text},
    transactions::REFUSED,
};

/// What a session refuses besides what a transaction does, and a word of what is said to use instead.
const REFUSED_TOO: &[(&str, &str)] = &[
    ("VACUUM", "vacuum()"),
    ("PRAGMA cache_spill = ON", "options at open"),
    ("PRAGMA temp.user_version = 7", "WITH"),
];

/// What answers otherwise where the session is merged, for reasons that are nobody's conflict.
const DIFFERS: &[&str] = &[
    "PRAGMA page_count",
    "PRAGMA freelist_count",
    "PRAGMA data_version",
    "SELECT total_changes()",
    "SELECT changes()",
    "SELECT * FROM pragma_page_count",
];

/// What looks alike and is allowed.
const ALLOWED: &[&str] = &[
    "PRAGMA foreign_keys",
    "PRAGMA table_info(note)",
    "PRAGMA foreign_key_check",
    "PRAGMA user_version",
    "PRAGMA defer_foreign_keys = ON",
    "SELECT name FROM pragma_table_info('note')",
    "SELECT name FROM sqlite_schema",
    "WITH t (a) AS (SELECT 1) SELECT a FROM t",
    "EXPLAIN QUERY PLAN SELECT * FROM note",
    "VALUES (1), (2)",
    "SELECT 1;",
    "SELECT 1; -- and no more",
    "/* first */ SELECT 1",
];

fn is_refused(error: &Error, sql: &str) {
    assert_eq!(error.kind(), ErrorKind::Refused, "{sql}: {error}");
    assert!(!error.is_retryable(), "{sql}");
    assert!(!error.is_conflict(), "{sql}");
}

#[tokio::test]
async fn what_a_session_refuses_it_names_with_what_to_use_instead_and_goes_on() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = notes(mode).await;
            let mut s = session_of(&db, isolation).await;
            for (sql, instead) in REFUSED.iter().chain(REFUSED_TOO) {
                run(
                    &mut *s,
                    "INSERT INTO note (id, text) VALUES (next_id('note'), 'a')",
                )
                .await?;
                let error = run(&mut *s, sql).await.unwrap_err();
                is_refused(&error, sql);
                assert!(error.to_string().contains(instead), "{sql}: {error}");
            }
            for sql in DIFFERS {
                let error = sqlx::query(*sql).fetch_all(&mut *s).await.unwrap_err();
                is_refused(&Error::from(error), sql);
            }
            s.commit().await?;
            let count = Note::query().count(&db).await?;
            assert_eq!(
                count,
                (REFUSED.len() + REFUSED_TOO.len()) as u64,
                "{mode:?}, {isolation:?}"
            );
            // Nor had it any effect where the session was merged.
            let mut ctx = db.context();
            ctx.add(note("saved as before"));
            ctx.save_changes().await?;
            drop(ctx);
            let schema = "SELECT count(*) FROM sqlite_schema WHERE name IN ('t', 'v')";
            assert_eq!(found_number(&db, schema), 0);
            db.close().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_refused_is_refused_by_every_way_to_run_it() -> Result {
    let db = notes(Mode::Inline).await;
    let mut s = session(&db).await;
    for sql in ["COMMIT", "SELECT total_changes()", "PRAGMA page_count"] {
        let errors = [
            sqlx::query(sql).execute(&mut *s).await.unwrap_err(),
            sqlx::query(sql).fetch_all(&mut *s).await.unwrap_err(),
            sqlx::query(sql).fetch_one(&mut *s).await.unwrap_err(),
            sqlx::query(sql).fetch_optional(&mut *s).await.unwrap_err(),
            sqlx::Executor::prepare(&mut *s, sqlx::SqlStr::from_static(sql))
                .await
                .map(drop)
                .unwrap_err(),
        ];
        for error in errors {
            is_refused(&Error::from(error), sql);
        }
    }
    s.commit().await?;
    Ok(())
}

/// A refused statement was recorded as one that failed, and run by the writer when the session was merged, where nobody
/// refuses anything.
#[tokio::test]
async fn a_refused_pragma_reaches_no_connection() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'a')").await?;
        for sql in [
            "PRAGMA query_only = 1",
            "PRAGMA foreign_keys = OFF",
            "CREATE TEMP TABLE note (a)",
        ] {
            is_refused(&run(&mut *s, sql).await.unwrap_err(), sql);
            let first = sqlx::query(sql).fetch_optional(&mut *s).await;
            is_refused(&Error::from(first.map(drop).unwrap_err()), sql);
        }
        s.commit().await?;
        let mut ctx = db.context();
        ctx.add(note(
            "the writer still writes, into the table that it should",
        ));
        ctx.save_changes().await?;
        assert_eq!(
            found_number(&db, "SELECT count(*) FROM note"),
            2,
            "{mode:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn several_statements_in_one_text_are_refused_before_the_first_runs() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        let texts = [
            "INSERT INTO note (text) VALUES ('a'); INSERT INTO note (text) VALUES ('b')",
            "SELECT 1; SELECT 2",
            "SELECT 1; COMMIT",
        ];
        for sql in texts {
            let error = sqlx::raw_sql(sql).execute(&mut *s).await.unwrap_err();
            is_refused(&Error::from(error), sql);
            let error = run(&mut *s, sql).await.unwrap_err();
            is_refused(&error, sql);
        }
        assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 0);
        sqlx::raw_sql("INSERT INTO note (id, text) VALUES (1, 'one; two')")
            .execute(&mut *s)
            .await?;
        s.commit().await?;
        assert_eq!(Note::query().count(&db).await?, 1, "{mode:?}");
    }
    Ok(())
}

/// And the same answers where the session is merged.
#[tokio::test]
async fn what_looks_alike_is_allowed_and_no_conflict() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(&db, "PRAGMA user_version = 7").await;
        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO note (id, text) VALUES (500, 'a')").await?;
        for sql in ALLOWED {
            sqlx::query(*sql).fetch_all(&mut *s).await?;
        }
        let mut ctx = db.context();
        ctx.add(note("beside"));
        ctx.save_changes().await?;
        s.commit().await?;
        assert_eq!(Note::query().count(&db).await?, 2, "{mode:?}");
    }
    Ok(())
}

/// On the same connection of the pool: nothing that one session did is left for the next.
#[tokio::test]
async fn a_session_finds_nothing_of_another_that_was_before_it() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        for _ in 0..20 {
            let mut s = session(&db).await;
            assert_eq!(number(&mut *s, "PRAGMA defer_foreign_keys").await?, 0);
            assert_eq!(number(&mut *s, "PRAGMA foreign_keys").await?, 1);
            assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 0);
            run(&mut *s, "PRAGMA defer_foreign_keys = ON").await?;
            run(&mut *s, "INSERT INTO note (text) VALUES ('a'), ('b')").await?;
            run(&mut *s, "CREATE TABLE left_over (a)").await?;
            s.rollback().await?;
        }
        let mut s = session(&db).await;
        let tables =
            "SELECT group_concat(name) FROM sqlite_schema WHERE name NOT LIKE 'anabranch%'";
        assert_eq!(text(&mut *s, tables).await?, "note");
        s.rollback().await?;
    }
    Ok(())
}

#[tokio::test]
async fn nonsense_is_an_error_and_the_session_goes_on() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        for sql in [
            "SELEC 1",
            "SELECT",
            "SELECT \"text FROM note",
            "SELECT no_such_column FROM note",
            "INSERT INTO note (id) VALUES",
            "SELECT no_such_function(1)",
            ")",
        ] {
            let error = run(&mut *s, sql).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Statement, "{sql}: {error}");
        }
        // sqlx would look for a next statement for ever.
        for sql in ["SELECT 1\0", "\0", "SELECT 1; \0 DELETE FROM note"] {
            let error = run(&mut *s, sql).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{sql}: {error}");
        }
        for sql in ["", ";", "-- nothing", " "] {
            assert_eq!(run(&mut *s, sql).await?, 0, "{sql:?} does nothing");
        }
        run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'a')").await?;
        s.commit().await?;
        assert_eq!(Note::query().count(&db).await?, 1, "{mode:?}");
    }
    Ok(())
}
