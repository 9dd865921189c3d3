//! Sessions under load: nobody starves on a hot row, long ones do not let the log grow without bound, and dropped ones
//! leave no trace.

use std::{
    collections::HashMap,
    future::Future,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, execute,
    load::{Line, Order, add_line, add_order, check_file, plainly},
    note::{Note, note, notes},
    random::{Random, is_long, lasting},
};
use futures_util::future::join_all;
use tokio::task::{JoinSet, yield_now};

use crate::hurry;

const TASKS: i64 = 8;
/// Within this everything answers, whatever was dropped before.
const PROMPT: Duration = Duration::from_secs(10);

/// A call conflicts five times at most, with pauses of 10 milliseconds at most, and then waits for its turn in the queue
/// behind seven others, each of which takes some milliseconds: a busy machine has ten times as long.
const LONGEST_CALL: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_starves_on_a_hot_row() {
    for mode in [Mode::Inline, Mode::Full] {
        let db = notes(mode).await;
        execute(
            &db,
            "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER)",
        )
        .await;
        execute(&db, "INSERT INTO counter VALUES (1, 0)").await;
        let time = lasting(Duration::from_secs(4), Duration::from_secs(30));
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let db = db.clone();
            tasks.spawn(async move { count_up(&db, time).await });
        }
        let mut waits = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            let of_task = ended.unwrap();
            assert!(
                !of_task.is_empty(),
                "{mode:?}: a task did not get through once"
            );
            waits.extend(of_task);
        }
        waits.sort_unstable();
        let longest = waits[waits.len() - 1];
        let statistics = db.statistics();
        eprintln!(
            "{mode:?}: {} increments in {time:?}, p99.9 {:?}, longest {longest:?}; {} conflicts, {} exclusive",
            waits.len(),
            waits[waits.len() * 999 / 1000],
            statistics.session_conflicts,
            statistics.exclusive_runs
        );
        assert!(longest < LONGEST_CALL, "{mode:?}: a call took {longest:?}");
        let plain = plainly(db.path()).unwrap();
        let sum: i64 = plain
            .query_row("SELECT n FROM counter", [], |row| row.get(0))
            .unwrap();
        assert_eq!(usize::try_from(sum), Ok(waits.len()), "{mode:?}");
    }
}

/// How long each increment took.
async fn count_up(db: &Database, time: Duration) -> Vec<Duration> {
    let end = Instant::now() + time;
    let mut waits = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        let counted = db.concurrent(async |s| {
            let n: i64 = sqlx::query_scalar("SELECT n FROM counter WHERE id = 1")
                .fetch_one(&mut *s)
                .await?;
            yield_now().await;
            sqlx::query("UPDATE counter SET n = ? WHERE id = 1")
                .bind(n + 1)
                .execute(&mut *s)
                .await?;
            Ok(())
        });
        counted.await.unwrap();
        waits.push(began.elapsed());
    }
    waits
}

const PAGES: u32 = 1000;

/// The log may become four times as long as it should be before new sessions are kept waiting until it can start anew.
/// Meanwhile the saves go on, for as long as the longest session is open: 200 milliseconds, and on a busy machine more.
const MOST_FRAMES: u32 = 8 * PAGES;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_sessions_do_not_let_the_log_grow_without_bound() {
    let mut random = Random::seeded("long sessions");
    let db = Database::builder("")
        .wal_autocheckpoint(PAGES)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let (db, stop) = (db.clone(), Arc::clone(&stop));
        tasks.spawn(async move { save_notes(&db, &stop).await });
    }
    for _ in 0..4 {
        let (db, stop, random) = (db.clone(), Arc::clone(&stop), random.branch());
        tasks.spawn(async move { hold_snapshots(&db, &stop, random).await });
    }
    let time = lasting(Duration::from_secs(6), Duration::from_secs(60));
    let began = Instant::now();
    let mut most = 0;
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    while began.elapsed() < time {
        ticks.tick().await;
        most = most.max(db.wal_frames());
    }
    stop.store(true, Relaxed);
    let mut done = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        done.push(ended.unwrap());
    }
    let mut log = db.path().as_os_str().to_owned();
    log.push("-wal");
    let size = std::fs::metadata(Path::new(&log)).unwrap().len();
    let statistics = db.statistics();
    eprintln!(
        "{most} frames at most in {time:?}, the log has {size} bytes; {} saves, {} sessions, {} checkpoints in the slot",
        statistics.saves, statistics.sessions, statistics.checkpoints_in_slot
    );
    assert!(
        done.iter().all(|count| *count > 0),
        "somebody starved: {done:?}"
    );
    assert!(
        statistics.saves > u64::from(PAGES),
        "the load is too small to show anything"
    );
    assert!(most < MOST_FRAMES, "{most} frames");
    // A frame is a page and its header; the file has no more than the log once had, but for what came between two looks.
    assert!(size < u64::from(MOST_FRAMES) * (4096 + 24), "{size} bytes");
    db.close().await.unwrap();
}

