//! Sixteen tasks record delays and reassign planes, many of them of the same flight at the same moment.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anyhow::{Context as _, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::{sync::Barrier, task::JoinSet};

use crate::entities::Flight;

/// How many tasks there are.
pub(crate) const TASKS: usize = 16;

/// How often each of them does its three pieces of work.
const ROUNDS: usize = 25;

/// How many minutes are recorded at a time.
const MINUTES: i32 = 5;

/// What the tasks did, and what the flights looked like before and after.
#[derive(Debug)]
pub(crate) struct Worked {
    pub(crate) delays: u64,
    pub(crate) swaps: u64,
    pub(crate) conflicts: u64,
    pub(crate) resolved: u64,
    pub(crate) took: Duration,
    pub(crate) minutes_recorded: i64,
    pub(crate) minutes_found: i64,
    pub(crate) planes_kept: bool,
}

/// What the tasks share.
struct Desk {
    db: Database,
    /// One flight for each round, on which all tasks work.
    shared: Vec<i64>,
    /// One flight for each task, its own.
    own: Vec<i64>,
    together: Barrier,
    delays: AtomicU64,
    swaps: AtomicU64,
    conflicts: AtomicU64,
    resolved: AtomicU64,
    bar: ProgressBar,
}

/// Lets the tasks work, and compares.
pub(crate) async fn work(db: &Database) -> Result<Worked> {
    let before = most_delayed(db).await?;
    let (shared, own) = before.split_at(ROUNDS);
    let desk = Arc::new(Desk {
        db: db.clone(),
        shared: ids(shared),
        own: ids(own),
        together: Barrier::new(TASKS),
        delays: AtomicU64::new(0),
        swaps: AtomicU64::new(0),
        conflicts: AtomicU64::new(0),
        resolved: AtomicU64::new(0),
        bar: bar()?,
    });
    let began = Instant::now();
    let mut tasks: JoinSet<_> = (0..TASKS).map(|task| Arc::clone(&desk).run(task)).collect();
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let took = began.elapsed();
    desk.bar.finish();

    let after = Flight::query()
        .filter(Flight::ID.is_in(ids(&before)))
        .all(db)
        .await?;
    let delays = desk.delays.load(Ordering::Relaxed);
    Ok(Worked {
        delays,
        swaps: desk.swaps.load(Ordering::Relaxed),
        conflicts: desk.conflicts.load(Ordering::Relaxed),
        resolved: desk.resolved.load(Ordering::Relaxed),
        took,
        minutes_recorded: i64::from(MINUTES) * i64::try_from(delays)?,
        minutes_found: minutes(&after) - minutes(&before),
        planes_kept: planes(&after) == planes(&before),
    })
}

impl Desk {
    async fn run(self: Arc<Self>, task: usize) -> Result<()> {
        let own = self.own[task];
        for &shared in &self.shared {
            self.record_delay(shared, Some(&self.together)).await?;
            self.record_delay(own, None).await?;
            self.swap_planes(own, shared).await?;
        }
        Ok(())
    }

    /// Adds to a flight's delay. Tasks that meet have all read the flight before one of them saves it, so that all
    /// but the first are refused.
    async fn record_delay(&self, id: i64, mut meet: Option<&Barrier>) -> Result<()> {
        let mut refused = 0;
        loop {
            let mut ctx = self.db.context();
            let flight = find(&mut ctx, id).await?;
            ctx[flight].dep_delay = ctx[flight].dep_delay.map(|delay| delay + MINUTES);
            if let Some(together) = meet.take() {
                together.wait().await;
            }
            if self.saved(&mut ctx, &mut refused).await? {
                self.delays.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
    }

    /// Exchanges the planes of two flights: both are saved, or neither.
    async fn swap_planes(&self, one: i64, other: i64) -> Result<()> {
        let mut refused = 0;
        loop {
            let mut ctx = self.db.context();
            let one = find(&mut ctx, one).await?;
            let other = find(&mut ctx, other).await?;
            let plane = ctx[one].tailnum.take();
            ctx[one].tailnum = mem::replace(&mut ctx[other].tailnum, plane);
            if self.saved(&mut ctx, &mut refused).await? {
                self.swaps.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
    }

    /// Saves. It is false when another task changed a flight after it was read: then nothing was written, and the
    /// work starts again from what the database holds now, in a new context.
    async fn saved(&self, ctx: &mut Context<'_>, refused: &mut u64) -> Result<bool> {
        match ctx.save_changes().await {
            Ok(_) => {
                self.resolved.fetch_add(*refused, Ordering::Relaxed);
                self.bar.inc(1);
                Ok(true)
            }
            Err(error) if error.is_conflict() => {
                self.conflicts.fetch_add(1, Ordering::Relaxed);
                *refused += 1;
                Ok(false)
            }
            Err(error) => Err(error).context("working on flights"),
        }
    }
}

async fn find(ctx: &mut Context<'_>, id: i64) -> Result<Tracked<Flight>> {
    ctx.find(id).await?.context("a flight is gone")
}

fn ids(flights: &[Flight]) -> Vec<i64> {
    flights.iter().map(|flight| flight.id).collect()
}

/// As many flights as the tasks need, the most delayed ones; each has a plane.
async fn most_delayed(db: &Database) -> Result<Vec<Flight>> {
    let needed = ROUNDS + TASKS;
    let flights = Flight::query()
        .filter(Flight::DEP_DELAY.is_not_null())
        .filter(Flight::TAILNUM.is_not_null())
        .order_by([Flight::DEP_DELAY.desc(), Flight::ID.asc()])
        .limit(needed as u64)
        .all(db)
        .await?;
    ensure!(
        flights.len() == needed,
        "the tasks need {needed} flights that departed, with a plane: there are {}",
        flights.len()
    );
    Ok(flights)
}

fn minutes(flights: &[Flight]) -> i64 {
    flights
        .iter()
        .filter_map(|flight| flight.dep_delay)
        .map(i64::from)
        .sum()
}

fn planes(flights: &[Flight]) -> Vec<&str> {
    let mut planes: Vec<_> = flights
        .iter()
        .filter_map(|flight| flight.tailnum.as_deref())
        .collect();
    planes.sort_unstable();
    planes
}

fn bar() -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix:>9} {wide_bar} {pos:>5} of {len} saves")?;
    let saves = (TASKS * ROUNDS * 3) as u64;
    Ok(ProgressBar::new(saves)
        .with_style(style)
        .with_prefix("16 tasks"))
}
