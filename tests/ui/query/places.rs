//! Where a query runs: habits of other libraries.

use anabranch::prelude::*;

#[derive(Debug, Entity)]
struct Item {
    #[entity(id)]
    id: i64,
}

async fn in_a_context(ctx: &mut Context<'static>) {
    let _ = Item::query().all(ctx).await;
}

async fn in_a_transaction(mut tx: Box<Transaction>) {
    let _ = Item::query().all(&mut tx).await;
}

fn main() {
    let _ = (in_a_context, in_a_transaction);
}
