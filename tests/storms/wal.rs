//! The log stays within its limit while tasks write, others read, and one leaves its snapshots open.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anabranch::{
    engine::{OldReaders, WalPolicy},
    prelude::*,
};
use anabranch_tests::{
    load::{Line, Order, add_order, check_file, plainly},
    random::lasting,
};
use tokio::task::JoinSet;

const FRAME: u64 = 4096 + 24;
const LIMIT: u64 = 4000 * FRAME;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::too_many_lines, reason = "one story, told once")]
async fn readers_writers_and_the_monitor_keep_the_log_within_its_limit() {
    let time = lasting(Duration::from_secs(3), Duration::from_secs(40));
    let policy = WalPolicy::new()
        .limit(Bytes(LIMIT))
        .reader_age(Duration::from_millis(500))
        .old_readers(OldReaders::Interrupt);
    let builder = Database::builder("").wal_policy(policy);
    let db = builder.open_temporary().await.unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for task in 0..8 {
        let (db, stop) = (db.clone(), Arc::clone(&stop));
        writers.spawn(async move {
            let mut saved = 0_u64;
            let mut longest = Duration::ZERO;
            while !stop.load(Relaxed) {
                let began = Instant::now();
                let mut ctx = db.context();
                add_order(&mut ctx, task, saved.try_into().unwrap(), 3);
                ctx.save_changes().await.unwrap();
                longest = longest.max(began.elapsed());
                saved += 1;
            }
            (saved, longest)
        });
    }
    let mut readers = JoinSet::new();
    for reader in 0..4_u64 {
        let (db, stop) = (db.clone(), Arc::clone(&stop));
        // The last one leaves its snapshots open until they are ended.
        let length = Duration::from_millis([20, 100, 300, 5000][usize::try_from(reader).unwrap()]);
        readers.spawn(async move {
            let (mut read, mut ended) = (0_u64, 0_u64);
            while !stop.load(Relaxed) {
                let seen = db.read(async |snapshot| {
                    let first = Order::query().count(&mut *snapshot).await?;
                    let began = Instant::now();
                    while began.elapsed() < length && !stop.load(Relaxed) {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        assert_eq!(Order::query().count(&mut *snapshot).await?, first);
                    }
                    Ok(())
                });
                match seen.await {
                    Ok(()) => read += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::ReaderTooOld, "{error}");
                        ended += 1;
                    }
                }
            }
            (read, ended)
        });
    }
    let began = Instant::now();
    let mut most = 0;
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    while began.elapsed() < time {
        ticks.tick().await;
        most = most.max(db.wal_status().await.unwrap().used);
    }
    stop.store(true, Relaxed);
    let (mut saved, mut longest) = (0, Duration::ZERO);
    for (count, wait) in writers.join_all().await {
        saved += count;
        longest = longest.max(wait);
    }
    let readers = readers.join_all().await;
    let counted = db.statistics();
    eprintln!(
        "log: {saved} saves in {time:?}, the longest {longest:?}; snapshots (read, ended) {readers:?}; at most {most} \
         bytes of {LIMIT}"
    );
    eprintln!("{counted:?}");
    assert_eq!(check_file(&plainly(db.path()).unwrap()).len() as u64, saved);
    db.close().await.unwrap();
    assert!(most <= LIMIT, "the log grew to {most} bytes");
    assert!(
        readers[..3].iter().all(|(read, _)| *read > 0),
        "{readers:?}"
    );
    assert!(counted.interrupted_readers > 0);
}
