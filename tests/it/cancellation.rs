//! Futures that are dropped, and transactions that end badly: section B of docs/cases.md.

use std::time::{Duration, Instant};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, ask, dropped_after, execute,
    note::{Note, note},
    outsider, until,
};
use futures_util::{StreamExt, TryStreamExt};

async fn with_notes(builder: anabranch::database::DatabaseBuilder) -> Database {
    let db = builder.open_temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    db
}

/// The transaction of nobody is open: another program can write at once.
fn assert_unlocked(db: &Database) {
    let other = outsider(db.path());
    other.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
}

/// Cases 16 and 18 (and 17, for SQLite): a `begin` that was dropped half-way left the only writer inside of a
/// transaction, and every later one failed, or ran inside of it and lost its writes.
#[tokio::test]
async fn a_begin_that_is_dropped_half_way_leaves_nothing_open() {
    for (mode, rounds) in [
        (Mode::Inline, 10_000),
        (Mode::Threaded, 3_000),
        (Mode::Full, 1_000),
    ] {
        let db = with_notes(mode.set(Database::builder(""))).await;
        for round in 0..rounds {
            drop(dropped_after(round % 7, db.begin()).await);
        }
        db.write(async |tx| {
            let mut ctx = tx.context();
            ctx.add(note("kept"));
            ctx.save_changes().await.map(drop)
        })
        .await
        .unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), 1, "{mode:?}");
        assert_unlocked(&db);
    }
}

/// Case 16, further on: dropped at any await of a whole transaction, it is there or not, and the next one works.
#[tokio::test]
async fn a_write_that_is_dropped_anywhere_is_whole_or_not_there() {
    for mode in Mode::ALL {
        let db = with_notes(mode.set(Database::builder(""))).await;
        let mut answered = 0;
        for round in 0..600 {
            let write = db.write(async |tx| {
                for _ in 0..2 {
                    sqlx::query("INSERT INTO note (text) VALUES ('raw')")
                        .execute(&mut *tx)
                        .await?;
                }
                let mut ctx = tx.context();
                ctx.add(note("typed"));
                ctx.save_changes().await.map(drop)
            });
            if let Some(written) = dropped_after(round % 60, write).await {
                written.unwrap();
                answered += 1;
            }
        }
        // Waits for the roll-back of the last one, which a thread may be at.
        db.begin().await.unwrap().rollback().await.unwrap();
        let rows = Note::query().count(&db).await.unwrap();
        assert_eq!(rows % 3, 0, "{mode:?}: half a transaction");
        assert!(rows >= 3 * answered, "{mode:?}: an answered one is lost");
        assert_unlocked(&db);
    }
}

/// Case 18: the same for a guard that is dropped at once, and for one that is dropped with work in it.
#[tokio::test]
async fn a_dropped_guard_is_rolled_back_before_the_next_begins() {
    for mode in Mode::ALL {
        let db = with_notes(mode.set(Database::builder(""))).await;
        for _ in 0..50 {
            drop(db.begin().await.unwrap());
            let mut tx = db.begin().await.unwrap();
            sqlx::query("INSERT INTO note (text) VALUES ('lost')")
                .execute(&mut *tx)
                .await
                .unwrap();
            drop(tx);
        }
        let mut tx = db.begin().await.unwrap();
        assert_eq!(Note::query().count(&mut *tx).await.unwrap(), 0, "{mode:?}");
        tx.commit().await.unwrap();
    }
}

/// Case 16: a save dropped while it is queued writes nothing, one dropped later is settled by the next: never two.
#[tokio::test]
async fn a_save_that_is_dropped_and_called_again_writes_once() {
    for mode in Mode::ALL {
        let db = with_notes(mode.set(Database::builder(""))).await;
        for round in 0..300 {
            let mut ctx = db.context();
            let row = ctx.add(note(format!("{round}")));
            for polls in 0..3 {
                drop(dropped_after(polls, ctx.save_changes()).await);
            }
            ctx.save_changes().await.unwrap();
            assert!(ctx[row].id > 0);
        }
        assert_eq!(Note::query().count(&db).await.unwrap(), 300, "{mode:?}");
    }
}

