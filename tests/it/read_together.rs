//! Several reads on one state of the database.

use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use anabranch::{
    prelude::*,
    sql::{Cost, Executor, Reads},
    value::Value,
};
use anabranch_tests::{
    Mode, ask, column, execute, start, statement, statement_log::Logged, together, until,
};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc::unbounded_channel;

type Result<T = ()> = anabranch::error::Result<T>;

const COSTS: [Cost; 2] = [Cost::Small, Cost::Any];

const BALANCES: &str = "SELECT balance FROM account ORDER BY id";

/// Two accounts that hold 100 together, and one read connection: what its last user left would be seen.
async fn bank(mode: Mode) -> Database {
    let db = mode
        .set(Database::builder(""))
        .readers(1)
        .open_temporary()
        .await
        .unwrap();
    execute(
        &db,
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
         INSERT INTO account VALUES (1, 60), (2, 40)",
    )
    .await;
    db
}

/// Nothing is left on the connection: it sees what is committed now.
async fn is_free(db: &Database) {
    execute(db, "UPDATE account SET balance = balance + 1").await;
    let seen = Executor::read(db, ask("SELECT balance FROM account WHERE id = 2")).await;
    let present = anabranch_tests::outsider(db.path())
        .query_row("SELECT balance FROM account WHERE id = 2", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(seen.unwrap(), [Value::Integer(present)]);
}

/// Reads one account, lets another task commit, and reads the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_agree_while_another_task_commits_between_them() {
    for mode in Mode::ALL {
        for cost in COSTS {
            let db = bank(mode).await;
            let (begun, mut has_begun) = unbounded_channel();
            let (committed, is_committed) = mpsc::channel::<()>();
            let reads = together(cost, move |reads| {
                let first = column(reads, "SELECT balance FROM account WHERE id = 1")?;
                begun.send(()).unwrap();
                // Until the sender is gone.
                is_committed.recv().unwrap_err();
                let second = column(reads, "SELECT balance FROM account WHERE id = 2")?;
                Ok(first[0] + second[0])
            });
            let reading = tokio::spawn({
                let db = db.clone();
                async move { db.read_together(reads).await }
            });
            has_begun.recv().await.unwrap();
            execute(&db, "UPDATE account SET balance = balance * 2").await;
            drop(committed);
            assert_eq!(reading.await.unwrap().unwrap(), 100, "{mode:?} {cost:?}");
            let sum = Executor::read(&db, ask("SELECT sum(balance) FROM account")).await;
            assert_eq!(sum.unwrap(), [Value::Integer(200)]);
        }
    }
}

/// What a piece of work does with its statements before it fails.
type Work = fn(&mut dyn Reads) -> Result<()>;

#[tokio::test]
async fn an_error_in_the_middle_leaves_the_connection_usable() {
    let works: [(Work, ErrorKind); 4] = [
        (
            |reads| column(reads, "SELECT nosuch FROM account").map(drop),
            ErrorKind::Statement,
        ),
        (
            |reads| column(reads, "DELETE FROM account").map(drop),
            ErrorKind::Refused,
        ),
        (
            |reads| {
                reads.rows(&statement(BALANCES, Vec::new()), &mut |_| {
                    Err(Error::new(ErrorKind::Decode, "it does not fit"))
                })
            },
            ErrorKind::Decode,
        ),
        (
            |_| Err(Error::new(ErrorKind::NotFound, "nothing of use")),
            ErrorKind::NotFound,
        ),
    ];
    for mode in Mode::ALL {
        for cost in COSTS {
            let db = bank(mode).await;
            for (work, kind) in works {
                let failed = db
                    .read_together(together(cost, move |reads| {
                        column(reads, BALANCES)?;
                        work(reads)
                    }))
                    .await;
                let error = failed.unwrap_err();
                assert_eq!(error.kind(), kind, "{mode:?} {cost:?}: {error}");
                let is_of_statement = matches!(kind, ErrorKind::Statement | ErrorKind::Refused);
                assert_eq!(error.statement().is_some(), is_of_statement);
                is_free(&db).await;
            }
        }
    }
}

#[tokio::test]
async fn who_passes_over_an_error_goes_on_in_the_same_state() {
    let db = bank(Mode::Inline).await;
    for cost in COSTS {
        let seen = db
            .read_together(together(cost, |reads| {
                let before = column(reads, BALANCES)?;
                assert!(column(reads, "SELECT nosuch FROM account").is_err());
                assert_eq!(column(reads, BALANCES)?, before);
                Ok(before)
            }))
            .await
            .unwrap();
        assert_eq!(seen, [60, 40]);
    }
}

