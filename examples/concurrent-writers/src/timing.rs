//! The same work through the queue and through sessions.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anyhow::{Result, ensure};

use crate::order::{self, Order};

const TASKS: u32 = 8;
const EACH: u32 = 40;
pub(crate) const ALL: u32 = TASKS * EACH;
/// What each transaction waits for in its middle: somebody else's answer.
const WAIT: Duration = Duration::from_millis(2);
/// The least for the story to hold; some 7 times as fast is usual.
const LEAST: f64 = 2.0;

/// How a transaction is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Queue,
    Sessions,
}

/// How long both took.
#[derive(Debug)]
pub(crate) struct Timing {
    queue: Duration,
    sessions: Duration,
    reruns: u64,
}

pub(crate) async fn run(db: &Database) -> Result<Timing> {
    let timing = Timing {
        queue: time(db, Way::Queue).await?,
        sessions: time(db, Way::Sessions).await?,
        reruns: db.statistics().reruns,
    };
    ensure!(
        timing.times() >= LEAST,
        "sessions are not faster than the queue: {timing:?}"
    );
    Ok(timing)
}

/// All transactions of all tasks.
async fn time(db: &Database, way: Way) -> Result<Duration> {
    let began = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| tokio::spawn(work(db.clone(), way)))
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(began.elapsed())
}

/// Those of one task.
async fn work(db: Database, way: Way) -> anabranch::error::Result<()> {
    for _ in 0..EACH {
        match way {
            Way::Queue => through_queue(&db).await?,
            Way::Sessions => in_session(&db).await?,
        }
    }
    Ok(())
}

async fn through_queue(db: &Database) -> anabranch::error::Result<()> {
    db.write(async |tx| {
        let mut ctx = tx.context();
        ctx.add(Order::new("through the queue"));
        ctx.save_changes().await?;
        tokio::time::sleep(WAIT).await;
        Ok(())
    })
    .await
}

async fn in_session(db: &Database) -> anabranch::error::Result<()> {
    db.concurrent(async |s| {
        order::insert(s, "in a session").await?;
        tokio::time::sleep(WAIT).await;
        Ok(())
    })
    .await
}

impl Timing {
    /// How many times as fast sessions are.
    fn times(&self) -> f64 {
        self.queue.div_duration_f64(self.sessions)
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |took: Duration| {
            let rate = f64::from(ALL) / took.as_secs_f64();
            format!("{:>6} ms, {rate:>6.0} a second", took.as_millis())
        };
        writeln!(f, "1. Transactions that wait")?;
        writeln!(f)?;
        writeln!(
            f,
            "  {TASKS} tasks run {EACH} transactions each. Each inserts an order, then waits {} ms inside, as for the answer of\n  \
             another service, and commits.",
            WAIT.as_millis()
        )?;
        writeln!(f)?;
        writeln!(f, "    db.write       {}", line(self.queue))?;
        writeln!(f, "    db.concurrent  {}", line(self.sessions))?;
        writeln!(f)?;
        writeln!(
            f,
            "  Through db.write they stand in a queue: while one waits, it has the writer, and the others wait as well. With\n  \
             db.concurrent all {TASKS} wait at the same time, each on a snapshot of its own, and have the writer only to commit:\n  \
             {:.1} times as fast. They inserted rows of their own, so {} had to run again.",
            self.times(),
            match self.reruns {
                0 => "none".to_owned(),
                reruns => reruns.to_string(),
            }
        )
    }
}