const DEFERRED: &str = "
    CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE child (
        id INTEGER PRIMARY KEY,
        parent INTEGER NOT NULL REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED
    ) STRICT";

/// Case 20: COMMIT failed on a deferred reference, and left the transaction open.
#[tokio::test]
async fn a_commit_refused_for_a_deferred_reference_is_rolled_back() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        execute(&db, DEFERRED).await;
        let orphan = "INSERT INTO child (parent) VALUES (7)";
        let written = db
            .write(async |tx| {
                sqlx::query(orphan).execute(&mut *tx).await?;
                Ok(())
            })
            .await;
        assert_eq!(written.unwrap_err().kind(), ErrorKind::ForeignKey);
        let mut tx = db.begin().await.unwrap();
        sqlx::query(orphan).execute(&mut *tx).await.unwrap();
        let error = tx.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignKey, "{mode:?}");

        execute(&db, "INSERT INTO parent VALUES (1)").await;
        let mut tx = db.begin().await.unwrap();
        // Broken in between, and mended before its end: that is what deferring is for.
        sqlx::query(orphan).execute(&mut *tx).await.unwrap();
        sqlx::query("INSERT INTO parent VALUES (7)")
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_unlocked(&db);
    }
}

/// Case 20: a save is not to blame for what raw SQL of the same transaction left to be mended.
#[tokio::test]
async fn a_save_beside_a_reference_that_is_still_open_goes_through() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    execute(&db, DEFERRED).await;
    db.write(async |tx| {
        sqlx::query("INSERT INTO child (parent) VALUES (7)")
            .execute(&mut *tx)
            .await?;
        let mut ctx = tx.context();
        ctx.add(note("beside"));
        ctx.save_changes().await?;
        drop(ctx);
        sqlx::query("INSERT INTO parent VALUES (7)")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(Note::query().count(&db).await.unwrap(), 1);
}

/// Case 21: SQLite had rolled back by itself, and the library's own roll-back error hid the first one.
#[tokio::test]
async fn the_first_error_is_kept_when_sqlite_rolls_back_by_itself() {
    for mode in Mode::ALL {
        let db = with_notes(mode.set(Database::builder(""))).await;
        execute(
            &db,
            "CREATE TRIGGER no_poison BEFORE INSERT ON note WHEN NEW.text = 'poison'
             BEGIN SELECT RAISE(ROLLBACK, 'no poison here'); END",
        )
        .await;
        let poison = "INSERT INTO note (text) VALUES ('poison')";
        let raw = db
            .write(async |tx| {
                sqlx::query(poison).execute(&mut *tx).await?;
                Ok(())
            })
            .await;
        let in_a_savepoint = db
            .write(async |tx| {
                tx.savepoint(async |tx| {
                    sqlx::query(poison).execute(&mut *tx).await?;
                    Ok(())
                })
                .await
            })
            .await;
        let typed = db
            .write(async |tx| {
                let mut ctx = tx.context();
                ctx.add(note("poison"));
                ctx.save_changes().await.map(drop)
            })
            .await;
        for written in [raw, in_a_savepoint, typed] {
            let error = written.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{mode:?}: {error:?}");
            assert!(error.to_string().contains("no poison here"), "{error}");
        }
        execute(&db, "INSERT INTO note (text) VALUES ('fine')").await;
        assert_eq!(Note::query().count(&db).await.unwrap(), 1);
    }
}

/// Case 21: what comes after the end of a transaction runs nowhere else: it is told, and so is the commit.
#[tokio::test]
async fn nothing_runs_outside_of_a_transaction_that_sqlite_ended() {
    for mode in Mode::ALL {
        let db = with_notes(mode.set(Database::builder(""))).await;
        execute(
            &db,
            "CREATE TABLE once (a TEXT UNIQUE ON CONFLICT ROLLBACK); INSERT INTO once VALUES ('a')",
        )
        .await;
        let mut tx = db.begin().await.unwrap();
        let twice = sqlx::query("INSERT INTO once VALUES ('a')");
        twice.execute(&mut *tx).await.unwrap_err();
        sqlx::query("INSERT INTO note (text) VALUES ('outside')")
            .execute(&mut *tx)
            .await
            .unwrap_err();
        let error = Note::query().count(&mut *tx).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded);
        let error = tx.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{mode:?}");
        assert!(error.is_retryable());
        assert_eq!(Note::query().count(&db).await.unwrap(), 0);
    }
}

