//! The contests, and the least that each ratio is to be.

use crate::{
    contest::{Contest, RUSQLITE, SQLX, Who},
    files::Content,
    measure::{Load, Work},
    question::Question,
};

/// How many orders are read from.
const ROWS: u32 = 100_000;

const ALL: &[Who] = &[
    Who::Inline,
    Who::Threaded,
    Who::Pool,
    Who::OneWriter,
    Who::Rusqlite,
];

fn contest(title: &'static str, unit: &'static str, work: Work, each: u32) -> Contest {
    let content = match work {
        Work::Ask(_) => Content {
            shop: true,
            ..Content::default()
        },
        _ => Content {
            rows: ROWS,
            ..Content::default()
        },
    };
    let load = Load {
        work,
        tasks: 1,
        each,
        times: 1,
    };
    Contest::new(title, unit, load, content, ALL)
}

/// All contests; quick ones do less of each.
pub(in crate::read) fn contests(quick: bool) -> Vec<Contest> {
    let pick = |full, short| if quick { short } else { full };
    let mut contests = vec![
        contest(
            "get: one task, rows by key",
            "reads/s",
            Work::Get { of: ROWS },
            pick(20_000, 4_000),
        )
        .over(RUSQLITE, "get_vs_rusqlite", 0.6),
        contest(
            "scan: 100,000 rows into structs",
            "rows/s",
            Work::Scan { of: ROWS },
            pick(5, 1),
        )
        .over(RUSQLITE, "scan_vs_rusqlite", 0.8),
    ];
    contests.extend(relations(quick));
    contests.extend(parts(quick));
    contests
}

fn ask(title: &'static str, unit: &'static str, question: Question, each: u32) -> Contest {
    contest(title, unit, Work::Ask(question), each)
}

/// What relations lead to.
fn relations(quick: bool) -> [Contest; 3] {
    let pick = |full, short| if quick { short } else { full };
    [
        ask(
            "with children: 1,000 parents with 10 children each",
            "children/s",
            Question::Children,
            pick(30, 6),
        )
        .over(SQLX, "with_children_vs_sqlx", 2.0)
        .beside(RUSQLITE, "with_children_vs_rusqlite"),
        ask(
            "tracked: the same into a context; the others read them",
            "children/s",
            Question::Tracked,
            pick(30, 6),
        )
        .beside(SQLX, "tracked_vs_sqlx")
        .beside(RUSQLITE, "tracked_vs_rusqlite"),
        ask(
            "join: 20,000 rows, each with the one that it refers to",
            "rows/s",
            Question::Joined,
            pick(10, 2),
        )
        .beside(RUSQLITE, "join_vs_rusqlite"),
    ]
}

/// Parts of a large table.
fn parts(quick: bool) -> [Contest; 3] {
    let pick = |full, short| if quick { short } else { full };
    [
        ask(
            "projection: 3 of 10 columns of 100,000 rows",
            "rows/s",
            Question::Columns,
            pick(5, 1),
        )
        .beside(RUSQLITE, "projection_vs_rusqlite"),
        ask(
            "group by: a count and a sum of 100,000 rows in 50 groups",
            "queries/s",
            Question::Groups,
            pick(10, 2),
        )
        .beside(RUSQLITE, "group_vs_rusqlite"),
        ask(
            "pages: 20 of 50 rows by a keyset, in the middle of 100,000",
            "pages/s",
            Question::Pages,
            pick(50, 10),
        )
        .beside(RUSQLITE, "page_vs_rusqlite"),
    ]
}
