//! Exclusive transactions: what raw SQL may do in them, and what a panic does to them.

use std::panic::AssertUnwindSafe;

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, dropped_after, execute,
    note::{Note, notes},
    outsider,
};
use futures_util::{FutureExt, TryStreamExt};
use sqlx::Row as _;

/// What is refused, and a word of what is said to use instead.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("BEGIN", "commit()"),
    ("BEGIN IMMEDIATE", "commit()"),
    ("COMMIT", "commit()"),
    ("END", "commit()"),
    ("ROLLBACK", "rollback()"),
    ("SAVEPOINT mine", "savepoint()"),
    ("RELEASE mine", "savepoint()"),
    ("ROLLBACK TO mine", "savepoint()"),
    ("ATTACH 'other.db' AS other", "Database of its own"),
    ("DETACH other", "Database of its own"),
    ("CREATE TEMP TABLE t (a)", "WITH"),
    ("CREATE TEMPORARY VIEW v AS SELECT 1", "WITH"),
    ("CREATE TABLE temp.t (a)", "WITH"),
    (
        "CREATE TEMP TRIGGER g AFTER INSERT ON note BEGIN SELECT 1; END",
        "WITH",
    ),
    ("PRAGMA synchronous = OFF", "options at open"),
    ("PRAGMA foreign_keys = OFF", "options at open"),
    ("PRAGMA journal_mode = DELETE", "options at open"),
    ("PRAGMA locking_mode = EXCLUSIVE", "options at open"),
    ("PRAGMA busy_timeout = 1000", "options at open"),
    ("PRAGMA cache_size = 1", "options at open"),
    ("PRAGMA query_only = 1", "options at open"),
    ("PRAGMA max_page_count = 10", "options at open"),
    ("PRAGMA writable_schema = 1", "options at open"),
    ("PRAGMA wal_checkpoint", "checkpoint()"),
    ("PRAGMA wal_checkpoint(TRUNCATE)", "checkpoint()"),
    ("PRAGMA optimize", "options at open"),
];

/// What looks alike and is allowed.
const ALLOWED: &[&str] = &[
    "PRAGMA foreign_keys",
    "PRAGMA table_info(note)",
    "PRAGMA foreign_key_check",
    "PRAGMA integrity_check",
    "PRAGMA user_version = 7",
    "PRAGMA defer_foreign_keys = ON",
    "CREATE TABLE extra (a)",
    "CREATE INDEX extras ON extra (a)",
    "WITH t (a) AS (SELECT 1) INSERT INTO extra SELECT a FROM t",
    "DROP TABLE extra",
];

#[tokio::test]
async fn raw_sql_that_belongs_to_the_library_is_refused_and_the_transaction_goes_on() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = notes(mode).await;
        let mut tx = db.begin().await.unwrap();
        for (sql, instead) in REFUSED {
            sqlx::query("INSERT INTO note (text) VALUES ('before')")
                .execute(&mut *tx)
                .await
                .unwrap();
            let error = sqlx::query(*sql).execute(&mut *tx).await.unwrap_err();
            let error = Error::from(error);
            assert_eq!(error.kind(), ErrorKind::Refused, "{sql}: {error}");
            assert!(error.to_string().contains(instead), "{sql}: {error}");
            assert!(!error.is_retryable());
        }
        for sql in ALLOWED {
            sqlx::query(*sql).execute(&mut *tx).await.unwrap();
        }
        tx.commit().await.unwrap();
        let rows = Note::query().count(&db).await.unwrap();
        assert_eq!(rows, REFUSED.len() as u64, "{mode:?}");
        let version: i64 = outsider(db.path())
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap();
        assert_eq!(version, 7);
    }
}

