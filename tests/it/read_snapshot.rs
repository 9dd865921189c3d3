//! `db.read`: several queries on one state of the database.

use std::{panic::resume_unwind, time::Duration};

use anabranch::{
    prelude::*,
    sql::{Cost, Executor, Read},
    value::Value,
};
use anabranch_tests::{Mode, ask, column, dropped_after, execute, statement, together};
use futures_util::StreamExt;

type Result<T = ()> = anabranch::error::Result<T>;

const LONG: &str =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0";

#[derive(Debug, Entity)]
struct Note {
    #[entity(id)]
    id: i64,
    text: String,
}

/// A database with one note and one read connection: what its last user left would be seen.
async fn notes(mode: Mode) -> Database {
    let db = mode
        .set(Database::builder(""))
        .readers(1)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    add(&db).await;
    db
}

async fn add(db: &Database) {
    execute(db, "INSERT INTO note (text) VALUES ('more')").await;
}

/// Nothing is left on the connection: it sees what is committed now.
async fn is_free(db: &Database) {
    add(db).await;
    let present: i64 = anabranch_tests::outsider(db.path())
        .query_row("SELECT count(*) FROM note", [], |row| row.get(0))
        .unwrap();
    let seen = Note::query().count(db).await.unwrap();
    assert_eq!(seen.cast_signed(), present);
}

#[tokio::test]
async fn queries_agree_whatever_is_committed_between_them() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.read(async |snapshot| {
            // The snapshot is that of the call, not of the first query.
            add(&db).await;
            assert_eq!(Note::query().count(&mut *snapshot).await?, 1);
            add(&db).await;
            assert_eq!(Note::query().all(&mut *snapshot).await?.len(), 1);
            assert_eq!(Note::query().limit(10).all(&mut *snapshot).await?.len(), 1);
            assert!(Note::query().exists(&mut *snapshot).await?);
            add(&db).await;
            assert_eq!(Note::query().stream(&mut *snapshot).count().await, 1);
            for cost in [Cost::Small, Cost::Any] {
                let counted = together(cost, |reads| column(reads, "SELECT count(*) FROM note"));
                assert_eq!(snapshot.read_together(counted).await?, [1]);
            }
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), 4, "{mode:?}");
    }
}

#[tokio::test]
async fn a_snapshot_runs_on_a_task_of_its_own() {
    let db = notes(Mode::Inline).await;
    let task = tokio::spawn(async move {
        db.read(async |snapshot| Note::query().count(&mut *snapshot).await)
            .await
    });
    assert_eq!(task.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn an_error_of_a_query_leaves_the_snapshot_usable() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.read(async |snapshot| {
            for (text, kind) in [
                ("SELECT nosuch FROM note", ErrorKind::Statement),
                ("DELETE FROM note RETURNING id", ErrorKind::Refused),
                ("COMMIT", ErrorKind::Refused),
                ("ROLLBACK", ErrorKind::Refused),
            ] {
                for cost in [Cost::Small, Cost::Any] {
                    let read = Read { cost, ..ask(text) };
                    let error = snapshot.read(read).await.unwrap_err();
                    assert_eq!(error.kind(), kind, "{text}: {error}");
                    assert_eq!(error.statement(), Some(text));
                }
            }
            add(&db).await;
            assert_eq!(Note::query().count(&mut *snapshot).await?, 1);
            Ok(())
        })
        .await
        .unwrap();
        is_free(&db).await;
    }
}

#[tokio::test]
async fn the_error_of_the_closure_is_returned_as_it_is() {
    let db = notes(Mode::Inline).await;
    let error = db
        .read(async |snapshot| -> Result {
            Note::query().count(&mut *snapshot).await?;
            Err(Error::new(ErrorKind::NotFound, "nothing of use"))
        })
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "nothing of use");
    is_free(&db).await;
}

#[tokio::test]
async fn a_panic_in_the_closure_gives_the_connection_back() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let task = tokio::spawn({
            let db = db.clone();
            async move {
                db.read(async |snapshot| -> Result {
                    Note::query().count(&mut *snapshot).await?;
                    resume_unwind(Box::new("the closure panicked"))
                })
                .await
            }
        });
        assert!(task.await.unwrap_err().is_panic());
        is_free(&db).await;
    }
}

#[tokio::test]
async fn dropped_at_any_await_no_transaction_stays_open() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        for polls in 0..40 {
            let read = db.read(async |snapshot| {
                let counted = Note::query().count(&mut *snapshot).await?;
                tokio::task::yield_now().await;
                Note::query().limit(1).all(&mut *snapshot).await?;
                tokio::task::yield_now().await;
                let counted_again = together(Cost::Any, |reads| {
                    column(reads, "SELECT count(*) FROM note")
                });
                let again = snapshot.read_together(counted_again).await?;
                assert_eq!(again[0].cast_unsigned(), counted);
                Ok(())
            });
            drop(dropped_after(polls, read).await);
            is_free(&db).await;
        }
    }
}

/// A thread has the connection: it is stopped, and ends the transaction.
#[tokio::test]
async fn a_query_that_is_dropped_on_its_thread_ends_the_snapshot() {
    let db = notes(Mode::Inline).await;
    db.read(async |snapshot| {
        assert!(dropped_after(1, snapshot.read(ask(LONG))).await.is_none());
        let error = Note::query().count(&mut *snapshot).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded);
        Ok(())
    })
    .await
    .unwrap();
    is_free(&db).await;
}

#[tokio::test]
async fn who_waits_for_a_connection_is_told_where_the_snapshot_was_begun() {
    let db = Database::builder("")
        .readers(1)
        .queue_timeout(Duration::from_millis(1))
        .open_temporary()
        .await
        .unwrap();
    let line = line!() + 1;
    db.read(async |_| {
        let error = Executor::read(&db, ask("SELECT 1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PoolTimeout);
        let place = format!("db.read at {}:{line}", file!());
        assert!(error.to_string().contains(&place), "{error}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Nothing of a snapshot stays in the way of the log once it has ended.
#[tokio::test]
async fn the_log_starts_anew_after_a_snapshot() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.read(async |snapshot| {
            add(&db).await;
            Note::query().count(&mut *snapshot).await
        })
        .await
        .unwrap();
        let checkpoint = db.checkpoint().await.unwrap();
        assert_eq!(checkpoint.frames, checkpoint.moved);
    }
}

#[tokio::test]
async fn arguments_are_bound_in_a_snapshot_as_elsewhere() {
    let db = notes(Mode::Inline).await;
    let found = db
        .read(async |snapshot| {
            let by_text = Read {
                statement: statement(
                    "SELECT id FROM note WHERE text = ?1",
                    vec![Value::Text("more".to_owned())],
                ),
                ..ask("")
            };
            snapshot.read(by_text).await
        })
        .await
        .unwrap();
    assert_eq!(found, [Value::Integer(1)]);
}
