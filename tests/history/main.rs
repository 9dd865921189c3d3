//! The history checker: random workloads of sessions, saves and transactions, and a serial replay of what they say they
//! saw.
//!
//! Every shape runs stepped, statement by statement, and in parallel. `ANABRANCH_SEED` repeats a seed, `ANABRANCH_SHAPE` a
//! shape by its name; `ANABRANCH_LONG=1` goes on with fresh seeds for `ANABRANCH_MINUTES` (30).
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod check;
mod client;
mod contexts;
mod draw;
mod neighbour;
mod operation;
mod pace;
mod parallel;
mod planted;
mod remains;
mod replay;
mod shape;
mod shapes;
mod statements;
mod stepper;
mod tables;
mod typed;
mod unit;
mod world;

use std::time::{Duration, Instant};

use anabranch_tests::random::{Random, is_long, seed};

use crate::{check::check, remains::Remains, shape::Shape, shapes::SHAPES, unit::Outcome};

/// Which way a workload is run.
#[derive(Debug, Clone, Copy)]
enum Way {
    Stepped,
    Parallel,
}

#[tokio::test]
async fn what_stepped_sessions_saw_is_a_serial_history() {
    run_all("stepped", Way::Stepped, 400).await;
}

#[tokio::test]
async fn what_parallel_sessions_saw_is_a_serial_history() {
    run_all("parallel", Way::Parallel, 1200).await;
}

/// All shapes with one seed; in the long form again and again, with fresh ones.
async fn run_all(test: &str, way: Way, units: u64) {
    let first = seed(test);
    let end = Instant::now() + long_time();
    let mut random = Random::new(first);
    let mut seed = first;
    let mut counts = Counts::default();
    loop {
        for shape in chosen() {
            let began = Instant::now();
            let remains = run(shape, way, seed, units).await;
            let of_shape = Counts::of(&remains);
            assert_serial(&remains, shape, way, seed);
            eprintln!(
                "{way:?}, {}: {of_shape:?} in {:?}",
                shape.name,
                began.elapsed()
            );
            counts.add(&of_shape);
        }
        if Instant::now() >= end {
            break;
        }
        seed = random.next();
    }
    eprintln!("{way:?}, in all: {counts:?}");
    assert!(counts.committed > counts.undone, "sessions hardly commit");
}

async fn run(shape: &'static Shape, way: Way, seed: u64, units: u64) -> Remains {
    eprintln!(
        "ANABRANCH_SEED={seed} ANABRANCH_SHAPE='{}' {way:?}",
        shape.name
    );
    match way {
        Way::Stepped => stepper::run(shape, seed, units).await,
        Way::Parallel => parallel::run(shape, seed, units).await,
    }
}

fn assert_serial(remains: &Remains, shape: &Shape, way: Way, seed: u64) {
    let violations = check(&remains.history, &remains.base);
    let first: Vec<_> = violations.iter().take(4).map(ToString::to_string).collect();
    assert!(
        violations.is_empty(),
        "ANABRANCH_SEED={seed} ANABRANCH_SHAPE='{}' {way:?}: {} violations, of which the first are\n{}",
        shape.name,
        violations.len(),
        first.join("\n")
    );
}

fn chosen() -> Vec<&'static Shape> {
    match std::env::var("ANABRANCH_SHAPE") {
        Ok(name) => vec![shapes::named(&name)],
        Err(_) => SHAPES.iter().collect(),
    }
}

/// How long the tests go on after their first round.
fn long_time() -> Duration {
    let minutes = std::env::var("ANABRANCH_MINUTES").ok();
    let minutes = minutes
        .and_then(|minutes| minutes.parse().ok())
        .unwrap_or(30);
    Duration::from_secs(if is_long() { 60 * minutes } else { 0 })
}

/// How units ended.
#[derive(Debug, Default)]
struct Counts {
    committed: usize,
    conflicts: usize,
    undone: usize,
    unknown: usize,
}

impl Counts {
    fn of(remains: &Remains) -> Self {
        let mut counts = Self::default();
        for unit in &remains.history.units {
            match unit.outcome {
                Outcome::Committed(_) => counts.committed += 1,
                Outcome::Conflict => counts.conflicts += 1,
                Outcome::Undone => counts.undone += 1,
                Outcome::Unknown => counts.unknown += 1,
            }
        }
        counts
    }

    const fn add(&mut self, other: &Self) {
        self.committed += other.committed;
        self.conflicts += other.conflicts;
        self.undone += other.undone;
        self.unknown += other.unknown;
    }
}
