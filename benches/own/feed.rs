//! `feed`: how soon a feed hears of a commit, how fast it catches up, and what the numbers of commits and the notes of deletions
//! cost those who write.

mod costs;
mod kinds;
mod wakes;

use std::time::{Duration, Instant};

use anabranch::prelude::*;
use rusqlite::Connection;
use tokio::runtime::Runtime;
use workload::{Arguments, Floor, Result, Summary, median, quantity};

use self::{
    costs::Cost,
    kinds::{Indexed, Kind as _, Numbered, Plain, Told},
};
use crate::files::Files;

/// A quick run begins no round that would end later than this.
const QUICK: Duration = Duration::from_secs(20);
/// How many rows a feed catches up with, of which each has a commit of its own.
const ROWS: i64 = 100_000;

/// Runs the benchmark and prints its tables.
pub(crate) fn run(arguments: &Arguments, runtime: &Runtime, files: &mut Files) -> Result<Summary> {
    let many = if arguments.quick { 1000 } else { 10_000 };
    println!("{}", wakes::inside(runtime, files, many)?);
    println!("{}", wakes::foreign(runtime, files, many / 10)?);
    let wanted = (arguments.rounds).unwrap_or(if arguments.quick { 5 } else { 9 });
    let began = Instant::now();
    let mut costs = Cost::ALL.map(|_| Vec::new());
    let mut catching_up = Vec::new();
    let mut rounds = 0;
    while rounds < wanted {
        eprintln!("round {} of {wanted}", rounds + 1);
        for turn in 0..Cost::ALL.len() {
            let index = (turn + rounds) % Cost::ALL.len();
            let cost = match Cost::ALL[index] {
                Cost::Plain => runtime.block_on(costs::run::<Plain>(files))?,
                Cost::Numbered => runtime.block_on(costs::run::<Numbered>(files))?,
                Cost::Indexed => runtime.block_on(costs::run::<Indexed>(files))?,
                Cost::Told => runtime.block_on(costs::run::<Told>(files))?,
            };
            costs[index].push(cost);
        }
        catching_up.push(runtime.block_on(catch_up(files))?);
        rounds += 1;
        let next = began.elapsed().mul_f64((rounds + 1) as f64 / rounds as f64);
        if arguments.quick && next > QUICK {
            break;
        }
    }
    println!("{}", costs::table(&costs));
    let speeds = |which: fn(&(f64, f64)) -> f64| median(catching_up.iter().map(which));
    println!(
        "a feed that catches up with {} rows: {} rows/s, acknowledged by the thousand; all of them in one query: {} rows/s\n",
        quantity(ROWS as f64),
        quantity(speeds(|(feed, _)| *feed)),
        quantity(speeds(|(_, query)| *query)),
    );
    let mut ratios = costs::ratios(&costs);
    let key = "catch_up_vs_query";
    let ratio = median(catching_up.iter().map(|(feed, query)| feed / query));
    ratios.push((Floor { key, least: None }, ratio));
    Ok(Summary::new("feed", rounds, ratios))
}

/// Rows a second of a feed, and of a query that reads them all.
async fn catch_up(files: &mut Files) -> Result<(f64, f64)> {
    let path = files.empty();
    let db = Database::open(&path).await?;
    db.create_tables::<Told>().await?;
    db.bulk_insert_optimized((1..=ROWS).map(Told::of)).await?;
    // A commit each, which would take long to make.
    let plain = Connection::open(&path)?;
    plain.execute_batch(&format!(
        "BEGIN; UPDATE told SET seq = id; UPDATE anabranch_sequence SET last = {ROWS}; COMMIT"
    ))?;
    let began = Instant::now();
    let found = Told::query().all(&db).await?.len();
    let query = began.elapsed();
    let began = Instant::now();
    let mut feed = db.feed::<Told>("catching up");
    let mut told = 0;
    while let Some(batch) = feed.try_next_batch().await? {
        told += batch.len();
        batch.ack().await?;
    }
    let feeding = began.elapsed();
    db.close().await?;
    if [found, told].map(i64::try_from) != [Ok(ROWS), Ok(ROWS)] {
        return Err(format!("{found} rows were found, and {told} told of").into());
    }
    let per_second = |time: Duration| ROWS as f64 / time.as_secs_f64();
    Ok((per_second(feeding), per_second(query)))
}
