//! How long the begin of a session takes beside a writer that commits single rows as fast as it can.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use workload::{Floor, Latencies, NewOrder, Result};

use crate::{
    contenders::{Library, Order, Way},
    files::{Content, Files},
    table,
};

/// 99.9 % of the begins should take no longer.
const MOST: Duration = Duration::from_millis(50);

/// What was measured.
#[derive(Debug)]
pub(in crate::concurrent) struct Begins {
    latencies: Latencies,
    /// How many were begun with the writer held.
    slow: u64,
    saves_per_second: f64,
}

/// The task that writes.
#[derive(Debug, Default)]
struct Writer {
    saves: AtomicU32,
    stop: AtomicBool,
}

/// Begins sessions, one after the other, for so long.
pub(in crate::concurrent) async fn run(files: &mut Files, time: Duration) -> Result<Begins> {
    let path = files.fresh(Content::default())?;
    let library = Library::open(
        &path,
        Synchronous::Normal,
        Execution::Inline,
        Way::Concurrent,
    )
    .await?;
    let db = library.database();
    let writer = Arc::new(Writer::default());
    let writes = tokio::spawn(Arc::clone(&writer).save_all_the_time(db.clone()));
    while writer.saves() == 0 && !writes.is_finished() {
        tokio::task::yield_now().await;
    }
    let saves = writer.saves();
    let latencies = tokio::spawn(begin(db.clone(), time)).await;
    let saves_per_second = f64::from(writer.saves() - saves) / time.as_secs_f64();
    writer.stop.store(true, Ordering::Relaxed);
    writes.await??;
    let slow = db.statistics().slow_begins;
    db.close().await?;
    let (saves, found) = (writer.saves(), files.check(&path)?);
    if found.rows != i64::from(saves) {
        return Err(format!("{saves} rows were saved, found {found:?}").into());
    }
    Ok(Begins {
        latencies: latencies??,
        slow,
        saves_per_second,
    })
}

/// Each session reads a row, so that its snapshot is one that is used.
async fn begin(db: Database, time: Duration) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    let end = Instant::now() + time;
    loop {
        let began = Instant::now();
        if began >= end {
            return Ok(latencies);
        }
        let mut session = db.begin_concurrent(Isolation::Serializable).await?;
        latencies.push(began.elapsed());
        let order = Order::find(&mut *session, 1).await?;
        session.rollback().await?;
        if order.is_none() {
            return Err("a session does not see what was saved before it began".into());
        }
        // Nothing of the above waits, and the task that writes may stand behind this one.
        tokio::task::yield_now().await;
    }
}

impl Writer {
    async fn save_all_the_time(self: Arc<Self>, db: Database) -> Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            let mut ctx = db.context();
            ctx.add(Order::from(NewOrder::nth(1, self.saves())));
            ctx.save_changes().await?;
            self.saves.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn saves(&self) -> u32 {
        self.saves.load(Ordering::Relaxed)
    }
}

impl Begins {
    /// How far below the most it stayed.
    pub(in crate::concurrent) fn ratio(&self) -> (Floor, f64) {
        let [p999] = self.latencies.per_mille([999]);
        let floor = Floor {
            key: "begin_p999_within_50ms",
            least: Some(1.0),
        };
        let ratio = p999.map_or(f64::NAN, |p999| MOST.div_duration_f64(p999));
        (floor, ratio)
    }
}

impl fmt::Display for Begins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, p999, most] = self
            .latencies
            .per_mille([500, 990, 999, 1000])
            .map(table::latency);
        writeln!(
            f,
            "begin_concurrent beside {:.0} saves a second: p50 {p50}, p99 {p99}, p99.9 {p999}, at most {most}; \
             {} of {} with the writer held",
            self.saves_per_second,
            self.slow,
            self.latencies.count(),
        )
    }
}