async fn save_notes(db: &Database, stop: &AtomicBool) -> u64 {
    let mut saved = 0;
    while !stop.load(Relaxed) {
        let mut ctx = db.context();
        ctx.add(note("x".repeat(2000)));
        ctx.save_changes().await.unwrap();
        saved += 1;
    }
    saved
}

/// Sessions without a pause between them, which look at their snapshot twice.
async fn hold_snapshots(db: &Database, stop: &AtomicBool, mut random: Random) -> u64 {
    let mut held = 0;
    while !stop.load(Relaxed) {
        let mut s = db.begin_concurrent(Isolation::Snapshot).await.unwrap();
        let before = Note::query().count(&mut *s).await.unwrap();
        sqlx::query("INSERT INTO note (id, text) VALUES (next_id('note'), 'held')")
            .execute(&mut *s)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(50 + random.below(150))).await;
        let after = Note::query().count(&mut *s).await.unwrap();
        assert_eq!(after, before + 1, "the snapshot changed");
        // What was under way before there ever was a session is not known, and counts as anything.
        if let Err(error) = s.commit().await {
            assert!(error.is_conflict() && held == 0, "{error:?}");
        }
        held += 1;
    }
    held
}

/// One task's work, and what it knows of the database.
struct Storm {
    db: Database,
    task: i64,
    random: Random,
    drops: Arc<AtomicU64>,
    serial: i64,
    /// How many lines the order of each serial may have; none stands for no order.
    allowed: HashMap<i64, Vec<i64>>,
}

#[test]
fn dropped_sessions_leave_no_trace() {
    let mut random = Random::seeded("dropped sessions");
    let drops = if is_long() { 100_000 } else { 10_000 };
    for mode in Mode::ALL {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let began = Instant::now();
        runtime.block_on(storm(mode, drops, random.branch()));
        eprintln!("{mode:?}: {drops} in {:?}", began.elapsed());
    }
}

async fn storm(mode: Mode, drops: u64, mut random: Random) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    let db = mode.set(Database::builder(&file)).open().await.unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    let counted = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let mut storm = Storm {
            db: db.clone(),
            task,
            random: random.branch(),
            drops: Arc::clone(&counted),
            serial: 0,
            allowed: HashMap::new(),
        };
        tasks.spawn(async move {
            while storm.drops.load(Relaxed) < drops {
                for _ in 0..20 {
                    storm.step().await;
                }
                tokio::time::timeout(PROMPT, storm.canary())
                    .await
                    .expect("the writer or a session is lost");
            }
            (storm.task, storm.allowed)
        });
    }
    let mut allowed = HashMap::new();
    while let Some(ended) = tasks.join_next().await {
        let (task, of_task) = ended.unwrap();
        allowed.insert(task, of_task);
    }
    the_pool_is_whole(&db).await;
    assert_eq!(db.statistics().session_alarms, 0);
    let closed = tokio::time::timeout(PROMPT, db.close()).await;
    closed.expect("closing hangs").unwrap();
    let connection = plainly(&file).unwrap();
    connection
        .execute_batch("BEGIN IMMEDIATE; ROLLBACK")
        .expect("no transaction is left open");
    for order in check_file(&connection) {
        let allowed = allowed.get_mut(&order.task).unwrap();
        let lines = allowed.remove(&order.serial).expect("nobody saved this");
        assert!(lines.contains(&order.lines), "{order:?}: {lines:?}");
    }
    for (serial, lines) in allowed.into_values().flatten() {
        assert!(
            lines.contains(&0),
            "an acknowledged order is lost: {serial}"
        );
    }
}

/// As many sessions as the options say are open at a time, each with a place of its own.
async fn the_pool_is_whole(db: &Database) {
    const SESSIONS: usize = 8;
    let begun = join_all((0..SESSIONS).map(|_| db.begin_concurrent(Isolation::Serializable)));
    let sessions = tokio::time::timeout(PROMPT, begun).await;
    for session in sessions.expect("a place is lost") {
        let mut session = session.unwrap();
        assert!(!session.is_exclusive());
        Order::query().count(&mut *session).await.unwrap();
        session.commit().await.unwrap();
    }
}

