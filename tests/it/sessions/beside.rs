//! Sessions beside programs that commit without a pause, or hang in the middle of a commit.

use std::{
    fs::{File, OpenOptions},
    mem::ManuallyDrop,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode,
    note::{Note, note},
    outsider, start, until,
};

use crate::sessions::{MODES, Result, number, run, session};

/// Commits as fast as it can, until it is told to stop.
fn commit_without_a_pause(path: &Path, stop: &AtomicBool, commits: &AtomicU32) {
    let other = outsider(path);
    other.execute_batch("PRAGMA synchronous = OFF").unwrap();
    while !stop.load(Ordering::Relaxed) {
        other
            .execute("UPDATE note SET text = text || '' WHERE id = 1", [])
            .unwrap();
        commits.fetch_add(1, Ordering::Relaxed);
    }
}

/// The first read of a connection takes a snapshot, like any BEGIN, and here a commit comes between its two looks at the
/// log again and again. The writer's slot keeps only this process from committing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_begin_on_new_connections_beside_programs_that_never_pause() -> Result {
    for mode in MODES {
        let places = 60;
        let builder = mode.set(Database::builder("").sessions(places));
        let db = builder.open_temporary().await?;
        db.create_tables::<Note>().await?;
        let mut ctx = db.context();
        ctx.add(note("theirs"));
        ctx.save_changes().await?;
        drop(ctx);

        let (stop, commits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let programs: Vec<_> = (0..2)
            .map(|_| {
                let (path, stop, commits) = (db.path().to_owned(), Arc::clone(&stop), Arc::clone(&commits));
                thread::spawn(move || commit_without_a_pause(&path, &stop, &commits))
            })
            .collect();
        until("they commit", async || commits.load(Ordering::Relaxed) > 100).await;
        let mut sessions = Vec::new();
        let mut failed = Vec::new();
        for _ in 0..places {
            match db.begin_concurrent(Isolation::Serializable).await {
                Ok(mut s) => {
                    assert!(!s.is_exclusive());
                    assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 1);
                    sessions.push(s);
                }
                Err(e) => failed.push(e),
            }
        }
        stop.store(true, Ordering::Relaxed);
        programs.into_iter().for_each(|program| program.join().unwrap());
        println!("{mode:?} failed {} {:?} slow {} commits {}", failed.len(), failed.first(), db.statistics().slow_begins, commits.load(Ordering::Relaxed));
        for s in sessions {
            s.rollback().await?;
        }
    }
    Ok(())
}
