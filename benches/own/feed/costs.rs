//! What it costs those who write: inserts, updates and deletions of single rows, a commit each.

use std::time::Instant;

use anabranch::prelude::*;
use workload::{Floor, Result, median, quantity};

use crate::{feed::kinds::Kind, files::Files};

/// How many rows are saved, changed and deleted in a run.
const ROWS: i64 = 2000;

/// What the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::feed) enum Cost {
    Plain,
    Numbered,
    Indexed,
    Told,
}

impl Cost {
    pub(in crate::feed) const ALL: [Self; 4] =
        [Self::Plain, Self::Numbered, Self::Indexed, Self::Told];

    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "no commit number",
            Self::Numbered => "commit_seq",
            Self::Indexed => "commit_seq, index",
            Self::Told => "the same, tombstones",
        }
    }
}

/// Inserts, updates and deletions a second.
pub(in crate::feed) type Speeds = [f64; 3];

/// One run of one kind.
pub(in crate::feed) async fn run<K: Kind<Key = i64>>(files: &mut Files) -> Result<Speeds> {
    let db = Database::open(files.empty()).await?;
    db.create_tables::<K>().await?;
    // So that statements are ready when the clock starts.
    pass::<K>(&db, 1_000_000, 50).await?;
    let speeds = pass::<K>(&db, 0, ROWS).await?;
    let left = Query::<K>::new().count(&db).await?;
    db.close().await?;
    if left != 0 {
        return Err(format!("{left} rows are left of those that were deleted").into());
    }
    Ok(speeds)
}

async fn pass<K: Kind<Key = i64>>(db: &Database, after: i64, rows: i64) -> Result<Speeds> {
    let per_second = |began: Instant| rows as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    for n in 1..=rows {
        let mut ctx = db.context();
        ctx.add(K::of(after + n));
        ctx.save_changes().await?;
    }
    let inserts = per_second(began);
    let began = Instant::now();
    for n in 1..=rows {
        let mut ctx = db.context();
        let row = ctx.find::<K>(after + n).await?.ok_or("a row is missing")?;
        ctx[row].change();
        ctx.save_changes().await?;
    }
    let updates = per_second(began);
    let began = Instant::now();
    for n in 1..=rows {
        let mut ctx = db.context();
        let row = ctx.find::<K>(after + n).await?.ok_or("a row is missing")?;
        ctx.remove(row);
        ctx.save_changes().await?;
    }
    Ok([inserts, updates, per_second(began)])
}

const WHAT: [&str; 3] = ["inserts/s", "updates/s", "deletions/s"];

/// A line for each kind: the medians over the rounds.
pub(in crate::feed) fn table(costs: &[Vec<Speeds>; 4]) -> String {
    let mut table = format!("one row a commit\n  {:<24}", "");
    for what in WHAT {
        table += &format!("{what:>14}");
    }
    for (cost, runs) in Cost::ALL.iter().zip(costs) {
        table += &format!("\n  {:<24}", cost.name());
        for at in 0..WHAT.len() {
            let speed = median(runs.iter().map(|speeds| speeds[at]));
            table += &format!("{:>14}", quantity(speed));
        }
    }
    table + "\n"
}

/// How much is left of the speed without numbers.
pub(in crate::feed) fn ratios(costs: &[Vec<Speeds>; 4]) -> Vec<(Floor, f64)> {
    let [plain, numbered, indexed, told] = costs;
    let of = |key, runs: &[Speeds], at: usize| {
        let pairs = runs.iter().zip(plain);
        let ratio = median(pairs.map(|(run, plain)| run[at] / plain[at]));
        (Floor { key, least: None }, ratio)
    };
    vec![
        of("insert_numbered_vs_plain", numbered, 0),
        of("insert_indexed_vs_plain", indexed, 0),
        of("update_indexed_vs_plain", indexed, 1),
        of("insert_told_vs_plain", told, 0),
        of("delete_told_vs_plain", told, 2),
    ]
}
