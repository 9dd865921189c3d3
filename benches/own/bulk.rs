//! `bulk`: imports of 100,000 rows of 6 columns and of 20,000 rows of 20, without and with two indexes; and what one
//! transaction an entity costs at FULL.

mod contenders;
mod rows;

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use rusqlite::Connection;
use tokio::runtime::{Handle, Runtime};
use workload::{Arguments, Floor, Heartbeat, Result, Summary, median};

use self::{
    contenders::Who,
    rows::{Narrow, Row, Wide},
};
use crate::{files::Files, measure::Run, table::table};

/// A quick run begins no round that would end later than this.
const QUICK: Duration = Duration::from_secs(24);
/// How many rows of 6 columns are imported, and five times as many as of 20 columns; a quick run takes half.
const ROWS: u32 = 100_000;
/// How many saves of one entity each at FULL are timed.
const SAVES: u32 = 500;

/// One import, by all.
#[derive(Debug)]
struct Import {
    title: &'static str,
    is_wide: bool,
    is_indexed: bool,
    /// The runs of each contender.
    runs: Vec<Vec<Run>>,
}

/// Runs the benchmark and prints its tables.
pub(crate) fn run(arguments: &Arguments, runtime: &Runtime, files: &mut Files) -> Result<Summary> {
    let mut imports = [
        Import::new("6 columns", false, false),
        Import::new("6 columns, two indexes", false, true),
        Import::new("20 columns", true, false),
        Import::new("20 columns, two indexes", true, true),
    ];
    let wanted = arguments
        .rounds
        .unwrap_or(if arguments.quick { 3 } else { 5 });
    let began = Instant::now();
    let rows = if arguments.quick { ROWS / 2 } else { ROWS };
    let mut rounds = 0;
    let mut each_full = Vec::new();
    while rounds < wanted {
        eprintln!("round {} of {wanted}", rounds + 1);
        for import in &mut imports {
            runtime.block_on(import.round(files, rounds, rows))?;
        }
        each_full.push(runtime.block_on(save_each_full(files))?);
        rounds += 1;
        let next = began.elapsed().mul_f64((rounds + 1) as f64 / rounds as f64);
        if arguments.quick && next > QUICK {
            break;
        }
    }
    for import in &imports {
        println!("{}", import.table());
    }
    let each_full = median(each_full);
    println!("one transaction an entity at FULL: {each_full:.0} rows/s\n");
    let [narrow, narrow_indexed, wide, wide_indexed] = &imports;
    let many = median(
        narrow
            .runs_of(Who::Optimized)
            .iter()
            .map(|run| run.per_second),
    );
    let ratios = vec![
        narrow.over("bulk6_vs_rusqlite", &RUSQLITE, Some(0.85)),
        wide.over("bulk20_vs_rusqlite", &RUSQLITE, Some(0.85)),
        narrow.over("bulk6_vs_sqlx", &SQLX, Some(1.5)),
        narrow_indexed.over("bulk6_indexed_vs_rusqlite", &RUSQLITE, None),
        wide_indexed.over("bulk20_indexed_vs_rusqlite", &RUSQLITE, None),
        wide.over("bulk20_vs_sqlx", &SQLX, None),
        narrow.over("bulk6_vs_contexts", &[Who::Context], None),
        (
            Floor {
                key: "bulk1000_vs_save_each_full",
                least: None,
            },
            many / each_full,
        ),
    ];
    Ok(Summary::new("bulk", rounds, ratios))
}

const RUSQLITE: [Who; 2] = [Who::Rusqlite, Who::RusqliteSeveral];
const SQLX: [Who; 2] = [Who::Sqlx, Who::SqlxSeveral];

impl Import {
    fn new(title: &'static str, is_wide: bool, is_indexed: bool) -> Self {
        Self {
            title,
            is_wide,
            is_indexed,
            runs: vec![Vec::new(); Who::ALL.len()],
        }
    }

