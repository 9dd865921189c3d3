//! `db.concurrent`: how often the closure runs, what it may call, and what becomes of its errors and panics.

use std::{
    cell::{Cell, RefCell},
    panic::AssertUnwindSafe,
    time::Duration,
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
    outsider,
};
use futures_util::FutureExt;

use crate::sessions::{LEVELS, MODES, Result, conflict, found_number, number, run, session};

const READ: &str = "SELECT hits FROM counter";
const WRITE: &str = "UPDATE counter SET hits = hits + 1";

async fn counter(mode: Mode) -> Database {
    let db = notes(mode).await;
    execute(&db, "CREATE TABLE counter (hits INT)").await;
    execute(&db, "INSERT INTO counter VALUES (0)").await;
    db
}

#[tokio::test]
async fn a_closure_that_always_conflicts_ends_in_an_exclusive_run() -> Result {
    for mode in MODES {
        for attempts in [0, 1, 2, 5] {
            let db = counter(mode).await;
            let other = outsider(db.path());
            other.busy_timeout(Duration::ZERO).unwrap();
            let exclusive = RefCell::new(Vec::new());
            let options = ConcurrentOptions::new().max_attempts(attempts);
            let seen = db
                .concurrent_with(options, async |s| {
                    let seen = number(&mut *s, READ).await?;
                    // Another program, each time; at last it finds the file locked.
                    let bumped = other.execute(WRITE, []).is_ok();
                    assert_ne!(bumped, s.is_exclusive());
                    exclusive.borrow_mut().push(s.is_exclusive());
                    run(&mut *s, WRITE).await?;
                    Ok(seen)
                })
                .await?;
            let mut expected = vec![false; attempts as usize];
            expected.push(true);
            assert_eq!(exclusive.into_inner(), expected, "{mode:?}");
            assert_eq!(seen, i64::from(attempts));
            assert_eq!(found_number(&db, READ), i64::from(attempts) + 1);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_closure_that_conflicts_once_is_run_again_on_what_is_there_by_then() -> Result {
    for mode in MODES {
        let db = counter(mode).await;
        let other = outsider(db.path());
        let seen = RefCell::new(Vec::new());
        db.concurrent(async |s| {
            let read = number(&mut *s, READ).await?;
            seen.borrow_mut().push(read);
            if s.attempt() == 1 {
                other.execute(WRITE, []).unwrap();
            }
            let mut ctx = s.context();
            ctx.add(note("in each run"));
            ctx.save_changes().await.map(drop)
        })
        .await?;
        assert_eq!(seen.into_inner(), [0, 1]);
        assert_eq!(Note::query().count(&db).await?, 1, "{mode:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_row_loses_no_update() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = counter(mode).await;
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..6 {
                let db = db.clone();
                tasks.spawn(async move {
                    for _ in 0..20 {
                        let options = ConcurrentOptions::new().isolation(isolation);
                        db.concurrent_with(options, async move |s| {
                            let hits = number(&mut *s, READ).await?;
                            tokio::task::yield_now().await;
                            sqlx::query("UPDATE counter SET hits = ?")
                                .bind(hits + 1)
                                .execute(&mut *s)
                                .await?;
                            Ok(())
                        })
                        .await?;
                    }
                    Result::Ok(())
                });
            }
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap()?;
            }
            assert_eq!(found_number(&db, READ), 120, "{mode:?}, {isolation:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_error_of_the_closure_is_returned_and_everything_undone() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let runs = Cell::new(0);
        let error = db
            .concurrent(async |s| {
                runs.set(runs.get() + 1);
                run(&mut *s, "INSERT INTO note (text) VALUES ('undone')").await?;
                Err::<(), _>(Error::application("no"))
            })
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Application);
        assert_eq!(error.to_string(), "no");
        assert_eq!(runs.get(), 1);
        assert_eq!(Note::query().count(&db).await?, 0, "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_panic_of_the_closure_is_rolled_back_and_harms_nobody() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        for round in 0..20 {
            let work = db.concurrent(async |s| {
                run(&mut *s, "INSERT INTO note (text) VALUES ('lost')").await?;
                let mut ctx = s.context();
                ctx.add(note("lost"));
                ctx.save_changes().await?;
                assert!(round < 0, "a panic of the application");
                Ok(())
            });
            assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
            // Not taken for a write inside of a write.
            db.concurrent(async |s| run(&mut *s, "INSERT INTO note (text) VALUES ('kept')").await)
                .await?;
            execute(&db, "INSERT INTO note (text) VALUES ('kept')").await;
        }
        let lost = Note::query().filter(Note::TEXT.eq("lost"));
        assert_eq!(lost.count(&db).await?, 0, "{mode:?}");
        assert_eq!(Note::query().count(&db).await?, 40);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_with_a_session_gives_its_place_back() -> Result {
    let db = notes(Mode::Inline).await;
    for _ in 0..40 {
        let handle = db.clone();
        let task = tokio::spawn(async move {
            let mut s = handle
                .begin_concurrent(Isolation::Serializable)
                .await
                .unwrap();
            run(&mut *s, "INSERT INTO note (text) VALUES ('lost')")
                .await
                .unwrap();
            panic!("a panic of the application");
        });
        assert!(task.await.unwrap_err().is_panic());
    }
    session(&db).await.commit().await?;
    assert_eq!(Note::query().count(&db).await?, 0);
    Ok(())
}

fn is_nested<T>(outcome: Result<T>) {
    let error = outcome.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Nested, "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_write_inside_of_a_closure_is_refused_at_once() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        db.concurrent(async |s| {
            is_nested(db.write(async |_| Ok(())).await);
            is_nested(db.concurrent(async |_| Ok(())).await);
            is_nested(db.begin().await);
            is_nested(db.begin_concurrent(Isolation::Serializable).await);
            let mut ctx = db.context();
            ctx.add(note("would wait for itself"));
            is_nested(ctx.save_changes().await);
            // Reads of what is committed are none, and the session is fine.
            assert_eq!(Note::query().count(&db).await?, 0);
            run(&mut *s, "INSERT INTO note (text) VALUES ('kept')").await
        })
        .await?;
        db.write(async |_| {
            is_nested(db.concurrent(async |_| Ok(())).await);
            is_nested(db.begin_concurrent(Isolation::Snapshot).await);
            Ok(())
        })
        .await?;
        assert_eq!(Note::query().count(&db).await?, 1, "{mode:?}");
        // Another database is another writer.
        let other = notes(mode).await;
        db.concurrent(async |_| {
            other
                .concurrent(async |s| run(&mut *s, "INSERT INTO note (text) VALUES ('a')").await)
                .await
        })
        .await?;
        assert_eq!(Note::query().count(&other).await?, 1);
    }
    Ok(())
}

/// Sessions that are held are independent of each other; inside of a closure it would be easy to wait for oneself.
#[tokio::test]
async fn a_closure_may_run_beside_a_session_that_is_held() -> Result {
    let db = counter(Mode::Inline).await;
    let mut held = session(&db).await;
    assert_eq!(number(&mut *held, READ).await?, 0);
    db.concurrent(async |s| run(&mut *s, WRITE).await).await?;
    run(&mut *held, WRITE).await?;
    let error = conflict(held).await;
    assert_eq!(error.statement(), Some(READ));
    assert_eq!(found_number(&db, READ), 1);
    Ok(())
}

/// Work of a session that only read is not validated, whatever came meanwhile: it is as if it had run before.
#[tokio::test]
async fn a_closure_that_only_reads_runs_once() -> Result {
    for isolation in LEVELS {
        let db = counter(Mode::Inline).await;
        let other = outsider(db.path());
        let runs = Cell::new(0);
        let options = ConcurrentOptions::new().isolation(isolation);
        let both = db
            .concurrent_with(options, async |s| {
                runs.set(runs.get() + 1);
                let before = number(&mut *s, READ).await?;
                other.execute(WRITE, []).unwrap();
                Ok((before, number(&mut *s, READ).await?))
            })
            .await?;
        assert_eq!((both, runs.get()), ((0, 0), 1));
    }
    Ok(())
}