#[tokio::test]
async fn a_refusal_is_told_by_every_way_to_run_raw_sql() {
    let db = notes(Mode::Inline).await;
    let mut tx = db.begin().await.unwrap();
    let streamed = sqlx::query("COMMIT").fetch(&mut *tx).try_next().await;
    let errors = [
        streamed.unwrap_err(),
        sqlx::query("COMMIT").execute(&mut *tx).await.unwrap_err(),
        sqlx::query("COMMIT").fetch_all(&mut *tx).await.unwrap_err(),
        sqlx::query("COMMIT").fetch_one(&mut *tx).await.unwrap_err(),
        sqlx::query("COMMIT")
            .fetch_optional(&mut *tx)
            .await
            .unwrap_err(),
        sqlx::raw_sql("SELECT 1; COMMIT")
            .execute(&mut *tx)
            .await
            .unwrap_err(),
        sqlx::Executor::prepare(&mut *tx, sqlx::SqlStr::from_static("COMMIT"))
            .await
            .map(drop)
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(Error::from(error).kind(), ErrorKind::Refused);
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_is_refused_first_undoes_nothing_of_its_text() {
    let db = notes(Mode::Inline).await;
    let error = db
        .write(async |tx| {
            sqlx::raw_sql("INSERT INTO note (text) VALUES ('kept?'); ROLLBACK")
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(
        Note::query().count(&db).await.unwrap(),
        0,
        "rolled back as a whole"
    );
}

#[tokio::test]
async fn a_panic_in_a_write_is_rolled_back_and_the_writer_goes_on() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        for round in 0..20 {
            let write = db.write(async |tx| {
                sqlx::query("INSERT INTO note (text) VALUES ('lost')")
                    .execute(&mut *tx)
                    .await?;
                if round % 2 == 0 {
                    let mut ctx = tx.context();
                    ctx.add(Note {
                        id: 0,
                        text: "lost".to_owned(),
                    });
                    ctx.save_changes().await?;
                }
                assert!(round < 0, "a panic of the application");
                Ok(())
            });
            let panicked = AssertUnwindSafe(write).catch_unwind().await;
            assert!(panicked.is_err());
            // Not taken for a write inside of a write.
            execute(&db, "INSERT INTO note (text) VALUES ('kept')").await;
        }
        let lost = Note::query().filter(Note::TEXT.eq("lost"));
        assert_eq!(lost.count(&db).await.unwrap(), 0, "{mode:?}");
        assert_eq!(Note::query().count(&db).await.unwrap(), 20);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_with_a_guard_frees_the_writer() {
    let db = notes(Mode::Inline).await;
    for _ in 0..10 {
        let handle = db.clone();
        let task = tokio::spawn(async move {
            let _guard = handle.begin().await.unwrap();
            panic!("a panic of the application");
        });
        assert!(task.await.unwrap_err().is_panic());
        execute(&db, "INSERT INTO note (text) VALUES ('kept')").await;
    }
    assert_eq!(Note::query().count(&db).await.unwrap(), 10);
}

#[tokio::test]
async fn savepoints_nest_and_undo_only_what_is_theirs() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let insert = async |tx: &mut Transaction, text: &'static str| -> Result<(), Error> {
            sqlx::query("INSERT INTO note (text) VALUES (?)")
                .bind(text)
                .execute(&mut *tx)
                .await?;
            Ok(())
        };
        db.write(async |tx| {
            insert(tx, "outer").await?;
            tx.savepoint(async |tx| {
                insert(tx, "middle").await?;
                let undone = tx
                    .savepoint(async |tx| {
                        insert(tx, "inner").await?;
                        Err::<(), _>(Error::application("changed its mind"))
                    })
                    .await;
                assert_eq!(undone.unwrap_err().kind(), ErrorKind::Application);
                insert(tx, "middle again").await
            })
            .await
        })
        .await
        .unwrap();
        let all = Note::query()
            .order_by([Note::ID.asc()])
            .all(&db)
            .await
            .unwrap();
        let texts: Vec<_> = all.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(texts, ["outer", "middle", "middle again"], "{mode:?}");
    }
}

#[tokio::test]
async fn a_failed_save_in_a_transaction_leaves_what_was_there_before() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.write(async |tx| {
            let mut ctx = tx.context();
            let first = ctx.add(Note {
                id: 1,
                text: "first".to_owned(),
            });
            ctx.save_changes().await?;
            ctx.detach(first);
            ctx.add(Note {
                id: 2,
                text: "beside".to_owned(),
            });
            ctx.add(Note {
                id: 1,
                text: "taken".to_owned(),
            });
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unique);
            Ok(())
        })
        .await
        .unwrap();
        let all = Note::query().all(&db).await.unwrap();
        assert_eq!(all.len(), 1, "{mode:?}");
        assert_eq!(all[0].text, "first");
    }
}

/// sqlx ends the stream after an error, and whoever only counts ends took it for one that went well.
#[tokio::test]
async fn nothing_runs_outside_when_a_stream_is_polled_past_its_error() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        execute(&db, "INSERT INTO note (id, text) VALUES (1, 'there')").await;
        let mut tx = db.begin().await.unwrap();
        {
            let again = sqlx::query("INSERT OR ROLLBACK INTO note (id, text) VALUES (1, 'again')");
            let mut steps = again.fetch(&mut *tx);
            assert!(steps.try_next().await.is_err());
            assert!(steps.try_next().await.unwrap().is_none());
        }
        let outside = sqlx::query("INSERT INTO note (text) VALUES ('outside')");
        assert!(outside.execute(&mut *tx).await.is_err());
        assert_eq!(
            tx.commit().await.unwrap_err().kind(),
            ErrorKind::TransactionEnded
        );
        assert_eq!(Note::query().count(&db).await.unwrap(), 1, "{mode:?}");
    }
}