impl Storm {
    async fn hurry<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let output = hurry(&mut self.random, future).await;
        if output.is_none() {
            self.drops.fetch_add(1, Relaxed);
        }
        output
    }

    fn next_serial(&mut self, allowed: impl Into<Vec<i64>>) -> i64 {
        self.serial += 1;
        self.allowed.insert(self.serial, allowed.into());
        self.serial
    }

    async fn step(&mut self) {
        match self.random.below(8) {
            0..=4 => self.by_hand().await,
            5..=6 => self.concurrent().await,
            _ => {
                let db = self.db.clone();
                let moved = self.hurry(db.checkpoint()).await;
                assert!(moved.is_none_or(|moved| moved.is_ok()));
            }
        }
    }

    /// A session and a save that nobody drops.
    async fn canary(&mut self) {
        let (task, serial) = (self.task, self.next_serial([2]));
        let written = self
            .db
            .concurrent(async move |s: &mut Session| write_order(s, task, serial).await);
        written.await.unwrap();
        let serial = self.next_serial([1]);
        let mut ctx = self.db.context();
        add_order(&mut ctx, task, serial, 1);
        ctx.save_changes().await.unwrap();
    }

    async fn concurrent(&mut self) {
        let (db, task, serial) = (self.db.clone(), self.task, self.next_serial([0, 2]));
        let written =
            db.concurrent(async move |s: &mut Session| write_order(s, task, serial).await);
        if let Some(written) = self.hurry(written).await {
            written.unwrap();
            self.allowed.insert(serial, vec![2]);
        }
    }

    /// A guard of which every call may be dropped. What was dropped ends the session, or did not take place.
    async fn by_hand(&mut self) {
        let isolation = match self.random.below(2) {
            0 => Isolation::Serializable,
            _ => Isolation::Snapshot,
        };
        let db = self.db.clone();
        let Some(begun) = self.hurry(db.begin_concurrent(isolation)).await else {
            return;
        };
        let mut s = begun.unwrap();
        let serial = self.next_serial([0]);
        let saved = {
            let mut ctx = s.context();
            add_order(&mut ctx, self.task, serial, 1);
            self.hurry(ctx.save_changes()).await
        };
        if let Some(saved) = &saved {
            assert_eq!(saved.as_ref().unwrap().inserted, 2);
        }
        let mut dropped = saved.is_none();
        for _ in 0..self.random.below(3) {
            dropped |= self.inside(&mut s, dropped).await;
        }
        let may_be_there = if dropped { vec![0, 1] } else { vec![1] };
        match self.random.below(4) {
            0 => drop(s),
            1 => drop(self.hurry(s.rollback()).await),
            2 => match self.hurry(s.commit()).await {
                Some(Ok(_)) => drop(self.allowed.insert(serial, may_be_there)),
                Some(Err(error)) => assert_told(&error, dropped),
                None => drop(self.allowed.insert(serial, vec![0, 1])),
            },
            _ => match s.commit().await {
                Ok(_) => drop(self.allowed.insert(serial, may_be_there)),
                Err(error) => assert_told(&error, dropped),
            },
        }
    }

    /// One call in a session; whether it was dropped.
    async fn inside(&mut self, s: &mut Session, dropped: bool) -> bool {
        let task = self.task;
        let outcome = match self.random.below(4) {
            0 => {
                let touch =
                    sqlx::query("UPDATE orders SET lines = lines WHERE task = ? AND id < 100")
                        .bind(task);
                let touched = self.hurry(touch.execute(&mut *s)).await;
                touched.map(|touched| touched.map(drop).map_err(Error::from))
            }
            1 => {
                // Seconds, were it not stopped.
                let long = sqlx::query(
                    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 50000000)
                     SELECT max(x) FROM n",
                );
                let read = tokio::time::timeout(Duration::from_millis(1), long.fetch_one(&mut *s));
                let read = self.hurry(read).await.and_then(Result::ok);
                read.map(|row| row.map(drop).map_err(Error::from))
            }
            2 => {
                let mine = Order::query().filter(Order::TASK.eq(task)).limit(3);
                let read = self.hurry(mine.all(&mut *s)).await;
                read.map(|read| read.map(drop))
            }
            _ => {
                let undone = s.savepoint(async |s| {
                    let mut ctx = s.context();
                    add_order(&mut ctx, task, 0, 1);
                    ctx.save_changes().await?;
                    drop(ctx);
                    Err::<(), _>(Error::application("undo this"))
                });
                self.hurry(undone).await.map(|undone| {
                    let error = undone.unwrap_err();
                    match error.kind() {
                        ErrorKind::Application => Ok(()),
                        _ => Err(error),
                    }
                })
            }
        };
        let was_dropped = outcome.is_none();
        if let Some(Err(error)) = outcome {
            assert_told(&error, dropped);
        }
        was_dropped
    }
}

/// An order in several steps: typed, in a savepoint, and with a line more.
async fn write_order(s: &mut Session, task: i64, serial: i64) -> Result<(), Error> {
    let mut ctx = s.context();
    let order = add_order(&mut ctx, task, serial, 1);
    ctx.save_changes().await?;
    let id = ctx[order].id;
    drop(ctx);
    s.savepoint(async |s| {
        let mut ctx = s.context();
        let order = ctx.find::<Order>(id).await?;
        let order = order.ok_or_else(|| Error::application("its own order is missing"))?;
        add_line(&mut ctx, order);
        ctx.save_changes().await.map(drop)
    })
    .await
}

/// Another session was first; or a call of this one was dropped, which ended it.
fn assert_told(error: &Error, dropped: bool) {
    let ended = error.kind() == ErrorKind::TransactionEnded && dropped;
    assert!(error.is_conflict() || ended, "{error:?}");
}
