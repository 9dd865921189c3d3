//! `observe`: what a read by key and a save cost, with nobody who listens, and with a recorder of `metrics`.
//!
//! Built without the feature it shows the first alone; built with it, the same with handles that lead nowhere, and in turn
//! with a recorder. What the feature costs by itself is the difference of two builds.

use std::time::{Duration, Instant};

use anabranch::prelude::*;
use tokio::runtime::Runtime;
use workload::{Arguments, Result, Summary};

use crate::{
    contenders::Order,
    files::{Content, Files},
};

const ROWS: u32 = 1_000;
const READS: u32 = 2_000;
const SAVES: u32 = 1_000;

/// A database, and how long its reads and saves took in each round.
struct Run {
    name: &'static str,
    db: Database,
    reads: Vec<Duration>,
    saves: Vec<Duration>,
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(arguments: &Arguments, _: &Runtime, files: &mut Files) -> Result<Summary> {
    let rounds = arguments
        .rounds
        .unwrap_or(if arguments.quick { 40 } else { 200 });
    // One thread: what is measured is a few microseconds on a task.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let content = Content {
        rows: ROWS,
        counts: true,
        ..Content::default()
    };
    let mut runs = Vec::new();
    for name in told()? {
        if name == "a recorder" {
            install()?;
        }
        let db = runtime.block_on(Database::open(files.fresh(content)?))?;
        runs.push(Run {
            name,
            db,
            reads: Vec::new(),
            saves: Vec::new(),
        });
    }
    for round in 0..rounds {
        let count = runs.len();
        for turn in 0..count {
            runtime.block_on(runs[(round + turn) % count].round())?;
        }
    }
    println!(
        "{:<16} {:>12} {:>12}",
        "who listens", "read, us", "save, us"
    );
    for run in &mut runs {
        println!(
            "{:<16} {:>12.3} {:>12.3}",
            run.name,
            median(&mut run.reads),
            median(&mut run.saves)
        );
    }
    Ok(Summary::new("observe", rounds, Vec::new()))
}

impl Run {
    async fn round(&mut self) -> Result<()> {
        let began = Instant::now();
        for n in 0..READS {
            let id = i64::from(n * 7 % ROWS) + 1;
            let found = Order::query()
                .filter(Order::ID.eq(id))
                .first(&self.db)
                .await?;
            found.ok_or("a row is missing")?;
        }
        self.reads.push(began.elapsed() / READS);
        let mut ctx = self.db.context();
        let order = ctx.find::<Order>(1).await?.ok_or("a row is missing")?;
        let began = Instant::now();
        for _ in 0..SAVES {
            ctx[order].quantity += 1;
            ctx.save_changes().await?;
        }
        self.saves.push(began.elapsed() / SAVES);
        Ok(())
    }
}

/// In microseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

#[cfg(not(feature = "metrics"))]
fn told() -> Result<Vec<&'static str>> {
    Ok(vec!["nobody"])
}

#[cfg(feature = "metrics")]
fn told() -> Result<Vec<&'static str>> {
    Ok(vec!["no recorder", "a recorder"])
}

#[cfg(not(feature = "metrics"))]
fn install() -> Result<()> {
    Ok(())
}

#[cfg(feature = "metrics")]
fn install() -> Result<()> {
    Ok(metrics::set_global_recorder(
        metrics_util::debugging::DebuggingRecorder::new(),
    )?)
}