/// Case 24: the first BEGIN IMMEDIATE was told BUSY, and the client's own lock was never let go of.
/// Case 25: a statement that was told BUSY was not reset: the next commit failed, and kept the file's lock.
#[tokio::test]
async fn a_begin_that_is_told_busy_gives_back_what_it_held() {
    for mode in Mode::ALL {
        let db = with_notes(
            mode.set(Database::builder(""))
                .busy_timeout(Duration::from_millis(20)),
        )
        .await;
        let other = outsider(db.path());
        for _ in 0..3 {
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            let error = db.begin().await.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy, "{mode:?}");
            let mut ctx = db.context();
            ctx.add(note("typed"));
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy, "{mode:?}");
            other.execute_batch("COMMIT").unwrap();

            ctx.save_changes().await.unwrap();
            execute(&db, "INSERT INTO note (text) VALUES ('raw')").await;
            assert_unlocked(&db);
        }
        assert_eq!(Note::query().count(&db).await.unwrap(), 6);
    }
}

/// Case 26: BEGIN succeeded, the first statement failed, and nobody rolled back.
#[tokio::test]
async fn a_transaction_whose_first_statement_fails_is_rolled_back() {
    for mode in Mode::ALL {
        let db = with_notes(mode.set(Database::builder(""))).await;
        let mut tx = db.begin().await.unwrap();
        let error = sqlx::query("SELECT * FROM nosuch")
            .fetch_all(&mut *tx)
            .await
            .map_err(Error::from)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
        drop(tx);
        let error = db
            .write(async |tx| Note::find(&mut *tx, i64::MAX).await?.ok_or_else(not_there))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        db.begin().await.unwrap().rollback().await.unwrap();
        assert_unlocked(&db);
    }
}

fn not_there() -> Error {
    Error::new(ErrorKind::NotFound, "it is not there")
}

/// Case 28: a read directly after a write missed the row, since the write's statement was reset on another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_after_a_write_sees_it_ten_thousand_times() {
    for (mode, rounds) in [
        (Mode::Inline, 10_000),
        (Mode::Threaded, 2_000),
        (Mode::Full, 200),
    ] {
        let db = with_notes(mode.set(Database::builder(""))).await;
        for round in 0..rounds {
            let mut ctx = db.context();
            let row = ctx.add(note("mine"));
            ctx.save_changes().await.unwrap();
            let found = Note::find(&db, ctx[row].id).await.unwrap();
            assert_eq!(found.as_ref(), Some(&ctx[row]), "{mode:?}, {round}");
        }
    }
}

/// Case 28, for raw SQL in exclusive transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_after_a_raw_write_sees_it() {
    for (mode, rounds) in [
        (Mode::Inline, 500),
        (Mode::Threaded, 500),
        (Mode::Full, 100),
    ] {
        let db = with_notes(mode.set(Database::builder(""))).await;
        for round in 1..=rounds {
            execute(&db, "INSERT INTO note (text) VALUES ('raw')").await;
            let found = Note::query().count(&db).await.unwrap();
            assert_eq!(found, round, "{mode:?}");
        }
    }
}

const ENDLESS: &str = "
    CREATE VIEW endless (id, text) AS
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000000) SELECT i, '' FROM n";

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "endless")]
struct Endless {
    #[entity(id)]
    id: i64,
    text: String,
}