    /// Each contender once, on a file of its own; another one begins each round.
    async fn round(&mut self, files: &mut Files, round: usize, rows: u32) -> Result<()> {
        for turn in 0..Who::ALL.len() {
            let index = (turn + round) % Who::ALL.len();
            let who = Who::ALL[index];
            let run = if self.is_wide {
                self.one::<Wide>(files, who, rows / 5).await
            } else {
                self.one::<Narrow>(files, who, rows).await
            };
            let run = run.map_err(|error| format!("{}, {}: {error}", self.title, who.name()))?;
            self.runs[index].push(run);
        }
        Ok(())
    }

    async fn one<R: Row>(&self, files: &mut Files, who: Who, count: u32) -> Result<Run> {
        let path = files.empty();
        define::<R>(&path, self.is_indexed).await?;
        let rows: Vec<R> = (0..count).map(R::nth).collect();
        let heartbeat = Heartbeat::start(&Handle::current());
        let took = who.import(&path, rows).await;
        let beats = heartbeat.stop().await?;
        check::<R>(&path, count)?;
        Ok(Run {
            per_second: f64::from(count) / took?.as_secs_f64(),
            beats,
            ..Run::default()
        })
    }

    fn runs_of(&self, who: Who) -> &[Run] {
        let index = Who::ALL.iter().position(|other| *other == who);
        index.map_or(&[], |index| &self.runs[index])
    }

    /// How much faster ours is than the best of these, as the median over the rounds.
    fn over(&self, key: &'static str, whom: &[Who], least: Option<f64>) -> (Floor, f64) {
        let ours = self.runs_of(Who::Optimized);
        let ratio = |than: &Who| {
            let pairs = ours.iter().zip(self.runs_of(*than));
            median(pairs.map(|(ours, theirs)| ours.per_second / theirs.per_second))
        };
        let ratio = whom.iter().map(ratio).reduce(f64::min);
        (Floor { key, least }, ratio.unwrap_or(f64::NAN))
    }

    fn table(&self) -> String {
        let rows: Vec<_> = (Who::ALL.iter())
            .map(|who| (who.name(), self.runs_of(*who)))
            .collect();
        table(self.title, "rows/s", &rows)
    }
}

/// Makes the table, as this library defines it.
async fn define<R: Row>(path: &PathBuf, is_indexed: bool) -> Result<()> {
    let db = Database::open(path).await?;
    db.create_tables::<R>().await?;
    db.close().await?;
    if is_indexed {
        let connection = Connection::open(path)?;
        for column in R::INDEXED {
            let table = R::TABLE.name;
            connection.execute_batch(&format!(
                "CREATE INDEX {table}_{column} ON {table} ({column})"
            ))?;
        }
        connection.close().map_err(|(_, error)| error)?;
    }
    Ok(())
}

/// All rows are there, and the file is sound; then it is removed.
fn check<R: Row>(path: &PathBuf, count: u32) -> Result<()> {
    let connection = Connection::open(path)?;
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let found: u32 = connection.query_row(
        &format!("SELECT count(*) FROM {}", R::TABLE.name),
        [],
        |row| row.get(0),
    )?;
    connection.close().map_err(|(_, error)| error)?;
    fs::remove_file(path)?;
    if (sound.as_str(), found) != ("ok", count) {
        return Err(format!("{found} rows of {count}; integrity_check says: {sound}").into());
    }
    Ok(())
}

/// Saves entities in a transaction each, with a sync each, one after the other.
async fn save_each_full(files: &mut Files) -> Result<f64> {
    let path = files.empty();
    define::<Narrow>(&path, false).await?;
    let db = Database::builder(&path)
        .synchronous(Synchronous::Full)
        .open()
        .await?;
    let began = Instant::now();
    for n in 0..SAVES {
        let mut ctx = db.context();
        ctx.add(Narrow::nth(n));
        ctx.save_changes().await?;
    }
    let rows_per_second = f64::from(SAVES) / began.elapsed().as_secs_f64();
    db.close().await?;
    check::<Narrow>(&path, SAVES)?;
    Ok(rows_per_second)
}
