//! The log stays small while many tasks save and others read.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    load::{Line, Order, add_order, check_file, plainly},
    random::{Random, lasting},
};
use futures_util::StreamExt;
use tokio::task::JoinSet;

const PAGES: u32 = 1000;
/// A page and the header of its frame.
const FRAME: u64 = 4096 + 24;
const MOST: u64 = 4 * PAGES as u64 * FRAME;

/// A database with a log whose file is cut back when it starts anew.
struct Burst {
    db: Database,
    log: PathBuf,
    stop: Arc<AtomicBool>,
    tasks: JoinSet<u64>,
    savers: i64,
}

impl Burst {
    async fn new() -> Self {
        let db = Database::builder("")
            .wal_autocheckpoint(PAGES)
            .journal_size_limit(Bytes(u64::from(PAGES) * FRAME))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<(Order, Line)>().await.unwrap();
        let mut log = db.path().as_os_str().to_owned();
        log.push("-wal");
        Self {
            db,
            log: log.into(),
            stop: Arc::default(),
            tasks: JoinSet::new(),
            savers: 0,
        }
    }

    fn save(&mut self, tasks: i64) {
        for _ in 0..tasks {
            self.savers += 1;
            let (db, stop, task) = (self.db.clone(), Arc::clone(&self.stop), self.savers);
            self.tasks.spawn(async move {
                let mut saved = 0;
                while !stop.load(Relaxed) {
                    let mut ctx = db.context();
                    let serial = i64::try_from(saved).unwrap();
                    add_order(&mut ctx, task, serial, 3);
                    ctx.save_changes().await.unwrap();
                    saved += 1;
                }
                saved
            });
        }
    }

    fn read(&mut self, tasks: u64, random: &mut Random) {
        for _ in 0..tasks {
            let (db, stop) = (self.db.clone(), Arc::clone(&self.stop));
            let mut random = random.branch();
            self.tasks.spawn(async move {
                while !stop.load(Relaxed) {
                    let serial = i64::try_from(random.below(1000)).unwrap();
                    let same = Order::query().filter(Order::SERIAL.eq(serial));
                    for order in same.all(&db).await.unwrap() {
                        let lines = Line::query().filter(Line::ORDER_ID.eq(order.id));
                        let lines = lines.count(&db).await.unwrap();
                        assert_eq!(i64::try_from(lines), Ok(order.lines));
                    }
                    let mut rows = Order::query().limit(500).stream(&db);
                    while let Some(row) = rows.next().await {
                        row.unwrap();
                    }
                }
                0
            });
        }
    }

    /// A `stat`, which leaves SQLite's locks alone.
    fn log_size(&self) -> u64 {
        std::fs::metadata(&self.log).unwrap().len()
    }

    /// Looks at the log every few milliseconds; the largest size seen.
    async fn largest_log(&self, time: Duration) -> u64 {
        let mut ticks = tokio::time::interval(Duration::from_millis(2));
        let began = Instant::now();
        let mut most = 0;
        while began.elapsed() < time {
            ticks.tick().await;
            most = most.max(self.log_size());
        }
        most
    }

    async fn finish(mut self) -> u64 {
        self.stop.store(true, Relaxed);
        let mut saved = 0;
        while let Some(ended) = self.tasks.join_next().await {
            saved += ended.unwrap();
        }
        let orders = check_file(&plainly(self.db.path()).unwrap());
        assert_eq!(orders.len() as u64, saved);
        self.db.close().await.unwrap();
        saved
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_small_in_a_burst() {
    let mut random = Random::seeded("burst");
    let time = lasting(Duration::from_secs(6), Duration::from_secs(60));
    let mut burst = Burst::new().await;
    burst.save(50);
    burst.read(4, &mut random);
    let most = burst.largest_log(time).await;
    let statistics = burst.db.statistics();
    let saved = burst.finish().await;
    eprintln!("burst: {saved} saves in {time:?}, the log had at most {most} bytes of {MOST}");
    eprintln!("{statistics:?}");
    assert!(statistics.checkpoints > 0, "the log was never moved");
    assert!(most < MOST, "the log grew to {most} bytes");
}

/// One task at its own pace: each checkpoint finds everything moved, and the log starts anew without the slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_small_when_nothing_hurries() {
    let time = lasting(Duration::from_secs(4), Duration::from_secs(60));
    let mut burst = Burst::new().await;
    burst.save(1);
    let most = burst.largest_log(time).await;
    let statistics = burst.db.statistics();
    let saved = burst.finish().await;
    eprintln!("one task: {saved} saves in {time:?}, the log had at most {most} bytes of {MOST}");
    eprintln!("{statistics:?}");
    assert!(most < MOST, "the log grew to {most} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_comes_down_after_a_reader_that_held_it() {
    let time = lasting(Duration::from_secs(2), Duration::from_secs(30));
    let patience = Duration::from_secs(60);
    let mut burst = Burst::new().await;
    burst.save(20);
    while Order::query().count(&burst.db).await.unwrap() < 2000 {}
    let mut rows = Order::query().stream(&burst.db);
    rows.next().await.unwrap().unwrap();
    let held = Instant::now();
    let mut most = burst.largest_log(time).await;
    while most < MOST {
        most = most.max(burst.largest_log(Duration::from_millis(100)).await);
        assert!(
            held.elapsed() < patience,
            "the reader does not hold the log"
        );
    }
    let held = held.elapsed();
    drop(rows);
    let dropped = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    while burst.log_size() >= MOST {
        ticks.tick().await;
        assert!(dropped.elapsed() < patience, "the log does not come down");
    }
    let later = dropped.elapsed();
    eprintln!("a reader held the log for {held:?}: {most} bytes; {later:?} later it was small");
    // And it stays so.
    let most = burst.largest_log(time).await;
    assert!(most < MOST, "the log grew to {most} bytes");
    burst.finish().await;
}
