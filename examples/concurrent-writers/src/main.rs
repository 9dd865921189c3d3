//! Transactions that wait, side by side; and how to ask for what was committed since.

mod crowd;
mod feed;
mod late;
mod order;
mod timing;

use std::{
    fmt,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anabranch::prelude::*;
use anyhow::{Context as _, Result, ensure};
use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::{feed::Feed, order::Order};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("orders.db");
    let db = Database::open(&path).await?;
    db.create_tables::<Order>().await?;
    let told = tell(&db).await;
    db.close().await?;
    told?;
    check(&path).await
}

/// The story, as it happens.
async fn tell(db: &Database) -> Result<()> {
    say(timing::run(db).await?)?;
    say(late::run(db, Feed::by_key(db).await?).await?)?;
    say(late::run(db, Feed::by_commit(db).await?).await?)?;
    say(crowd::run(db).await?)
}

/// Asks SQLite itself, with nothing of ours between.
async fn check(path: &Path) -> Result<()> {
    let mut file = SqliteConnectOptions::new().filename(path).connect().await?;
    let found: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut file)
        .await?;
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut file)
        .await?;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM orders")
        .fetch_one(&mut file)
        .await?;
    file.close().await?;
    ensure!(found == "ok", "integrity_check says: {found}");
    ensure!(
        rows == order::total(),
        "{rows} orders in the file, of {} that were committed",
        order::total()
    );
    say(format_args!(
        "5. The file\n\n  \
         It is an ordinary SQLite file (journal_mode is {mode}). A connection of plain SQLite finds all {rows} orders,\n  \
         and PRAGMA integrity_check says: {found}"
    ))
    .context("printing")
}

fn say(what: impl fmt::Display) -> Result<()> {
    writeln!(io::stdout(), "{what}")?;
    Ok(())
}
