//! The New York flights of 2013: imports them, lets 16 tasks change them at once, and reports.

mod data_set;
mod database;
mod entities;
mod import;
mod report;
mod work;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anabranch::prelude::*;
use anyhow::{Context as _, Result};
use clap::Parser;

use crate::{data_set::DataSet, report::Report};

/// Imports the New York flights of 2013, lets 16 tasks change them at once, and reports.
#[derive(Debug, Parser)]
struct Options {
    /// The folder with the CSV files, plain or zipped [default: two weeks of February, beside the example]
    #[arg(
        long,
        value_name = "DIR",
        hide_default_value = true,
        default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data")
    )]
    data: PathBuf,

    /// The database to make; one of an earlier run is replaced
    #[arg(long, value_name = "FILE", default_value = "flights.db")]
    db: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", explain(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes, as far down as the library's own, which says all that SQLite has to say.
fn explain(error: &anyhow::Error) -> String {
    let mut words = Vec::new();
    for cause in error.chain() {
        words.push(cause.to_string());
        if cause.is::<Error>() {
            break;
        }
    }
    words.join(": ")
}

async fn run(options: Options) -> Result<()> {
    let data = DataSet::open(options.data)?;
    let db = database::create(&options.db).await?;
    let report = fill(&db, &data).await;
    // Also after an error: what was saved is moved into the file.
    let closed = db.close().await;
    let shown = options.db.display();
    let report = report.with_context(|| format!("{shown} is incomplete"))?;
    closed?;
    writeln!(io::stdout(), "{report}\n{shown} is ready")?;
    Ok(())
}

async fn fill(db: &Database, data: &DataSet) -> Result<Report> {
    let imported = import::import(db, data).await?;
    db.checkpoint().await?;
    let worked = work::work(db).await?;
    Report::gather(db, imported, worked).await
}
