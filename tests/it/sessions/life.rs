//! Sessions beside whoever holds the writer, in a pool of so many places, on a file that moves, when all is closed.

use std::{fs, pin::pin, time::Duration};

use anabranch::{engine::SessionGuard, prelude::*};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
    start, until,
};
use futures_util::FutureExt;

use crate::sessions::{LEVELS, MODES, Result, number, run, session, session_of};

const IMPATIENT: Duration = Duration::from_millis(100);

async fn impatient(mode: Mode) -> Database {
    let db = mode
        .set(Database::builder("").queue_timeout(IMPATIENT))
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    db
}

#[tokio::test]
async fn a_session_that_only_read_ends_while_somebody_holds_the_writer() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = impatient(mode).await;
            let held = db.begin().await?;
            let mut s = session_of(&db, isolation).await;
            assert_eq!(Note::query().count(&mut *s).await?, 0);
            assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 0);
            assert_eq!(s.commit().await?, None, "{mode:?}");
            let untouched = session_of(&db, isolation).await;
            untouched.commit().await?;
            held.rollback().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn only_the_commit_of_a_session_waits_for_the_writer() -> Result {
    for mode in MODES {
        let db = impatient(mode).await;
        let mut held = db.begin().await?;
        run(
            &mut *held,
            "INSERT INTO note (id, text) VALUES (1, 'exclusive')",
        )
        .await?;
        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO note (id, text) VALUES (2, 'session')").await?;
        let mut ctx = s.context();
        ctx.add(note("typed"));
        ctx.save_changes().await?;
        drop(ctx);
        let key = s.next_id::<Note>().await?;
        assert!(key > 2);
        let error = s.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QueueTimeout, "{mode:?}");
        assert!(
            error.to_string().contains("life.rs"),
            "names the holder: {error}"
        );
        held.commit().await?;
        assert_eq!(
            Note::query().count(&db).await?,
            1,
            "nothing of it came later"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_session_waits_for_a_place_and_its_timeout_names_who_has_one() -> Result {
    for mode in MODES {
        let db = impatient(mode).await;
        let mut open: Vec<SessionGuard> = Vec::new();
        let error = loop {
            match db.begin_concurrent(Isolation::Serializable).await {
                Ok(s) => open.push(s),
                Err(error) => break error,
            }
            assert!(open.len() < 1000, "there is a bound");
        };
        assert_eq!(error.kind(), ErrorKind::PoolTimeout, "{error}");
        assert!(error.is_retryable());
        let said = error.to_string();
        assert!(
            said.contains("begin_concurrent") && said.contains("life.rs"),
            "{said}"
        );
        assert!(error.waited().is_some_and(|waited| waited >= IMPATIENT));

        // A place that becomes free is taken by who waits.
        let mut waiting = pin!(db.begin_concurrent(Isolation::Serializable));
        start(waiting.as_mut());
        drop(open.pop());
        let s = waiting.await?;
        assert!(!s.is_exclusive());
        // Plain work needs none.
        let mut ctx = db.context();
        ctx.add(note("beside"));
        ctx.save_changes().await?;
        drop(s);
        for s in open {
            s.rollback().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_session_on_a_file_that_has_moved_is_told_so() -> Result {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("app.db");
        let db = mode.set(Database::builder(&path)).open().await?;
        db.create_tables::<Note>().await?;
        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'lost')").await?;
        let mut at_work = session(&db).await;
        fs::rename(&path, path.with_file_name("aside.db")).unwrap();
        // Until the library has looked again, which takes a moment.
        until("a read is told", async || {
            Note::query().count(&db).await.is_err()
        })
        .await;
        let error = run(
            &mut *at_work,
            "INSERT INTO note (id, text) VALUES (2, 'lost')",
        )
        .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::FileMoved);
        drop(at_work);
        let error = s.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileMoved, "{mode:?}: {error}");
        let error = db.begin_concurrent(Isolation::Serializable).await;
        assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::FileMoved);
    }
    Ok(())
}

#[tokio::test]
async fn a_closed_database_begins_no_session_and_waits_for_none() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        run(
            &mut *s,
            "INSERT INTO note (id, text) VALUES (1, 'too late')",
        )
        .await?;
        db.close().await?;
        let error = s.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{mode:?}: {error}");
        let error = db.begin_concurrent(Isolation::Serializable).await;
        assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::Closed);
        let error = db.concurrent(async |_| Ok(())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    Ok(())
}

/// A session keeps its snapshot through a checkpoint, and commits after it.
#[tokio::test]
async fn a_session_outlives_checkpoints() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(&db, "INSERT INTO note (text) VALUES ('before')").await;
        let mut s = session(&db).await;
        assert_eq!(
            number(&mut *s, "SELECT count(*) FROM note WHERE id < 10").await?,
            1
        );
        execute(&db, "INSERT INTO note (id, text) VALUES (20, 'meanwhile')").await;
        db.checkpoint().await?;
        execute(&db, "INSERT INTO note (id, text) VALUES (21, 'meanwhile')").await;
        assert_eq!(Note::query().count(&mut *s).await?, 1, "its snapshot");
        run(&mut *s, "INSERT INTO note (id, text) VALUES (5, 'session')").await?;
        s.rollback().await?;

        let mut s = session(&db).await;
        assert_eq!(
            number(&mut *s, "SELECT count(*) FROM note WHERE id < 10").await?,
            1
        );
        db.checkpoint().await?;
        run(&mut *s, "INSERT INTO note (id, text) VALUES (5, 'session')").await?;
        db.checkpoint().await?;
        s.commit().await?;
        db.checkpoint().await?;
        assert_eq!(Note::query().count(&db).await?, 4, "{mode:?}");
    }
    Ok(())
}

/// Sessions of one task are no circle: only the commit needs the writer.
#[tokio::test]
async fn one_task_may_hold_several_sessions_and_a_context() -> Result {
    let db = impatient(Mode::Inline).await;
    let mut one = session(&db).await;
    let mut two = session(&db).await;
    run(&mut *one, "INSERT INTO note (id, text) VALUES (1, 'one')").await?;
    run(&mut *two, "INSERT INTO note (id, text) VALUES (2, 'two')").await?;
    let mut ctx = db.context();
    ctx.add(Note {
        id: 3,
        ..note("three")
    });
    ctx.save_changes().await?;
    db.write(async |tx| run(&mut *tx, "INSERT INTO note (id, text) VALUES (4, 'four')").await)
        .await?;
    two.commit().await?;
    one.commit().await?;
    assert_eq!(Note::query().count(&db).await?, 4);
    Ok(())
}

#[tokio::test]
async fn sessions_need_no_runtime() {
    std::thread::spawn(|| {
        poll_to_its_end(async {
            let db = Database::temporary().await.unwrap();
            db.create_tables::<Note>().await.unwrap();
            let mut s = session(&db).await;
            run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'a')")
                .await
                .unwrap();
            s.commit().await.unwrap();
            assert_eq!(Note::query().count(&db).await.unwrap(), 1);
        });
    })
    .join()
    .unwrap();
}

/// Polls again and again, without a runtime's help.
fn poll_to_its_end<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Some(output) = future.as_mut().now_or_never() {
            return output;
        }
        std::thread::yield_now();
    }
}
