//! Several reads in a session: each of them was seen.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{Arc, atomic::AtomicU32, atomic::Ordering},
};

use anabranch::{
    prelude::*,
    sql::{Cost, Executor, ReadTogether},
};
use anabranch_tests::{column, statement, together};
use futures_util::FutureExt;

use crate::sessions::{MODES, Result, conflict, elsewhere, found_number, run, session, with};

const TABLES: [&str; 2] = [
    "CREATE TABLE one (n INTEGER); CREATE TABLE two (n INTEGER); CREATE TABLE sums (n INTEGER)",
    "INSERT INTO one VALUES (1); INSERT INTO two VALUES (2)",
];
const COSTS: [Cost; 2] = [Cost::Small, Cost::Any];

/// Adds up what is in both tables; the second statement depends on the first.
fn sum(cost: Cost) -> ReadTogether<i64> {
    together(cost, |reads| {
        let one: i64 = column(reads, "SELECT n FROM one")?.iter().sum();
        let two: i64 = column(reads, "SELECT n FROM two")?.iter().sum();
        Ok(one + two)
    })
}

#[tokio::test]
async fn a_commit_that_changes_what_one_of_them_saw_is_a_conflict() {
    for mode in MODES {
        for cost in COSTS {
            let db = with(mode, &TABLES).await;
            for (change, table, text) in [
                ("UPDATE one SET n = n + 1", "one", "SELECT n FROM one"),
                ("UPDATE two SET n = n + 1", "two", "SELECT n FROM two"),
            ] {
                let mut session = session(&db).await;
                session.read_together(sum(cost)).await.unwrap();
                run(&mut *session, "INSERT INTO sums VALUES (0)")
                    .await
                    .unwrap();
                anabranch_tests::execute(&db, change).await;
                let error = conflict(session).await;
                assert_eq!(error.statement(), Some(text));
                assert_eq!(error.table(), Some(table));
            }
        }
    }
}

#[tokio::test]
async fn what_none_of_them_saw_conflicts_with_nothing() {
    for mode in MODES {
        for cost in COSTS {
            let db = with(mode, &TABLES).await;
            let mut session = session(&db).await;
            let sum = session.read_together(sum(cost)).await.unwrap();
            sqlx::query("INSERT INTO sums VALUES (?)")
                .bind(sum)
                .execute(&mut *session)
                .await
                .unwrap();
            anabranch_tests::execute(&db, "UPDATE two SET n = n").await;
            session.commit().await.unwrap();
            assert_eq!(found_number(&db, "SELECT sum(n) FROM sums"), 3);
        }
    }
}

/// The rows that were taken before the error were seen; those after it were not.
#[tokio::test]
async fn rows_that_were_taken_before_an_error_were_seen() {
    for mode in MODES {
        for cost in COSTS {
            for (change, conflicts) in [
                ("UPDATE one SET n = 9 WHERE n = 1", true),
                ("UPDATE one SET n = 9 WHERE n = 2", false),
            ] {
                let db = with(mode, &TABLES).await;
                anabranch_tests::execute(&db, "INSERT INTO one VALUES (2)").await;
                let mut session = session(&db).await;
                let first = together(cost, |reads| -> Result {
                    reads.rows(
                        &statement("SELECT n FROM one ORDER BY rowid", Vec::new()),
                        &mut |_| Err(Error::new(ErrorKind::Decode, "enough")),
                    )
                });
                let error = session.read_together(first).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Decode);
                run(&mut *session, "INSERT INTO sums VALUES (0)")
                    .await
                    .unwrap();
                anabranch_tests::execute(&db, change).await;
                if conflicts {
                    conflict(session).await;
                } else {
                    session.commit().await.unwrap();
                }
            }
        }
    }
}

/// Whoever catches the panic knows what was read before it.
#[tokio::test]
async fn what_was_read_before_a_panic_was_seen() {
    for mode in MODES {
        for cost in COSTS {
            let db = with(mode, &TABLES).await;
            let mut session = session(&db).await;
            let panics = together(cost, |reads| -> Result {
                column(reads, "SELECT n FROM one")?;
                resume_unwind(Box::new("the work panicked"))
            });
            let reading = AssertUnwindSafe(session.read_together(panics));
            assert!(reading.catch_unwind().await.is_err());
            run(&mut *session, "INSERT INTO sums VALUES (0)")
                .await
                .unwrap();
            anabranch_tests::execute(&db, "UPDATE one SET n = 9").await;
            conflict(session).await;
        }
    }
}

#[tokio::test]
async fn a_closure_runs_again_when_a_read_of_it_was_overtaken() {
    for mode in MODES {
        let db = with(mode, &TABLES).await;
        let runs = Arc::new(AtomicU32::new(0));
        let sum = db
            .concurrent(async |s| {
                let sum = s.read_together(sum(Cost::Any)).await?;
                run(&mut *s, "INSERT INTO sums VALUES (0)").await?;
                if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                    elsewhere(&db, "UPDATE two SET n = 20").await;
                }
                Ok(sum)
            })
            .await
            .unwrap();
        assert_eq!((sum, runs.load(Ordering::Relaxed)), (21, 2));
        assert_eq!(found_number(&db, "SELECT count(*) FROM sums"), 1);
    }
}

#[tokio::test]
async fn the_last_attempt_reads_in_the_writers_slot() {
    for mode in MODES {
        let db = with(mode, &TABLES).await;
        let options = ConcurrentOptions::new().max_attempts(1);
        let (sum, is_exclusive) = db
            .concurrent_with(options, async |s| {
                let sum = s.read_together(sum(Cost::Any)).await?;
                run(&mut *s, "INSERT INTO sums VALUES (0)").await?;
                if !s.is_exclusive() {
                    elsewhere(&db, "UPDATE two SET n = 20").await;
                }
                Ok((sum, s.is_exclusive()))
            })
            .await
            .unwrap();
        assert_eq!((sum, is_exclusive), (21, true));
    }
}
