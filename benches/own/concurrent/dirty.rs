//! What a session needs that changes 100,000 rows.

use std::{fs, path::Path, time::Instant};

use anabranch::{engine::SessionGuard, prelude::*};
use workload::{NewOrder, Result};

use crate::{
    contenders::{Library, Order, Way},
    files::{Content, Files, Sums},
};

const ROWS: u32 = 100_000;
/// How many entities a context holds.
const EACH: u32 = 1_000;

/// How the rows become dirty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// One statement changes them all.
    Update,
    /// Contexts insert them.
    Insert,
}

/// Measures both ways, and says so.
pub(in crate::concurrent) async fn run(files: &mut Files) -> Result<String> {
    let updated = measure(files, How::Update).await?;
    let inserted = measure(files, How::Insert).await?;
    Ok(format!(
        "a session with 100,000 dirty rows, until its commit:\n  \
         changed by one UPDATE:           {updated}\n  \
         inserted by contexts of 1,000:   {inserted}\n"
    ))
}

async fn measure(files: &mut Files, how: How) -> Result<String> {
    let rows = if how == How::Update { ROWS } else { 0 };
    let path = files.fresh(Content {
        rows,
        counts: true,
        ..Content::default()
    })?;
    let library = Library::open(
        &path,
        Synchronous::Normal,
        Execution::Inline,
        Way::Concurrent,
    )
    .await?;
    let db = library.database();
    // Its connection is there already, as it is in an application that uses sessions.
    db.begin_concurrent(Isolation::Serializable)
        .await?
        .rollback()
        .await?;
    let before = resident();
    let mut session = db.begin_concurrent(Isolation::Serializable).await?;
    let began = Instant::now();
    match how {
        How::Update => update(&mut session).await?,
        How::Insert => insert(&mut session).await?,
    }
    let worked = began.elapsed();
    let after = resident();
    let began = Instant::now();
    session.commit().await?;
    let committed = began.elapsed();
    db.close().await?;
    check(files, &path, how)?;
    let memory = match (before, after) {
        (Some(before), Some(after)) => {
            format!(
                "{:.0} MiB more",
                after.saturating_sub(before) as f64 / 1024.0
            )
        }
        _ => "memory not known on this system".to_owned(),
    };
    let (worked, committed) = (worked.as_millis(), committed.as_millis());
    Ok(format!(
        "{memory}; {worked} ms of work, {committed} ms to commit"
    ))
}

async fn update(session: &mut SessionGuard) -> Result<()> {
    sqlx::query("UPDATE orders SET quantity = quantity + 1")
        .execute(&mut **session)
        .await?;
    Ok(())
}

async fn insert(session: &mut SessionGuard) -> Result<()> {
    for first in (0..ROWS).step_by(EACH as usize) {
        let mut ctx = session.context();
        for n in first..first + EACH {
            ctx.add(Order::from(NewOrder::nth(1, n)));
        }
        ctx.save_changes().await?;
    }
    Ok(())
}

fn check(files: &Files, path: &Path, how: How) -> Result<()> {
    let Sums { rows, quantity, .. } = files.check(path)?;
    let rows_are_right = rows == i64::from(ROWS);
    if rows_are_right && (how == How::Insert || quantity == rows) {
        return Ok(());
    }
    Err(format!("{ROWS} dirty rows, {how:?}: found {rows}, with a quantity of {quantity}").into())
}

/// How much of this process is in memory, in KiB, where the system tells.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
