//! Futures dropped at random, while others save: no transaction stays open, the slot is never lost, and what was
//! answered is true.
//!
//! Ten thousand drops in each mode; `ANABRANCH_LONG=1` makes them a hundred thousand.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode,
    load::{Line, Order, add_line, add_order, check_file, plainly, write_order},
    random::{Random, is_long},
};
use futures_util::StreamExt;
use tokio::task::JoinSet;

use crate::hurry;

/// Within this the writer and the readers answer, whatever was dropped before.
const PROMPT: Duration = Duration::from_secs(10);
const TASKS: i64 = 6;

/// Numbers of lines that an order may have; none stands for no order.
type Allowed = Vec<i64>;

/// One task's work, and what it knows of the database.
struct Storm {
    db: Database,
    task: i64,
    random: Random,
    drops: Arc<AtomicU64>,
    serial: i64,
    /// By serial.
    allowed: HashMap<i64, Allowed>,
    /// Orders that nobody is at: key, serial, lines.
    settled: Vec<(i64, i64, i64)>,
}

#[test]
fn dropped_futures_leave_no_trace() {
    let mut random = Random::seeded("dropped futures");
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
    let builder = mode.set(Database::builder(&file)).readers(4);
    let db = builder.clone().open().await.unwrap();
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
            settled: Vec::new(),
        };
        tasks.spawn(async move {
            while storm.drops.load(Relaxed) < drops {
                for _ in 0..20 {
                    storm.step().await;
                }
                tokio::time::timeout(PROMPT, storm.canary())
                    .await
                    .expect("the writer or the readers are lost");
            }
            (storm.task, storm.allowed)
        });
    }
    let mut allowed = HashMap::new();
    while let Some(ended) = tasks.join_next().await {
        let (task, of_task) = ended.unwrap();
        allowed.insert(task, of_task);
    }
    let closed = tokio::time::timeout(PROMPT, db.close()).await;
    closed.expect("closing hangs").unwrap();
    let connection = plainly(&file).unwrap();
    // Connections of dropped reads may only just be closing.
    connection.busy_timeout(PROMPT).unwrap();
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

