//! The workloads, and the least that each ratio is to be.

use anabranch::prelude::Synchronous;
use workload::Floor;

use crate::{
    files::Content,
    measure::{Load, Work},
    save::{Who, Workload},
};

/// How many rows are read from.
const ROWS: u32 = 100_000;
/// How many rows tasks increment, each another one.
const COUNTERS: u32 = 8 * 250;

const ALL: &[Who] = &[
    Who::Inline,
    Who::Threaded,
    Who::Pool,
    Who::OneWriter,
    Who::Rusqlite,
];
/// Where everybody wants the same row, the two ways to write it are told apart.
const HOT: &[Who] = &[
    Who::Exclusive,
    Who::Inline,
    Who::Threaded,
    Who::Pool,
    Who::OneWriter,
    Who::Rusqlite,
];

impl Workload {
    fn new(title: &'static str, unit: &'static str, load: Load) -> Self {
        let (rows, counts) = match load.work {
            Work::Save => (0, false),
            Work::Get { of } | Work::Scan { of } => (of, false),
            Work::Increment | Work::IncrementOne => (COUNTERS, true),
        };
        let hot = load.work == Work::IncrementOne;
        let contenders = if hot { HOT } else { ALL };
        Self {
            title,
            unit,
            load,
            synchronous: Synchronous::Normal,
            content: Content { rows, counts },
            contenders,
            // For a row that everybody writes, `db.write` is what the guide says to use.
            ours: if hot { Who::Exclusive } else { Who::Inline },
            sqlx: None,
            rusqlite: None,
            runs: vec![Vec::new(); contenders.len()],
        }
    }

    const fn full(mut self) -> Self {
        self.synchronous = Synchronous::Full;
        self
    }

    const fn over_sqlx(mut self, key: &'static str, least: f64) -> Self {
        let least = Some(least);
        self.sqlx = Some(Floor { key, least });
        self
    }

    const fn over_rusqlite(mut self, key: &'static str, least: f64) -> Self {
        let least = Some(least);
        self.rusqlite = Some(Floor { key, least });
        self
    }
}

/// All workloads; quick ones do less of each.
pub(in crate::save) fn workloads(quick: bool) -> Vec<Workload> {
    let times = |work, tasks, each, times| Load {
        work,
        tasks,
        each,
        times,
    };
    let pick = |full, short| if quick { short } else { full };
    vec![
        Workload::new(
            "save1, NORMAL: one task, single-row saves",
            "saves/s",
            times(Work::Save, 1, pick(4000, 1000), 1),
        )
        .over_sqlx("save1_normal_vs_sqlx", 3.0)
        .over_rusqlite("save1_normal_vs_rusqlite", 0.7),
        Workload::new(
            "burst, NORMAL: 50 tasks, 40 single-row saves each",
            "saves/s",
            times(Work::Save, 50, 40, pick(5, 2)),
        )
        .over_sqlx("burst_normal_vs_sqlx", 6.0)
        .over_rusqlite("burst_normal_vs_rusqlite", 1.8),
        Workload::new(
            "burst, FULL: the same, and each commit waits for the disk",
            "saves/s",
            times(Work::Save, 50, pick(40, 16), 1),
        )
        .full()
        .over_sqlx("burst_full_vs_sqlx", 12.0)
        .over_rusqlite("burst_full_vs_rusqlite", 8.0),
        Workload::new(
            "rmw, NORMAL: 8 tasks load, change and save 250 rows each",
            "saves/s",
            times(Work::Increment, 8, pick(250, 125), pick(3, 1)),
        )
        .over_sqlx("rmw_normal_vs_sqlx", 5.0),
        Workload::new(
            "hot, NORMAL: the same, but all have one row",
            "saves/s",
            times(Work::IncrementOne, 8, pick(250, 125), pick(2, 1)),
        )
        .over_sqlx("hot_normal_vs_sqlx", 2.0),
        Workload::new(
            "get: one task, rows by key",
            "reads/s",
            times(Work::Get { of: ROWS }, 1, pick(20_000, 4_000), 1),
        )
        .over_sqlx("get_vs_sqlx", 5.0)
        .over_rusqlite("get_vs_rusqlite", 0.6),
        Workload::new(
            "scan: 100,000 rows into structs",
            "rows/s",
            times(Work::Scan { of: ROWS }, 1, pick(5, 1), 1),
        )
        .over_sqlx("scan_vs_sqlx", 3.0)
        .over_rusqlite("scan_vs_rusqlite", 0.75),
    ]
}
