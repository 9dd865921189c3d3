//! The calls of a database's beginning and end, dropped after each number of polls.

use std::{
    future::Future,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode,
    load::{Line, Order, add_order, check_file, plainly},
};
use tokio::task::yield_now;

use crate::poll_once;

/// Polls so many times, or for so long, and drops.
async fn polled<F: Future>(future: F, polls: u32, time: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = poll_once(future.as_mut()).await {
            return Some(output);
        }
        let began = Instant::now();
        while began.elapsed() < time / polls {
            yield_now().await;
        }
    }
    None
}

/// From none at all to what lets most of them end.
fn hurries() -> impl Iterator<Item = (u32, Duration)> {
    (0..12).map(|polls| (polls, Duration::from_micros(700) * polls))
}

async fn save_one(db: &Database, serial: i64) -> Result<(), Error> {
    let mut ctx = db.context();
    add_order(&mut ctx, 0, serial, 2);
    ctx.save_changes().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_and_making_tables_can_be_dropped() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        for (polls, time) in hurries() {
            let file = folder.path().join(format!("{polls}.db"));
            let builder = mode.set(Database::builder(&file));
            drop(polled(builder.clone().open(), polls, time).await);
            let db = builder.open().await.unwrap();
            drop(polled(db.create_tables::<(Order, Line)>(), polls, time).await);
            db.create_tables::<(Order, Line)>().await.unwrap();
            save_one(&db, 0).await.unwrap();
            db.close().await.unwrap();
            assert_eq!(check_file(&plainly(&file).unwrap()).len(), 1);
            drop(polled(Database::temporary(), polls, time).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_can_be_dropped() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        for (polls, time) in hurries() {
            let file = folder.path().join(format!("{polls}.db"));
            let builder = mode.set(Database::builder(&file));
            let db = builder.clone().open().await.unwrap();
            db.create_tables::<(Order, Line)>().await.unwrap();
            save_one(&db, 0).await.unwrap();
            let guard = db.begin().await.unwrap();
            // While the writer is held, closing waits in the queue, and gives its place up.
            assert!(polled(db.close(), polls, time).await.is_none());
            guard.commit().await.unwrap();
            save_one(&db, 1).await.unwrap();
            // Now it may have begun, and then goes on by itself.
            let closed = polled(db.close(), polls, time).await;
            let saved = save_one(&db, 2).await;
            if let Err(error) = &saved {
                assert_eq!(error.kind(), ErrorKind::Closed);
            }
            assert!(closed.is_none() || saved.is_err(), "written after closing");
            let again = builder.open().await.unwrap();
            save_one(&again, 3).await.unwrap();
            drop(again.close().await);
            let orders = check_file(&plainly(&file).unwrap());
            assert_eq!(orders.len(), 3 + usize::from(saved.is_ok()));
        }
    }
}
