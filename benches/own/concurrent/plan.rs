//! The contests, and the least that each ratio is to be.

use std::time::Duration;

use crate::{
    contest::{Contest, SQLX, Who},
    files::Content,
    measure::{Load, Work},
};

const ALL: &[Who] = &[
    Who::Sessions,
    Who::ThreadedSessions,
    Who::Exclusive,
    Who::Pool,
    Who::OneWriter,
    Who::Rusqlite,
];
const HOT: &[Who] = &[Who::Sessions, Who::Exclusive];

/// 8 tasks insert a row per transaction, and wait inside.
fn waits(title: &'static str, micros: u64, each: u32) -> Contest {
    let load = Load {
        work: Work::Insert {
            wait: Duration::from_micros(micros),
        },
        tasks: 8,
        each,
        times: 1,
    };
    let content = Content::default();
    Contest::new(title, "tx/s", load, content, ALL)
}

/// 8 tasks count up the only row.
fn hot(title: &'static str, each: u32) -> Contest {
    let load = Load {
        work: Work::IncrementOne,
        tasks: 8,
        each,
        times: 1,
    };
    let content = Content {
        rows: 1,
        counts: true,
        ..Content::default()
    };
    Contest::new(title, "tx/s", load, content, HOT)
}

/// All contests; quick ones do less of each.
pub(in crate::concurrent) fn contests(quick: bool) -> Vec<Contest> {
    let pick = |full, short| if quick { short } else { full };
    vec![
        waits("w0, NORMAL: 8 tasks, an insert each time", 0, 250).over(
            SQLX,
            "w0_normal_vs_sqlx",
            4.0,
        ),
        waits(
            "w200, NORMAL: the same, and 200 us inside",
            200,
            pick(250, 60),
        )
        .over(SQLX, "w200_normal_vs_sqlx", 8.0),
        waits(
            "w2000, NORMAL: the same, and 2,000 us inside",
            2_000,
            pick(250, 20),
        )
        .over(SQLX, "w2000_normal_vs_sqlx", 7.5),
        waits(
            "w0, FULL: each commit waits for the disk",
            0,
            pick(250, 100),
        )
        .full()
        .over(SQLX, "w0_full_vs_sqlx", 4.0),
        waits("w200, FULL: 200 us inside", 200, pick(250, 50))
            .full()
            .over(SQLX, "w200_full_vs_sqlx", 6.0),
        waits("w2000, FULL: 2,000 us inside", 2_000, pick(250, 20))
            .full()
            .over(SQLX, "w2000_full_vs_sqlx", 7.0),
        hot("hot, NORMAL: 8 tasks count up one row", pick(1_000, 500)).over(
            &[Who::Exclusive],
            "hot_vs_write",
            0.7,
        ),
    ]
}
