//! The limits of sessions: how long, how much, how many, and how long their validation may hold the writer. Each has an
//! error of its own, after which a session can only be rolled back, and everybody else goes on.

use std::{
    cell::{Cell, RefCell},
    pin::pin,
    time::Duration,
};

use anabranch::{
    database::DatabaseBuilder,
    engine::SessionGuard,
    error::{Error, Result},
    prelude::*,
};
use anabranch_tests::{
    Mode,
    note::{Note, note},
    start, until,
};
use futures_util::future::{join, join_all};

const INSERT: &str = "INSERT INTO note (id, text) VALUES (next_id('note'), 'raw')";

/// Three modes of execution, two places for sessions, and what a test chooses besides.
async fn limited(mode: Mode, choose: impl Fn(DatabaseBuilder) -> DatabaseBuilder) -> Database {
    let builder = mode.set(Database::builder("").sessions(2));
    let db = choose(builder).open_temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    db
}

async fn session(db: &Database) -> SessionGuard {
    let session = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    assert!(!session.is_exclusive());
    session
}

async fn insert(s: &mut Session) -> Result<()> {
    sqlx::query(INSERT).execute(&mut *s).await?;
    Ok(())
}

/// The error of a limit: what it says, and that trying again unchanged is no use.
fn assert_limit(error: &Error, option: &str) {
    assert_eq!(error.kind(), ErrorKind::SessionLimit, "{error}");
    assert!(error.to_string().contains(option), "{error}");
    assert!(
        !error.is_retryable() && !error.is_conflict(),
        "the same work would meet it again"
    );
}

/// After a limit nothing runs in the session any more, and its commit is refused: nothing of it is written, and both
/// places are free afterwards.
async fn assert_only_rolled_back(db: &Database, mut s: SessionGuard, option: &str) {
    assert_limit(&insert(&mut s).await.unwrap_err(), option);
    assert_limit(&Note::query().count(&mut *s).await.unwrap_err(), option);
    assert_limit(&s.next_id::<Note>().await.unwrap_err(), option);
    let savepoint = s.savepoint(async |_| Ok(())).await;
    assert_limit(&savepoint.unwrap_err(), option);
    let mut ctx = s.context();
    ctx.add(note("too late"));
    assert_limit(&ctx.save_changes().await.unwrap_err(), option);
    drop(ctx);
    assert_limit(&s.commit().await.unwrap_err(), option);
    assert_is_whole(db).await;
    assert_eq!(Note::query().count(db).await.unwrap(), 0);
}

/// Both places for sessions are free, and the writer is.
async fn assert_is_whole(db: &Database) {
    let (one, two) = (session(db).await, session(db).await);
    one.rollback().await.unwrap();
    two.rollback().await.unwrap();
    let mut ctx = db.context();
    let beside = ctx.add(note("beside"));
    ctx.save_changes().await.unwrap();
    ctx.remove(beside);
    ctx.save_changes().await.unwrap();
    assert_eq!(db.statistics().session_alarms, 0);
}

#[tokio::test]
async fn a_session_that_is_too_old_can_only_be_rolled_back() {
    for mode in Mode::ALL {
        let db = limited(mode, |options| {
            options.session_age(Duration::from_millis(500))
        })
        .await;
        let mut s = session(&db).await;
        insert(&mut s).await.unwrap();
        until("the session is too old", async || {
            match Note::query().count(&mut *s).await {
                Ok(_) => false,
                Err(error) => {
                    assert_limit(&error, "session_age");
                    true
                }
            }
        })
        .await;
        assert_only_rolled_back(&db, s, "session_age").await;
    }
}

#[tokio::test]
async fn a_session_with_too_many_statements_can_only_be_rolled_back() {
    for mode in Mode::ALL {
        let db = limited(mode, |options| options.session_statements(3)).await;
        let mut s = session(&db).await;
        insert(&mut s).await.unwrap();
        Note::query().count(&mut *s).await.unwrap();
        insert(&mut s).await.unwrap();
        let error = insert(&mut s).await.unwrap_err();
        assert_limit(&error, "session_statements");
        assert_only_rolled_back(&db, s, "session_statements").await;

        // As many as may be are no trouble.
        let mut s = session(&db).await;
        for _ in 0..3 {
            insert(&mut s).await.unwrap();
        }
        s.commit().await.unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), 3, "{mode:?}");
    }
}

#[tokio::test]
async fn a_session_that_needs_too_much_memory_can_only_be_rolled_back() {
    let large = "x".repeat(100_000);
    for mode in Mode::ALL {
        let db = limited(mode, |options| {
            options
                .cache_size(Bytes::kib(64))
                .session_memory(Bytes::mib(1))
        })
        .await;
        // By the values of saves, and by those bound in raw SQL.
        let mut s = session(&db).await;
        let mut ctx = s.context();
        let error = loop {
            ctx.add(note(large.clone()));
            match ctx.save_changes().await {
                Ok(_) => assert!(ctx.iter::<Note>().count() < 20, "there is a bound"),
                Err(error) => break error,
            }
        };
        drop(ctx);
        assert_limit(&error, "session_memory");
        assert_only_rolled_back(&db, s, "session_memory").await;

        let mut s = session(&db).await;
        let mut error = None;
        for _ in 0..20 {
            let insert = "INSERT INTO note (id, text) VALUES (next_id('note'), ?)";
            let inserted = sqlx::query(insert).bind(&large).execute(&mut *s).await;
            error = inserted.err().map(Error::from);
            if error.is_some() {
                break;
            }
        }
        assert_limit(&error.unwrap(), "session_memory");
        assert_only_rolled_back(&db, s, "session_memory").await;
    }
}

