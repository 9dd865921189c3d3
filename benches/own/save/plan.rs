//! The contests, and the least that each ratio is to be.

use crate::{
    contest::{Contest, RUSQLITE, SQLX, Who},
    files::Content,
    measure::{Load, Work},
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
/// Where everybody wants the same row, the two ways to write it are told apart. Ours is `db.write`, as the guide says.
const HOT: &[Who] = &[
    Who::Exclusive,
    Who::Inline,
    Who::Threaded,
    Who::Pool,
    Who::OneWriter,
    Who::Rusqlite,
];

fn contest(title: &'static str, unit: &'static str, load: Load) -> Contest {
    let (rows, counts) = match load.work {
        Work::Save | Work::Insert { .. } | Work::Ask(_) => (0, false),
        Work::Get { of } | Work::Scan { of } => (of, false),
        Work::Increment | Work::IncrementOne => (COUNTERS, true),
    };
    let is_hot = load.work == Work::IncrementOne;
    let contenders = if is_hot { HOT } else { ALL };
    let content = Content {
        rows,
        counts,
        ..Content::default()
    };
    Contest::new(title, unit, load, content, contenders)
}

/// All contests; quick ones do less of each.
pub(in crate::save) fn contests(quick: bool) -> Vec<Contest> {
    let times = |work, tasks, each, times| Load {
        work,
        tasks,
        each,
        times,
    };
    let pick = |full, short| if quick { short } else { full };
    vec![
        contest(
            "save1, NORMAL: one task, single-row saves",
            "saves/s",
            times(Work::Save, 1, pick(4000, 1000), 1),
        )
        .over(SQLX, "save1_normal_vs_sqlx", 3.0)
        .over(RUSQLITE, "save1_normal_vs_rusqlite", 0.7),
        contest(
            "burst, NORMAL: 50 tasks, 40 single-row saves each",
            "saves/s",
            times(Work::Save, 50, 40, pick(5, 2)),
        )
        .over(SQLX, "burst_normal_vs_sqlx", 6.0)
        .over(RUSQLITE, "burst_normal_vs_rusqlite", 1.8),
        contest(
            "burst, FULL: the same, and each commit waits for the disk",
            "saves/s",
            times(Work::Save, 50, pick(40, 16), 1),
        )
        .full()
        .over(SQLX, "burst_full_vs_sqlx", 12.0)
        .over(RUSQLITE, "burst_full_vs_rusqlite", 8.0),
        contest(
            "rmw, NORMAL: 8 tasks load, change and save 250 rows each",
            "saves/s",
            times(Work::Increment, 8, pick(250, 125), pick(3, 1)),
        )
        .over(SQLX, "rmw_normal_vs_sqlx", 5.0),
        contest(
            "hot, NORMAL: the same, but all have one row",
            "saves/s",
            times(Work::IncrementOne, 8, pick(250, 125), pick(2, 1)),
        )
        .over(SQLX, "hot_normal_vs_sqlx", 2.0),
        contest(
            "get: one task, rows by key",
            "reads/s",
            times(Work::Get { of: ROWS }, 1, pick(20_000, 4_000), 1),
        )
        .over(SQLX, "get_vs_sqlx", 5.0)
        .over(RUSQLITE, "get_vs_rusqlite", 0.6),
        contest(
            "scan: 100,000 rows into structs",
            "rows/s",
            times(Work::Scan { of: ROWS }, 1, pick(5, 1), 1),
        )
        .over(SQLX, "scan_vs_sqlx", 3.0)
        .over(RUSQLITE, "scan_vs_rusqlite", 0.75),
    ]
}
