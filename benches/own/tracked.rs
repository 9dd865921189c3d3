//! What a save costs beside many tracked entities that did not change.

use std::time::Instant;

use anabranch::prelude::*;
use workload::{Latencies, Result};

use crate::{
    contenders::{Library, Order, Way},
    files::{Content, Files},
};

/// How many entities change before each save.
const CHANGED: usize = 10;

/// How many rows there are, whether they are tracked or not: the pages that SQLite writes are the same.
const ROWS: u32 = 10_000;

/// Which rows are tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    Changed,
    All,
}

/// Changes the same ten entities of a context, and saves; `saves` times.
pub(crate) async fn run(files: &mut Files, tracking: Tracking, saves: usize) -> Result<Latencies> {
    let path = files.fresh(Content {
        rows: ROWS,
        counts: true,
        ..Content::default()
    })?;
    let library = Library::open(
        &path,
        Synchronous::Normal,
        Execution::Inline,
        Way::Optimistic,
    )
    .await?;
    let mut ctx = library.database().context();
    if tracking == Tracking::All {
        Order::query().load(&mut ctx).await?;
    }
    let mut changed = Vec::with_capacity(CHANGED);
    for n in 0..CHANGED {
        // Spread over all rows, as changes are.
        let id = i64::try_from(n)? * i64::from(ROWS) / i64::try_from(CHANGED)? + 1;
        let order = ctx.find::<Order>(id).await?;
        changed.push(order.ok_or("a row is missing")?);
    }
    let mut latencies = Latencies::with_capacity(saves);
    for _ in 0..saves {
        let began = Instant::now();
        for order in &changed {
            ctx[*order].quantity += 1;
        }
        let saved = ctx.save_changes().await?;
        latencies.push(began.elapsed());
        if saved.updated != CHANGED {
            return Err(format!("{saved:?} instead of {CHANGED} updates").into());
        }
    }
    library.database().close().await?;
    let sums = files.check(&path)?;
    if usize::try_from(sums.quantity)? != saves * CHANGED {
        return Err(format!("{sums:?} after {saves} saves of {CHANGED} updates").into());
    }
    Ok(latencies)
}