/// A full-text table keeps a reader open until the transaction ends, and while one is, SQLite does not forget an
/// interrupt: the statement after one that was refused failed with `Interrupted`.
#[tokio::test]
async fn a_refused_statement_beside_a_full_text_table_does_not_interrupt_the_next() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = notes(mode).await;
        execute(&db, "CREATE VIRTUAL TABLE docs USING fts5 (body)").await;
        execute(&db, "INSERT INTO docs (rowid, body) VALUES (1, 'one two')").await;
        execute(&db, "INSERT INTO note (id, text) VALUES (1, 'taken')").await;
        for _ in 0..200 {
            let mut tx = db.begin().await.unwrap();
            sqlx::query("DELETE FROM docs WHERE rowid = 1")
                .execute(&mut *tx)
                .await
                .unwrap();
            let refused = sqlx::query("INSERT INTO note (id, text) VALUES (1, 'again')")
                .execute(&mut *tx)
                .await;
            assert_eq!(Error::from(refused.unwrap_err()).kind(), ErrorKind::Unique);
            sqlx::query("INSERT INTO note (text) VALUES ('beside')")
                .execute(&mut *tx)
                .await
                .unwrap();
            tx.rollback().await.unwrap();
        }
    }
}

/// What was done of it is not told apart from what the savepoint around it did.
#[tokio::test]
async fn a_savepoint_that_is_dropped_inside_of_another_is_not_kept_with_it() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let written = db
            .write(async |tx| {
                tx.savepoint(async |tx| {
                    let inner = tx.savepoint(async |tx| {
                        sqlx::query("INSERT INTO note (text) VALUES ('half')")
                            .execute(&mut *tx)
                            .await?;
                        std::future::pending::<()>().await;
                        Ok(())
                    });
                    assert!(dropped_after(200, inner).await.is_none());
                    Ok(())
                })
                .await
            })
            .await;
        assert_eq!(written.unwrap_err().kind(), ErrorKind::TransactionEnded);
        assert_eq!(Note::query().count(&db).await.unwrap(), 0, "{mode:?}");
    }
}

/// sqlx notes the columns of a statement when it prepares it, and its worker dies of another number of them.
#[tokio::test]
async fn a_raw_query_is_shown_the_columns_that_there_are() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        execute(&db, "INSERT INTO note (text) VALUES ('a')").await;
        let columns = async || {
            db.write(async |tx| {
                let row = sqlx::query("SELECT * FROM note").fetch_one(&mut *tx);
                Ok(row.await?.len())
            })
            .await
            .unwrap()
        };
        assert_eq!(columns().await, 2);
        execute(&db, "ALTER TABLE note ADD COLUMN more TEXT").await;
        assert_eq!(columns().await, 3, "{mode:?}: the same connection did it");
        db.concurrent(async |s| {
            let more = sqlx::query("ALTER TABLE note ADD COLUMN still_more TEXT");
            more.execute(&mut *s).await?;
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(columns().await, 4, "{mode:?}: another one did");
        let program = outsider(db.path());
        program
            .execute_batch("ALTER TABLE note DROP COLUMN more")
            .unwrap();
        assert_eq!(columns().await, 3, "{mode:?}: another program did");
        db.write(async |tx| {
            let all = "SELECT * FROM note";
            assert_eq!(sqlx::query(all).fetch_one(&mut *tx).await?.len(), 3);
            sqlx::query("ALTER TABLE note DROP COLUMN still_more")
                .execute(&mut *tx)
                .await?;
            assert_eq!(sqlx::query(all).fetch_one(&mut *tx).await?.len(), 2);
            Ok(())
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_text_with_a_nul_is_refused_and_the_transaction_goes_on() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.write(async |tx| {
            for sql in ["SELECT 1\0", "\0", "SELECT 1; \0 DELETE FROM note"] {
                let error = Error::from(sqlx::query(sql).execute(&mut *tx).await.unwrap_err());
                assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            }
            sqlx::query("INSERT INTO note (text) VALUES ('a')")
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), 1, "{mode:?}");
    }
}
