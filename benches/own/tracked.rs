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

/// Changes ten entities of a context with `tracked` of them, and saves; `saves` times.
pub(crate) async fn run(files: &mut Files, tracked: u32, saves: usize) -> Result<Latencies> {
    let path = files.fresh(Content {
        rows: tracked,
        counts: true,
    })?;
    let library = Library::open(
        &path,
        Synchronous::Normal,
        Execution::Inline,
        Way::Optimistic,
    )
    .await?;
    let mut ctx = library.database().context();
    let orders = Order::query().load(&mut ctx).await?;
    // Spread over all, as changes are.
    let changed: Vec<_> = (0..CHANGED)
        .filter_map(|n| orders.get(n * orders.len() / CHANGED).copied())
        .collect();
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
