//! The entity, and how a session saves one.

use anabranch::prelude::*;

/// An order; its key is given when it is inserted, its commit number when that is committed.
#[derive(Debug, Entity)]
#[entity(table = "orders")]
pub(crate) struct Order {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) item: String,
    #[entity(commit_seq)]
    pub(crate) commit_seq: CommitSeq,
}

impl Order {
    pub(crate) fn new(item: impl Into<String>) -> Self {
        Self {
            id: 0,
            item: item.into(),
            commit_seq: CommitSeq::default(),
        }
    }
}

/// Inserts an order in a session, and returns its key.
pub(crate) async fn insert(s: &mut Session, item: &str) -> anabranch::error::Result<i64> {
    let mut ctx = s.context();
    let order = ctx.add(Order::new(item));
    ctx.save_changes().await?;
    Ok(ctx[order].id)
}

/// How many orders all parts of the story commit together.
pub(crate) fn total() -> i64 {
    2 * i64::from(crate::timing::ALL) + 2 * crate::late::ORDERS + i64::from(crate::crowd::ALL)
}
