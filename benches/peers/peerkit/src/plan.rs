//! The workloads.

use crate::config::usage;
use crate::{Config, Entity, NewOrder, Res, Rng};

/// The workloads, in the order of the report.
pub const WORKLOADS: &[&str] = &[
    "save1",
    "bulk",
    "bulkwide",
    "txwork0",
    "txwork200",
    "txwork2000",
    "burst",
    "getpk1",
    "getpk8",
    "scan",
    "rmw",
    "rmwhot",
    "count",
];

/// What a workload does, in numbers.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// One task saves `n` rows one by one.
    Save {
        tasks: u64,
        each: u64,
    },
    Bulk {
        rows: u64,
    },
    BulkWide {
        rows: u64,
    },
    /// Insert one row, pause `wait_us`, commit.
    TxWork {
        tasks: u64,
        each: u64,
        wait_us: u64,
    },
    Get {
        seed: u64,
        tasks: u64,
        each: u64,
    },
    Scan {
        seed: u64,
        times: u64,
    },
    Rmw {
        seed: u64,
        tasks: u64,
        each: u64,
        hot: bool,
    },
    /// Prints the number of rows of an existing database, made by another run.
    Count,
}

impl Plan {
    pub(crate) fn of(config: &Config) -> Self {
        let d = |n: u64| (n / config.divide).max(1);
        match config.workload.as_str() {
            "save1" => Self::Save {
                tasks: 1,
                each: d(2_000),
            },
            "bulk" => Self::Bulk { rows: d(100_000) },
            "bulkwide" => Self::BulkWide { rows: d(20_000) },
            "txwork0" => Self::TxWork {
                tasks: 8,
                each: d(250),
                wait_us: 0,
            },
            "txwork200" => Self::TxWork {
                tasks: 8,
                each: d(250),
                wait_us: 200,
            },
            "txwork2000" => Self::TxWork {
                tasks: 8,
                each: d(250),
                wait_us: 2_000,
            },
            "burst" => Self::Save {
                tasks: 50,
                each: d(40),
            },
            "getpk1" => Self::Get {
                seed: d(100_000),
                tasks: 1,
                each: d(20_000),
            },
            "getpk8" => Self::Get {
                seed: d(100_000),
                tasks: 8,
                each: d(5_000),
            },
            "scan" => Self::Scan {
                seed: d(100_000),
                times: 5,
            },
            "rmw" => Self::Rmw {
                seed: 8 * d(250),
                tasks: 8,
                each: d(250),
                hot: false,
            },
            "rmwhot" => Self::Rmw {
                seed: 8,
                tasks: 8,
                each: d(250),
                hot: true,
            },
            "count" => Self::Count,
            other => usage(&format!("unknown workload {other}")),
        }
    }
    pub(crate) fn seed_rows(&self) -> u64 {
        match *self {
            Self::Get { seed, .. } | Self::Scan { seed, .. } | Self::Rmw { seed, .. } => seed,
            _ => 0,
        }
    }
    /// Seed rows have quantity 0 for read-modify-write, so that the sum of the
    /// quantities is the number of updates that survived.
    pub(crate) fn seed(&self) -> Vec<NewOrder> {
        let zero = matches!(self, Self::Rmw { .. });
        (0..self.seed_rows())
            .map(|n| {
                let mut order = NewOrder::nth(0, n);
                if zero {
                    order.quantity = 0;
                }
                order
            })
            .collect()
    }
}

/// The id that task `task` reads as its `n`th, of `seed` rows.
pub(crate) fn read_id(rng: &mut Rng, seed: u64) -> i64 {
    (rng.next() % seed) as i64 + 1
}

/// The id that task `task` changes as its `n`th.
pub(crate) fn rmw_id(hot: bool, task: u64, each: u64, n: u64) -> i64 {
    if hot { 1 } else { (task * each + n) as i64 + 1 }
}

/// What each task saves.
pub(crate) fn orders(tasks: u64, each: u64) -> Vec<Vec<NewOrder>> {
    (0..tasks)
        .map(|task| {
            (0..each)
                .map(|n| NewOrder::nth(task as i64 + 1, n))
                .collect()
        })
        .collect()
}

pub(crate) fn right_row(row: &impl Entity, id: i64) -> Res<()> {
    if row.key() != id {
        return Err(format!("asked for row {id}, got {}", row.key()).into());
    }
    std::hint::black_box(row.quantity());
    Ok(())
}

pub(crate) fn all_rows<E: Entity>(rows: &[E], expected: u64) -> Res<()> {
    let sum: i64 = rows.iter().map(Entity::quantity).sum();
    std::hint::black_box(sum);
    if rows.len() as u64 != expected {
        return Err(format!("{} rows instead of {expected}", rows.len()).into());
    }
    Ok(())
}
