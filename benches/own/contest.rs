//! One workload: what is done, by whom, and by how much ours should be faster.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anabranch::prelude::{Execution, Synchronous};
use tokio::runtime::Runtime;
use workload::{Arguments, Floor, Result, median};

use crate::{
    contender::Contender,
    contenders::{Library, Pools, Threads, Way},
    files::{Content, Files, Sums},
    measure::{self, Load, Run, Work},
    shop,
    table::table,
};

/// sqlx, both ways: the better of the two counts.
pub(crate) const SQLX: &[Who] = &[Who::Pool, Who::OneWriter];
pub(crate) const RUSQLITE: &[Who] = &[Who::Rusqlite];

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Inline,
    Threaded,
    /// Inline, in `db.write`.
    Exclusive,
    /// Inline, in `db.concurrent`.
    Sessions,
    ThreadedSessions,
    Pool,
    OneWriter,
    Rusqlite,
}

/// One row of the contract's table.
#[derive(Debug)]
pub(crate) struct Contest {
    title: &'static str,
    unit: &'static str,
    load: Load,
    synchronous: Synchronous,
    content: Content,
    /// The first of them is the one whose ratios are taken.
    contenders: &'static [Who],
    /// How it should compare to the best of these.
    ratios: Vec<(Floor, &'static [Who])>,
    /// The runs of each contender, a run each round.
    runs: Vec<Vec<Run>>,
}

impl Who {
    const fn name(self) -> &'static str {
        match self {
            Self::Inline => "anabranch",
            Self::Threaded => "anabranch, threaded",
            Self::Exclusive => "anabranch, db.write",
            Self::Sessions => "anabranch, sessions",
            Self::ThreadedSessions => "sessions, threaded",
            Self::Pool => "sqlx, pool of 8",
            Self::OneWriter => "sqlx, one writer",
            Self::Rusqlite => "rusqlite, 8 threads",
        }
    }

    /// How the library is used, where this is the library.
    const fn library(self) -> Option<(Execution, Way)> {
        match self {
            Self::Inline => Some((Execution::Inline, Way::Optimistic)),
            Self::Threaded => Some((Execution::Threaded, Way::Optimistic)),
            Self::Exclusive => Some((Execution::Inline, Way::Exclusive)),
            Self::Sessions => Some((Execution::Inline, Way::Concurrent)),
            Self::ThreadedSessions => Some((Execution::Threaded, Way::Concurrent)),
            Self::Pool | Self::OneWriter | Self::Rusqlite => None,
        }
    }
}

/// Runs all contests in turn, round after round; returns how many rounds there were.
///
/// A quick benchmark begins no round that would end later than `quick`.
pub(crate) fn rounds(
    contests: &mut [Contest],
    runtime: &Runtime,
    files: &mut Files,
    arguments: &Arguments,
    quick: Duration,
) -> Result<usize> {
    let rounds = arguments
        .rounds
        .unwrap_or(if arguments.quick { 3 } else { 5 });
    let began = Instant::now();
    let mut done = 0;
    while done < rounds {
        eprintln!("round {} of {rounds}", done + 1);
        for contest in &mut *contests {
            contest.round(runtime, files, done)?;
        }
        done += 1;
        if arguments.quick && began.elapsed().mul_f64((done + 1) as f64 / done as f64) > quick {
            break;
        }
    }
    Ok(done)
}

impl Contest {
    /// A contest at NORMAL, without ratios.
    pub(crate) fn new(
        title: &'static str,
        unit: &'static str,
        load: Load,
        content: Content,
        contenders: &'static [Who],
    ) -> Self {
        Self {
            title,
            unit,
            load,
            synchronous: Synchronous::Normal,
            content,
            contenders,
            ratios: Vec::new(),
            runs: vec![Vec::new(); contenders.len()],
        }
    }

    /// How it compares to the best of these, which is printed only.
    pub(crate) fn beside(mut self, whom: &'static [Who], key: &'static str) -> Self {
        self.ratios.push((Floor { key, least: None }, whom));
        self
    }

    pub(crate) const fn full(mut self) -> Self {
        self.synchronous = Synchronous::Full;
        self
    }

    /// Ours should be so many times as fast as the best of these.
    pub(crate) fn over(mut self, whom: &'static [Who], key: &'static str, least: f64) -> Self {
        let least = Some(least);
        self.ratios.push((Floor { key, least }, whom));
        self
    }

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
        let run = self.run_on(&path, who).await?;
        self.check(files.check(&path)?)?;
        Ok(run)
    }

    async fn run_on(&self, path: &Path, who: Who) -> Result<Run> {
        let synchronous = self.synchronous;
        if let Some((execution, way)) = who.library() {
            let library = Library::open(path, synchronous, execution, way).await?;
            return self.measure(library).await;
        }
        match who {
            Who::Pool => self.measure(Pools::open(path, synchronous).await?).await,
            Who::OneWriter => {
                self.measure(Pools::open_with_one_writer(path, synchronous).await?)
                    .await
            }
            _ => self.measure(Threads::open(path, synchronous)?).await,
        }
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
            Work::Save | Work::Insert { .. } => (before + done, 0),
            Work::Increment | Work::IncrementOne => (before, done),
            Work::Get { .. } | Work::Scan { .. } | Work::Ask(_) => (before, 0),
        };
        let of_shop = if self.content.shop { shop::ROWS } else { 0 };
        let counts = !self.content.counts || found.quantity == increments;
        let shop = found.of_shop == i64::from(of_shop);
        if found.rows == rows && found.versions == rows + increments && counts && shop {
            return Ok(());
        }
        Err(format!("{rows} rows and {increments} increments expected, found {found:?}").into())
    }

    /// The runs of a contender so far.
    pub(crate) fn runs_of(&self, who: Who) -> &[Run] {
        let index = self.contenders.iter().position(|other| *other == who);
        index.map_or(&[], |index| &self.runs[index])
    }

    /// How much faster ours is, as the median over the rounds.
    fn ratio(&self, than: Who) -> f64 {
        let pairs = self
            .runs_of(self.contenders[0])
            .iter()
            .zip(self.runs_of(than));
        median(pairs.map(|(ours, theirs)| ours.per_second / theirs.per_second))
    }

    pub(crate) fn ratios(&self) -> Vec<(Floor, f64)> {
        let best = |whom: &[Who]| {
            let ratios = whom.iter().map(|than| self.ratio(*than));
            ratios.reduce(f64::min).unwrap_or(f64::NAN)
        };
        let ratios = self.ratios.iter();
        ratios.map(|(floor, whom)| (*floor, best(whom))).collect()
    }

    pub(crate) fn table(&self) -> String {
        let rows: Vec<_> = (self.contenders.iter())
            .map(|who| (who.name(), self.runs_of(*who)))
            .collect();
        table(self.title, self.unit, &rows)
    }
}
