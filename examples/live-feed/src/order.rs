//! What is ordered, and what is mailed about it.

use anabranch::prelude::*;

/// What a customer wants.
#[derive(Debug, Entity)]
#[entity(table = "orders")]
pub(crate) struct Order {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) customer: i64,
    #[entity(commit_seq, index)]
    pub(crate) seq: CommitSeq,
}

/// A mail that was written. A second one about the same order would be refused.
#[derive(Debug, Entity)]
pub(crate) struct Mail {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(unique)]
    pub(crate) order_id: i64,
    pub(crate) text: String,
    #[entity(commit_seq, index)]
    pub(crate) seq: CommitSeq,
}

/// A customer's next order.
pub(crate) async fn take(db: &Database, customer: i64) -> anabranch::error::Result<()> {
    let mut ctx = db.context();
    ctx.add(Order {
        id: 0,
        customer,
        seq: CommitSeq(0),
    });
    ctx.save_changes().await.map(drop)
}