impl Storm {
    /// Polls a future for a while, and drops it; what it came to if it was faster.
    async fn hurry<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let output = hurry(&mut self.random, future).await;
        if output.is_none() {
            self.drops.fetch_add(1, Relaxed);
        }
        output
    }

    fn next_serial(&mut self, allowed: impl Into<Allowed>) -> i64 {
        self.serial += 1;
        self.allowed.insert(self.serial, allowed.into());
        self.serial
    }

    async fn step(&mut self) {
        match self.random.below(16) {
            0..=3 => self.save().await,
            4..=5 => self.extend().await,
            6..=8 => self.read().await,
            9..=10 => self.write().await,
            11..=14 => self.transaction().await,
            _ => self.maintain().await,
        }
    }

    /// A save and a read that nobody drops.
    async fn canary(&mut self) {
        let serial = self.next_serial([1]);
        let mut ctx = self.db.context();
        let order = add_order(&mut ctx, self.task, serial, 1);
        ctx.save_changes().await.unwrap();
        let id = ctx[order].id;
        let found = Order::find(&self.db, id).await.unwrap().unwrap();
        assert_eq!(found, ctx[order]);
        let lines = Line::query().filter(Line::ORDER_ID.eq(id));
        assert_eq!(lines.count(&self.db).await.unwrap(), 1);
        self.settled.push((id, serial, 1));
        let serial = self.next_serial([3]);
        let id = write_order(&self.db, self.task, serial).await.unwrap();
        self.settled.push((id, serial, 3));
    }

    /// A save that is dropped, and mostly saved again: written once, however often it is asked for.
    async fn save(&mut self) {
        let lines = 1 + i64::try_from(self.random.below(4)).unwrap();
        let serial = self.next_serial([0, lines]);
        let mut ctx = self.db.context();
        let order = add_order(&mut ctx, self.task, serial, lines);
        for _ in 0..3 {
            if let Some(saved) = self.hurry(ctx.save_changes()).await {
                saved.unwrap();
                break;
            }
            match self.random.below(5) {
                0 => return,
                1 => {
                    let known = self.hurry(ctx.find::<Order>(1)).await;
                    assert!(known.is_none_or(|known| known.is_ok()));
                }
                2 => {
                    assert!(!ctx.is_empty());
                    assert_ne!(ctx.entry(order).state(), EntityState::Modified);
                }
                _ => {}
            }
        }
        ctx.save_changes().await.unwrap();
        assert!(!ctx.has_changes());
        self.allowed.insert(serial, vec![lines]);
        self.settled.push((ctx[order].id, serial, lines));
    }

    /// A change of what is there, dropped, and saved again or given up.
    async fn extend(&mut self) {
        if self.settled.is_empty() {
            return;
        }
        let place = usize::try_from(self.random.below(self.settled.len() as u64)).unwrap();
        let (id, serial, lines) = self.settled.swap_remove(place);
        let mut ctx = self.db.context();
        if let Some(found) = self.hurry(ctx.find::<Order>(id)).await {
            assert!(found.unwrap().is_some());
        }
        let order = ctx.find::<Order>(id).await.unwrap().unwrap();
        assert_eq!(ctx[order].lines, lines);
        add_line(&mut ctx, order);
        self.allowed.insert(serial, vec![lines, lines + 1]);
        match self.hurry(ctx.save_changes()).await {
            Some(saved) => assert_eq!(saved.unwrap().inserted, 1),
            None if self.random.once_in(3) => return,
            None => drop(ctx.save_changes().await.unwrap()),
        }
        assert!(!ctx.has_changes());
        assert_eq!(ctx[order].lines, lines + 1);
        self.allowed.insert(serial, vec![lines + 1]);
        self.settled.push((id, serial, lines + 1));
    }

    /// Every end of a query.
    async fn read(&mut self) {
        let db = self.db.clone();
        let mine = Order::query().filter(Order::TASK.eq(self.task));
        match self.random.below(8) {
            0 => {
                let rows = self.hurry(mine.all(&db)).await;
                let settled = self.settled.len();
                assert!(rows.is_none_or(|rows| rows.unwrap().len() >= settled));
            }
            1 => drop(self.hurry(mine.first(&db)).await.map(Result::unwrap)),
            2 => {
                let count = self.hurry(mine.count(&db)).await;
                let settled = self.settled.len() as u64;
                assert!(count.is_none_or(|count| count.unwrap() >= settled));
            }
            3 => {
                let exists = self.hurry(mine.exists(&db)).await;
                let settled = !self.settled.is_empty();
                assert!(exists.is_none_or(|exists| exists.unwrap() || !settled));
            }
            4 => {
                let known = self.settled.last().copied();
                let id = known.map_or(i64::MAX, |(id, ..)| id);
                let by_key = || Order::query().filter(Order::ID.eq(id));
                let found = self.hurry(by_key().optional(&db)).await;
                assert!(found.is_none_or(|found| found.unwrap().is_some() == known.is_some()));
                let found = self.hurry(by_key().one(&db)).await;
                assert!(found.is_none_or(|found| found.is_ok() == known.is_some()));
                let found = self.hurry(Order::find(&db, id)).await;
                assert!(found.is_none_or(|found| found.unwrap().is_some() == known.is_some()));
            }
            5 => {
                let mut ctx = db.context();
                let loaded = self.hurry(mine.limit(50).load(&mut ctx)).await;
                assert_eq!(ctx.len(), loaded.map_or(0, |loaded| loaded.unwrap().len()));
            }
            _ => {
                let mut rows = Line::query().stream(&db);
                for _ in 0..self.random.below(40) {
                    if let Some(Some(row)) = self.hurry(rows.next()).await {
                        row.unwrap();
                    }
                }
            }
        }
    }

    async fn write(&mut self) {
        let serial = self.next_serial([0, 3]);
        let db = self.db.clone();
        if let Some(written) = self.hurry(write_order(&db, self.task, serial)).await {
            self.allowed.insert(serial, vec![3]);
            self.settled.push((written.unwrap(), serial, 3));
        }
    }

    /// A guard of which every call may be dropped. What was dropped ends the transaction, or did not take place.
    async fn transaction(&mut self) {
        let db = self.db.clone();
        let Some(begun) = self.hurry(db.begin()).await else {
            return;
        };
        let mut tx = begun.unwrap();
        let serial = self.next_serial([0]);
        let saved = {
            let mut ctx = tx.context();
            add_order(&mut ctx, self.task, serial, 1);
            self.hurry(ctx.save_changes()).await
        };
        if let Some(saved) = &saved {
            assert_eq!(saved.as_ref().unwrap().inserted, 2);
        }
        let mut dropped = saved.is_none();
        for _ in 0..self.random.below(3) {
            dropped |= self.inside(&mut tx, dropped).await;
        }
        let may_be_there = if dropped { vec![0, 1] } else { vec![1] };
        match self.random.below(4) {
            0 => drop(tx),
            1 => drop(self.hurry(tx.rollback()).await),
            2 => match self.hurry(tx.commit()).await {
                Some(Ok(_)) => drop(self.allowed.insert(serial, may_be_there)),
                Some(Err(error)) => assert!(ended_by_a_drop(&error, dropped)),
                None => drop(self.allowed.insert(serial, vec![0, 1])),
            },
            _ => match tx.commit().await {
                Ok(_) => drop(self.allowed.insert(serial, may_be_there)),
                Err(error) => assert!(ended_by_a_drop(&error, dropped)),
            },
        }
    }

    /// One call in a transaction; whether it was dropped.
    async fn inside(&mut self, tx: &mut Transaction, dropped: bool) -> bool {
        let fine = |outcome: Result<(), Error>| match outcome {
            Ok(()) => {}
            Err(error) => assert!(ended_by_a_drop(&error, dropped)),
        };
        let outcome = match self.random.below(5) {
            0 => {
                // Its own rows: those of others would get another commit number between a save and the look at it.
                let touch =
                    sqlx::query("UPDATE orders SET lines = lines WHERE task = ? AND id < 100")
                        .bind(self.task);
                let touched = self.hurry(touch.execute(&mut *tx)).await;
                touched.map(|touched| touched.map(drop).map_err(Error::from))
            }
            1 => {
                // Seconds, were it not stopped.
                let long = sqlx::query(
                    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 50000000)
                     SELECT max(x) FROM n",
                );
                let read = self.hurry(long.fetch_one(&mut *tx)).await;
                read.map(|row| row.map(drop).map_err(Error::from))
            }
            2 => {
                let mut rows = sqlx::query("SELECT id FROM lines").fetch(&mut *tx);
                let row = self.hurry(rows.next()).await.flatten();
                drop(rows);
                // Half read is dropped as well.
                fine(row.map_or(Ok(()), |row| row.map(drop).map_err(Error::from)));
                return true;
            }
            3 => {
                let all = Order::query().filter(Order::TASK.eq(self.task));
                let counted = self.hurry(all.count(&mut *tx)).await;
                counted.map(|counted| counted.map(drop))
            }
            _ => {
                let task = self.task;
                let undone = tx.savepoint(async |tx| {
                    let mut ctx = tx.context();
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
        fine(outcome.unwrap_or(Ok(())));
        was_dropped
    }

    /// What the whole file is for.
    async fn maintain(&mut self) {
        let db = self.db.clone();
        match self.random.below(12) {
            0 => drop(self.hurry(db.vacuum()).await.map(Result::unwrap)),
            1..=5 => drop(self.hurry(db.checkpoint()).await.map(Result::unwrap)),
            _ => {
                let made = self.hurry(db.create_tables::<(Order, Line)>()).await;
                made.unwrap_or(Ok(())).unwrap();
            }
        }
    }
}

fn ended_by_a_drop(error: &Error, dropped: bool) -> bool {
    assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{error}");
    dropped
}
