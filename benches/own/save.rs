//! `save`: single-row saves, bursts of them, read-modify-write, and reads.

mod plan;

use std::time::{Duration, Instant};

use anabranch::prelude::{Execution, Synchronous};
use tokio::runtime::Runtime;
use workload::{Arguments, Floor, Latencies, Result, Summary, median};

use crate::{
    contender::Contender,
    contenders::{Library, Pools, Threads, Way},
    files::{Content, Files, Sums},
    measure::{self, Load, Run, Work},
    table::table,
    tracked::{self, Tracking},
};

/// A quick run begins no round after this long.
const QUICK: Duration = Duration::from_secs(28);

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Inline,
    Threaded,
    /// Inline, in `db.write`.
    Exclusive,
    Pool,
    OneWriter,
    Rusqlite,
}

/// One row of the contract's table: what is done, and by how much it should be faster than whom.
struct Workload {
    title: &'static str,
    unit: &'static str,
    load: Load,
    synchronous: Synchronous,
    content: Content,
    contenders: &'static [Who],
    /// Which of the library's contenders the ratios are of.
    ours: Who,
    sqlx: Option<Floor>,
    rusqlite: Option<Floor>,
    /// The runs of each contender, a run each round.
    runs: Vec<Vec<Run>>,
}

impl Who {
    const fn name(self) -> &'static str {
        match self {
            Self::Inline => "anabranch",
            Self::Threaded => "anabranch, threaded",
            Self::Exclusive => "anabranch, db.write",
            Self::Pool => "sqlx, pool of 8",
            Self::OneWriter => "sqlx, one writer",
            Self::Rusqlite => "rusqlite, 8 threads",
        }
    }
}

/// Runs the benchmark and prints its tables.
pub(crate) fn run(arguments: &Arguments) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut files = runtime.block_on(Files::new(arguments.dir.as_deref()))?;
    let mut workloads = plan::workloads(arguments.quick);
    let rounds = arguments
        .rounds
        .unwrap_or(if arguments.quick { 3 } else { 5 });
    let began = Instant::now();
    let mut done = 0;
    while done < rounds {
        eprintln!("round {} of {rounds}", done + 1);
        for workload in &mut workloads {
            workload.round(&runtime, &mut files, done)?;
        }
        done += 1;
        if arguments.quick && began.elapsed().mul_f64((done + 1) as f64 / done as f64) > QUICK {
            break;
        }
    }
    for workload in &workloads {
        println!("{}", workload.table());
    }
    println!("{}", beside_many(&runtime, &mut files)?);
    let ratios = workloads.iter().flat_map(Workload::ratios).collect();
    Ok(Summary::new("save", done, ratios))
}

impl Workload {
    /// Each contender once, on a file of its own; another one begins each round.
    fn round(&mut self, runtime: &Runtime, files: &mut Files, round: usize) -> Result<()> {
        for turn in 0..self.contenders.len() {
            let index = (turn + round) % self.contenders.len();
            let who = self.contenders[index];
            let run = runtime
                .block_on(self.run(files, who))
                .map_err(|error| format!("{}, {}: {error}", self.title, who.name()))?;
            self.runs[index].push(run);
        }
        Ok(())
    }

    async fn run(&self, files: &mut Files, who: Who) -> Result<Run> {
        let path = files.fresh(self.content)?;
        let synchronous = self.synchronous;
        let library = |execution, way| Library::open(&path, synchronous, execution, way);
        let run = match who {
            Who::Inline => {
                self.measure(library(Execution::Inline, Way::Optimistic).await?)
                    .await
            }
            Who::Threaded => {
                self.measure(library(Execution::Threaded, Way::Optimistic).await?)
                    .await
            }
            Who::Exclusive => {
                self.measure(library(Execution::Inline, Way::Exclusive).await?)
                    .await
            }
            Who::Pool => self.measure(Pools::open(&path, synchronous).await?).await,
            Who::OneWriter => {
                self.measure(Pools::open_with_one_writer(&path, synchronous).await?)
                    .await
            }
            Who::Rusqlite => self.measure(Threads::open(&path, synchronous)?).await,
        }?;
        self.check(files.check(&path)?)?;
        Ok(run)
    }

    async fn measure<C: Contender>(&self, contender: C) -> Result<Run> {
        let run = measure::run(&contender, self.load).await?;
        contender.close().await?;
        Ok(run)
    }

    /// Every acknowledged write is there, once.
    fn check(&self, found: Sums) -> Result<()> {
        let before = i64::from(self.content.rows);
        let done = i64::from(self.load.operations() + self.load.warm_up().operations());
        let (rows, increments) = match self.load.work {
            Work::Save => (before + done, 0),
            Work::Increment | Work::IncrementOne => (before, done),
            Work::Get { .. } | Work::Scan { .. } => (before, 0),
        };
        let counts = !self.content.counts || found.quantity == increments;
        if found.rows == rows && found.versions == rows + increments && counts {
            return Ok(());
        }
        Err(format!("{rows} rows and {increments} increments expected, found {found:?}").into())
    }

    fn runs_of(&self, who: Who) -> &[Run] {
        let index = self.contenders.iter().position(|other| *other == who);
        index.map_or(&[], |index| &self.runs[index])
    }

    /// How much faster ours is, as the median over the rounds.
    fn ratio(&self, than: Who) -> f64 {
        let pairs = self.runs_of(self.ours).iter().zip(self.runs_of(than));
        median(pairs.map(|(ours, theirs)| ours.per_second / theirs.per_second))
    }

    fn ratios(&self) -> Vec<(Floor, f64)> {
        let sqlx = || self.ratio(Who::Pool).min(self.ratio(Who::OneWriter));
        let sqlx = self.sqlx.map(|floor| (floor, sqlx()));
        let rusqlite = self
            .rusqlite
            .map(|floor| (floor, self.ratio(Who::Rusqlite)));
        sqlx.into_iter().chain(rusqlite).collect()
    }

    fn table(&self) -> String {
        let rows: Vec<_> = (self.contenders.iter())
            .map(|who| (who.name(), self.runs_of(*who)))
            .collect();
        table(self.title, self.unit, &rows)
    }
}

/// A save of ten changed entities, beside ten and beside ten thousand that are tracked.
fn beside_many(runtime: &Runtime, files: &mut Files) -> Result<String> {
    let mut few = Latencies::default();
    let mut many = Latencies::default();
    for _ in 0..3 {
        few.append(runtime.block_on(tracked::run(files, Tracking::Changed, 200))?);
        many.append(runtime.block_on(tracked::run(files, Tracking::All, 200))?);
    }
    let micros = |latencies: &Latencies| {
        let [median] = latencies.per_mille([500]);
        median.unwrap_or_default().as_secs_f64() * 1e6
    };
    let (few, many) = (micros(&few), micros(&many));
    Ok(format!(
        "a save of 10 changed entities: {few:.1} us with 10 tracked, {many:.1} us with 10,000 tracked, \
         {:.2} times as long\n",
        many / few
    ))
}