#[tokio::test]
async fn a_closure_that_meets_a_limit_is_not_run_again() {
    let db = limited(Mode::Inline, |options| options.session_statements(2)).await;
    let runs = Cell::new(0);
    let error = db
        .concurrent(async |s| {
            runs.set(runs.get() + 1);
            for _ in 0..3 {
                insert(&mut *s).await?;
            }
            Ok(())
        })
        .await
        .unwrap_err();
    assert_limit(&error, "session_statements");
    assert_eq!(runs.get(), 1);
    assert_is_whole(&db).await;
    // The queue has no such limit.
    let exclusive = ConcurrentOptions::new().max_attempts(0);
    db.concurrent_with(exclusive, async |s| {
        for _ in 0..3 {
            insert(&mut *s).await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(Note::query().count(&db).await.unwrap(), 3);
}

/// Far more than a millisecond of work.
const SLOW: &str = "INSERT INTO note (id, text) WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT 1000000 + i, 'slow' FROM n";

fn hasty(options: DatabaseBuilder) -> DatabaseBuilder {
    options.commit_hold(Duration::from_millis(1))
}

#[tokio::test]
async fn a_validation_that_holds_the_writer_for_too_long_is_stopped_and_harms_no_neighbour() {
    for mode in Mode::ALL {
        let db = limited(mode, hasty).await;
        let mut s = session(&db).await;
        sqlx::query(SLOW).execute(&mut *s).await.unwrap();

        // Saves that share the commit are written all the same.
        let mut contexts: Vec<_> = (0..4).map(|_| db.context()).collect();
        let held = db.begin().await.unwrap();
        let saves = contexts.iter_mut().map(|ctx| {
            ctx.add(note("neighbour"));
            ctx.save_changes()
        });
        let mut all = pin!(join(s.commit(), join_all(saves)));
        start(all.as_mut());
        held.rollback().await.unwrap();
        let (session, saves) = all.await;
        for save in saves {
            save.unwrap();
        }
        let error = session.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitTimeout, "{error}");
        assert!(error.to_string().contains("commit_hold"), "{error}");
        assert_eq!(error.waited(), Some(Duration::from_millis(1)));
        assert!(error.is_retryable() && !error.is_conflict());
        assert_eq!(Note::query().count(&db).await.unwrap(), 4, "{mode:?}");
        assert_is_whole(&db).await;
    }
}

#[tokio::test]
async fn a_closure_whose_validation_takes_too_long_ends_in_the_queue() {
    for mode in Mode::ALL {
        let db = limited(mode, hasty).await;
        let exclusive = RefCell::new(Vec::new());
        let options = ConcurrentOptions::new().max_attempts(2);
        db.concurrent_with(options, async |s| {
            exclusive.borrow_mut().push(s.is_exclusive());
            sqlx::query(SLOW).execute(&mut *s).await?;
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(exclusive.into_inner(), [false, false, true], "{mode:?}");
        assert_eq!(Note::query().count(&db).await.unwrap(), 200_000);
        assert_is_whole(&db).await;
    }
}

#[tokio::test]
async fn more_sessions_than_there_are_places_wait_and_their_timeout_names_who_has_one() {
    for mode in Mode::ALL {
        let timeout = Duration::from_millis(500);
        let db = limited(mode, |options| options.queue_timeout(timeout)).await;
        let one = session(&db).await;
        let two = session(&db).await;
        let error = db.begin_concurrent(Isolation::Serializable).await;
        let error = error.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PoolTimeout, "{error}");
        let said = error.to_string();
        assert!(said.contains("no place for a session"), "{said}");
        assert!(said.contains("2 in all, 0 idle"), "{said}");
        assert!(said.contains("session_limits.rs"), "{said}");
        assert!(error.waited().is_some_and(|waited| waited >= timeout));
        assert!(error.is_retryable());
        // So does a closure, which has not run.
        let runs = Cell::new(0);
        let error = db
            .concurrent(async |_| {
                runs.set(runs.get() + 1);
                Ok(())
            })
            .await
            .unwrap_err();
        assert_eq!((error.kind(), runs.get()), (ErrorKind::PoolTimeout, 0));
        // Saves need no place.
        let mut ctx = db.context();
        ctx.add(note("beside"));
        ctx.save_changes().await.unwrap();
        one.rollback().await.unwrap();
        drop(two);
        assert_is_whole(&db).await;
    }
}

#[tokio::test]
async fn more_tasks_than_places_take_turns() {
    for mode in Mode::ALL {
        let db = limited(mode, |options| options).await;
        let work = (0..12).map(|_| {
            db.concurrent(async |s| {
                insert(&mut *s).await?;
                tokio::task::yield_now().await;
                insert(&mut *s).await
            })
        });
        for done in join_all(work).await {
            done.unwrap();
        }
        assert_eq!(Note::query().count(&db).await.unwrap(), 24, "{mode:?}");
        assert_is_whole(&db).await;
    }
}

type Choose = fn(DatabaseBuilder) -> DatabaseBuilder;

#[tokio::test]
async fn limits_out_of_range_are_refused_by_name() {
    let chosen: [(&str, Choose); 5] = [
        ("sessions", |options| options.sessions(0)),
        ("session_age", |options| options.session_age(Duration::ZERO)),
        ("session_statements", |options| {
            options.session_statements(0)
        }),
        ("session_memory", |options| {
            options.session_memory(Bytes::kib(1))
        }),
        ("commit_hold", |options| options.commit_hold(Duration::ZERO)),
    ];
    for (option, choose) in chosen {
        let opened = choose(Database::builder("")).open_temporary().await;
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Options);
        assert!(error.to_string().contains(option), "{error}");
    }
}
