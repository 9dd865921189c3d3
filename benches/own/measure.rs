//! One run of one contender: who does what, and how long it took.

use std::time::{Duration, Instant};

use anabranch::observe::Statistics;
use tokio::runtime::Handle;
use workload::{Heartbeat, Latencies, NewOrder, Random, Result};

use crate::{contender::Contender, question::Question};

/// What is done, by how many tasks, and how often by each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) work: Work,
    pub(crate) tasks: u32,
    pub(crate) each: u32,
    /// How often all of it is done again.
    pub(crate) times: u32,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Save,
    /// A save in a transaction that waits so long before it commits.
    Insert {
        wait: Duration,
    },
    /// Reads one of so many rows.
    Get {
        of: u32,
    },
    /// Reads so many rows; each of them counts.
    Scan {
        of: u32,
    },
    /// Queries over the shops and products; what an answer has counts.
    Ask(Question),
    /// Each operation of a time has a row of its own.
    Increment,
    /// All operations have the same row.
    IncrementOne,
}

/// What a run showed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    pub(crate) per_second: f64,
    pub(crate) operations: Latencies,
    pub(crate) beats: Latencies,
    /// What the library counted, before and after.
    pub(crate) statistics: Option<(Statistics, Statistics)>,
}

impl Load {
    /// How many operations there are.
    pub(crate) const fn operations(self) -> u32 {
        self.tasks * self.each * self.times
    }

    /// A little of the same, so that connections and statements are ready when the clock starts.
    pub(crate) const fn warm_up(self) -> Self {
        let each = if self.tasks == 1 { 64 } else { 8 };
        let each = match self.work {
            Work::Scan { .. } | Work::Ask(_) => 1,
            _ if each > self.each => self.each,
            _ => each,
        };
        Self {
            each,
            times: 1,
            ..self
        }
    }

    /// How many operations of a run count as one.
    fn weight(self) -> f64 {
        match self.work {
            Work::Scan { of } => of.into(),
            Work::Ask(question) => question.weight(),
            _ => 1.0,
        }
    }

    /// The same work, shared by so many threads; it has to be divisible, or the count of rows will tell.
    fn shared_by(self, threads: u32) -> Self {
        let threads = threads.min(self.tasks);
        Self {
            tasks: threads,
            each: self.tasks * self.each / threads,
            ..self
        }
    }
}

/// Runs a load and takes the time.
pub(crate) async fn run<C: Contender>(contender: &C, load: Load) -> Result<Run> {
    perform(contender, load.warm_up()).await?;
    let before = contender.statistics();
    let heartbeat = Heartbeat::start(&Handle::current());
    let began = Instant::now();
    let performed = perform(contender, load).await;
    let seconds = began.elapsed().as_secs_f64();
    let beats = heartbeat.stop().await?;
    Ok(Run {
        per_second: f64::from(load.operations()) * load.weight() / seconds,
        operations: performed?,
        beats,
        statistics: before.zip(contender.statistics()),
    })
}

async fn perform<C: Contender>(contender: &C, load: Load) -> Result<Latencies> {
    let load = C::THREADS.map_or(load, |threads| load.shared_by(threads));
    let mut latencies = Latencies::default();
    for _ in 0..load.times {
        let tasks: Vec<_> = (0..load.tasks)
            .map(|task| {
                let work = work(contender.clone(), load, task);
                match C::THREADS {
                    None => tokio::spawn(work),
                    // A thread for blocking work each; the future in it never waits.
                    Some(_) => tokio::task::spawn_blocking(|| Handle::current().block_on(work)),
                }
            })
            .collect();
        for task in tasks {
            latencies.append(task.await??);
        }
    }
    Ok(latencies)
}

/// What one task does.
async fn work<C: Contender>(contender: C, load: Load, task: u32) -> Result<Latencies> {
    let mut latencies = Latencies::with_capacity(load.each as usize);
    let mut random = Random::new(task.into());
    for n in 0..load.each {
        match load.work {
            Work::Save => {
                let order = NewOrder::nth(task + 1, n);
                let began = Instant::now();
                contender.save(order).await?;
                latencies.push(began.elapsed());
            }
            Work::Insert { wait } => {
                let order = NewOrder::nth(task + 1, n);
                let began = Instant::now();
                contender.insert(order, wait).await?;
                latencies.push(began.elapsed());
            }
            Work::Get { of } => {
                let id = i64::try_from(random.below(of.into()))? + 1;
                let began = Instant::now();
                let seen = contender.get(id).await?;
                latencies.push(began.elapsed());
                if (seen.rows, seen.last) != (1, id) {
                    return Err(format!("asked for order {id}, got {seen:?}").into());
                }
            }
            Work::Scan { of } => {
                let began = Instant::now();
                let seen = contender.scan().await?;
                latencies.push(began.elapsed());
                if seen.rows != of as usize {
                    return Err(format!("{} rows instead of {of}", seen.rows).into());
                }
            }
            Work::Ask(question) => {
                let began = Instant::now();
                let seen = contender.answer(question).await?;
                latencies.push(began.elapsed());
                if !question.is_answered_by(seen) {
                    return Err(format!("{question:?} was answered by {seen:?}").into());
                }
            }
            Work::Increment | Work::IncrementOne => {
                let own = task * load.each + n;
                let id = if load.work == Work::Increment { own } else { 0 };
                let began = Instant::now();
                contender.increment((id + 1).into()).await?;
                latencies.push(began.elapsed());
            }
        }
    }
    Ok(latencies)
}
