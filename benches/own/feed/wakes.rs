//! How long after a commit a feed that waits has its batch.

use std::{
    fmt,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anabranch::{feed::Feed, prelude::*};
use rusqlite::Connection;
use tokio::{runtime::Runtime, task::JoinHandle};
use workload::{Latencies, Random, Result};

use crate::{
    feed::kinds::{Kind as _, Told},
    files::Files,
    table,
};

/// Nothing takes so long, unless a commit is missed.
const MOST: Duration = Duration::from_secs(30);

/// What was measured.
#[derive(Debug)]
pub(in crate::feed) struct Wakes {
    title: &'static str,
    latencies: Latencies,
}

/// A task that waits for each commit and tells when it has it.
#[derive(Debug)]
struct Waiting {
    told: Receiver<Instant>,
    task: JoinHandle<Result<()>>,
    random: Random,
}

impl Waiting {
    fn start(runtime: &Runtime, mut feed: Feed<Told>, commits: u32) -> Self {
        let (tell, told) = mpsc::channel();
        let task = runtime.spawn(async move {
            for _ in 0..commits {
                let batch = feed.next_batch().await?;
                tell.send(Instant::now())?;
                batch.ack().await?;
            }
            Ok(())
        });
        Self {
            told,
            task,
            random: Random::new(1),
        }
    }

    /// Until the feed waits again, to any moment between two of its looks.
    fn pause(&mut self) {
        thread::sleep(Duration::from_micros(1000 + self.random.below(10_000)));
    }

    /// How long after the commit it came; at once if it came before the one who committed was told.
    fn after(&self, committed: Instant) -> std::result::Result<Duration, RecvTimeoutError> {
        let told = self.told.recv_timeout(MOST)?;
        Ok(told.saturating_duration_since(committed))
    }
}

/// By saves of this process; the feed hears of nothing else.
pub(in crate::feed) fn inside(runtime: &Runtime, files: &mut Files, commits: u32) -> Result<Wakes> {
    let db = runtime.block_on(opened(files))?;
    let feed = db.feed("wakes").look_every(Duration::from_secs(3600));
    let mut waiting = Waiting::start(runtime, feed, commits);
    let mut latencies = Latencies::default();
    for n in 1..=commits {
        // The feed waits again by then.
        thread::sleep(Duration::from_micros(500 + waiting.random.below(500)));
        let committed = runtime.block_on(async {
            let mut ctx = db.context();
            ctx.add(Told::of(n.into()));
            ctx.save_changes().await?;
            Ok::<_, Error>(Instant::now())
        })?;
        latencies.push(waiting.after(committed)?);
    }
    runtime.block_on(waiting.task)??;
    runtime.block_on(db.close())?;
    let title = "a commit of this process";
    Ok(Wakes { title, latencies })
}

/// By another connection, which only the triggers stamp.
pub(in crate::feed) fn foreign(
    runtime: &Runtime,
    files: &mut Files,
    commits: u32,
) -> Result<Wakes> {
    let db = runtime.block_on(opened(files))?;
    runtime.block_on(db.stamp_foreign_writes::<Told>())?;
    let plain = Connection::open(db.path())?;
    plain.busy_timeout(MOST)?;
    let feed = db.feed("wakes").look_every(Duration::from_millis(10));
    let mut waiting = Waiting::start(runtime, feed, commits);
    let mut latencies = Latencies::default();
    for n in 1..=commits {
        waiting.pause();
        plain.execute(
            "INSERT INTO told (id, item, quantity) VALUES (?1, 'item', 1)",
            [n],
        )?;
        latencies.push(waiting.after(Instant::now())?);
    }
    runtime.block_on(waiting.task)??;
    runtime.block_on(db.close())?;
    let title = "a commit of another program, look_every(10 ms)";
    Ok(Wakes { title, latencies })
}

async fn opened(files: &mut Files) -> Result<Database> {
    let db = Database::open(files.empty()).await?;
    db.create_tables::<Told>().await?;
    // The cursor is made with the first look.
    db.feed::<Told>("wakes").lag().await?;
    Ok(db)
}

impl fmt::Display for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, most] = (self.latencies.per_mille([500, 990, 1000])).map(table::latency);
        write!(
            f,
            "{}: {} batches, each there after p50 {p50}, p99 {p99}, at most {most}",
            self.title,
            self.latencies.count(),
        )
    }
}
