//! The mailer: a process of its own, which may be killed at any moment.

use std::{path::Path, time::Duration};

use anabranch::{feed::Batch, prelude::*};
use anyhow::Result;

use crate::order::{Mail, Order};

/// How long a letter takes to write.
const WRITING: Duration = Duration::from_millis(1);

/// Mails about each order, until it is killed.
pub(crate) async fn run(path: &Path) -> Result<()> {
    let db = Database::open(path).await?;
    // Orders come from another process: nobody here hears of its commits.
    let mut feed = db
        .feed::<Order>("mailer")
        .batch_rows(10)
        .look_every(Duration::from_millis(5));
    loop {
        let batch = feed.next_batch().await?;
        let mut letters = Vec::new();
        for order in batch.events().iter().filter_map(|event| event.row()) {
            letters.push(letter(order).await);
        }
        send(&db, &batch, letters).await?;
    }
}

async fn letter(order: &Order) -> Mail {
    tokio::time::sleep(WRITING).await;
    Mail {
        id: 0,
        order_id: order.id,
        text: format!(
            "Dear customer {}, your order is on its way.",
            order.customer
        ),
        seq: CommitSeq(0),
    }
}

/// The letters and the acknowledgement are one transaction: all of it has happened, or nothing.
async fn send(db: &Database, batch: &Batch<Order>, letters: Vec<Mail>) -> Result<()> {
    db.write(async |tx| {
        let mut ctx = tx.context();
        for letter in letters {
            ctx.add(letter);
        }
        ctx.save_changes().await?;
        batch.ack_in(&mut *tx).await
    })
    .await?;
    Ok(())
}