#[tokio::test]
async fn a_panic_in_the_work_harms_no_connection() {
    for mode in Mode::ALL {
        for cost in COSTS {
            let db = bank(mode).await;
            let panics = together(cost, |reads| -> Result {
                column(reads, BALANCES)?;
                resume_unwind(Box::new("the work panicked"))
            });
            let task = tokio::spawn({
                let db = db.clone();
                async move { db.read_together(panics).await }
            });
            match task.await {
                Ok(read) => assert_eq!(read.unwrap_err().kind(), ErrorKind::Interrupted),
                Err(error) => assert!(error.is_panic()),
            }
            is_free(&db).await;
        }
    }
}

#[tokio::test]
async fn a_dropped_future_stops_the_work_and_leaves_no_transaction_open() {
    let db = bank(Mode::Inline).await;
    let (release, is_released) = mpsc::channel::<()>();
    let (told, is_told) = mpsc::channel();
    let reads = together(Cost::Any, move |reads| {
        column(reads, BALANCES)?;
        told.send(true).unwrap();
        is_released.recv().unwrap_err();
        let next = column(reads, BALANCES);
        told.send(next.is_ok()).unwrap();
        next
    });
    {
        let mut reading = Box::pin(db.read_together(reads));
        start(reading.as_mut());
        assert!(is_told.recv().unwrap());
    }
    drop(release);
    assert!(!is_told.recv().unwrap(), "it went on for nobody");
    is_free(&db).await;
}

/// Work that takes long is moved to a thread, and started anew there, even if it makes something of being stopped.
#[tokio::test]
async fn work_that_outgrows_its_budget_starts_anew_on_a_thread() {
    const LONG: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT max(i) FROM n";
    let db = bank(Mode::Inline).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let before = db.statistics();
    let longest = db
        .read_together(together(Cost::Small, move |reads| {
            counted.fetch_add(1, Ordering::Relaxed);
            column(reads, BALANCES)?;
            Ok(column(reads, LONG).unwrap_or_default())
        }))
        .await
        .unwrap();
    assert_eq!(longest, [100_000]);
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    let after = db.statistics();
    assert_eq!(after.over_budget, before.over_budget + 1);
    assert_eq!(after.reads_threaded, before.reads_threaded + 1);
    is_free(&db).await;
}

#[tokio::test]
async fn each_statement_of_the_work_runs_once() {
    let db = bank(Mode::Inline).await;
    let logged = Logged::new(&db);
    for cost in COSTS {
        let sum = logged
            .read_together(together(cost, |reads| {
                let ids = column(reads, "SELECT id FROM account")?;
                let balances = column(reads, BALANCES)?;
                Ok(ids.len() + balances.len())
            }))
            .await
            .unwrap();
        assert_eq!(sum, 4);
        assert_eq!(logged.take(), ["SELECT id FROM account", BALANCES]);
    }
    Executor::read(&logged, ask(BALANCES)).await.unwrap();
    assert_eq!(logged.stream(ask(BALANCES)).count().await, 2);
    assert_eq!(logged.take(), [BALANCES, BALANCES]);
}

#[tokio::test]
async fn small_work_runs_on_the_task() {
    let db = bank(Mode::Inline).await;
    let here = std::thread::current().id();
    let there = db
        .read_together(together(Cost::Small, |reads| {
            column(reads, BALANCES)?;
            Ok(std::thread::current().id())
        }))
        .await
        .unwrap();
    assert_eq!(here, there);
}

#[tokio::test]
async fn in_a_transaction_the_work_sees_what_the_transaction_did() {
    for mode in Mode::ALL {
        for cost in COSTS {
            let db = bank(mode).await;
            let mut tx = db.begin().await.unwrap();
            sqlx::query("UPDATE account SET balance = 7 WHERE id = 1")
                .execute(&mut *tx)
                .await
                .unwrap();
            let twice = together(cost, |reads| {
                Ok((column(reads, BALANCES)?, column(reads, BALANCES)?))
            });
            let seen = tx.read_together(twice).await.unwrap();
            assert_eq!(seen, (vec![7, 40], vec![7, 40]));
            let fails = together(cost, |reads| column(reads, "SELECT nosuch"));
            let error = tx.read_together(fails).await.unwrap_err();
            assert_eq!(error.statement(), Some("SELECT nosuch"));
            tx.commit().await.unwrap();
            is_free(&db).await;
        }
    }
}

/// Its thread has the connection: the transaction is rolled back, and the writer goes on.
#[tokio::test]
async fn dropped_in_a_transaction_the_work_takes_it_along() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let mut tx = db.begin().await.unwrap();
        sqlx::query("DELETE FROM account")
            .execute(&mut *tx)
            .await
            .unwrap();
        let (release, is_released) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let waits = together(Cost::Any, move |reads| {
            begun.send(()).unwrap();
            is_released.recv().unwrap_err();
            column(reads, BALANCES)
        });
        {
            let mut reading = Box::pin(tx.read_together(waits));
            until("the work began", async || {
                assert!(reading.as_mut().now_or_never().is_none());
                has_begun.try_recv().is_ok()
            })
            .await;
        }
        drop(release);
        let error = tx.read(ask(BALANCES)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded);
        drop(tx);
        is_free(&db).await;
    }
}