/// Case 29: a slow query went on after its caller had given up, until the pool was used up by such.
/// Case 30: stopping it hit whatever the connection ran by then.
#[tokio::test]
async fn an_abandoned_query_stops_and_its_connection_is_used_again() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = with_notes(mode.set(Database::builder("").readers(1))).await;
        execute(&db, ENDLESS).await;
        let began = Instant::now();
        for _ in 0..5 {
            let slow = Endless::query().count(&db);
            let given_up = tokio::time::timeout(Duration::from_millis(20), slow).await;
            assert!(given_up.is_err(), "a billion rows in no time");
            // There is one read connection, so this waits for it; and it must not be stopped in the other's place.
            for _ in 0..20 {
                assert_eq!(Note::query().count(&db).await.unwrap(), 0);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(15));
    }
}

/// Cases 29 and 30, inside of a transaction: a query that is dropped is stopped, and what follows is not.
#[tokio::test]
async fn an_abandoned_query_in_a_transaction_leaves_it_usable() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = with_notes(mode.set(Database::builder(""))).await;
        execute(&db, ENDLESS).await;
        let mut tx = db.begin().await.unwrap();
        sqlx::query("INSERT INTO note (text) VALUES ('before')")
            .execute(&mut *tx)
            .await
            .unwrap();
        let slow = sqlx::query("SELECT count(*) FROM endless").fetch_one(&mut *tx);
        let given_up = tokio::time::timeout(Duration::from_millis(20), slow).await;
        assert!(given_up.is_err());
        sqlx::query("INSERT INTO note (text) VALUES ('after')")
            .execute(&mut *tx)
            .await
            .unwrap();
        // One that is read in part only.
        let rows = sqlx::query("SELECT id FROM endless").fetch(&mut *tx);
        let some: Vec<_> = rows.take(3).try_collect().await.unwrap();
        assert_eq!(some.len(), 3);
        tx.commit().await.unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), 2, "{mode:?}");
    }
}

/// Case 30: of two queries that begin one after the other, only the one that is given up is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_one_query_never_stops_the_next() {
    let db = with_notes(Database::builder("").readers(1)).await;
    execute(
        &db,
        "INSERT INTO note (text)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) SELECT 'row' FROM n",
    )
    .await;
    for round in 0..500 {
        drop(dropped_after(round % 4, Note::query().all(&db)).await);
        assert_eq!(Note::query().count(&db).await.unwrap(), 300);
    }
}

/// Case 29: a half-read stream that is dropped pins neither its connection nor the log.
#[tokio::test]
async fn half_read_streams_pin_nothing_once_they_are_dropped() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = with_notes(mode.set(Database::builder("").readers(4))).await;
        execute(
            &db,
            "INSERT INTO note (text)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT 'row' FROM n",
        )
        .await;
        let mut streams = Vec::new();
        for _ in 0..4 {
            let mut rows = Note::query().stream(&db);
            rows.next().await.unwrap().unwrap();
            streams.push(rows);
        }
        execute(&db, "INSERT INTO note (text) VALUES ('newer')").await;
        let pinned = db.checkpoint().await.unwrap();
        assert!(pinned.frames > 0, "the snapshots are held: {pinned:?}");
        drop(streams);
        until("the log is cut", async || {
            let checkpoint = db.checkpoint().await.unwrap();
            checkpoint.is_complete() && checkpoint.frames == 0
        })
        .await;
        let log = format!("{}-wal", db.path().display());
        assert_eq!(std::fs::metadata(log).unwrap().len(), 0);
        // All four are free again.
        let again = futures_util::future::join_all((0..4).map(|_| read_one(&db))).await;
        assert_eq!(again.len(), 4);
    }
}

async fn read_one(db: &Database) {
    use anabranch::sql::Executor;
    Executor::read(db, ask("SELECT 1")).await.unwrap();
}
