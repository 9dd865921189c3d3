//! Feeds: each time they are asked, what is new since the last time.

use anabranch::prelude::*;
use anyhow::Result;

use crate::order::Order;

/// What a feed remembers of the last order that it saw.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Feed {
    /// Its key: `WHERE id > last`.
    ByKey(i64),
    /// Its commit number: `WHERE commit_seq > last`.
    ByCommit(CommitSeq),
}

impl Feed {
    /// A feed of what comes from now on, by key.
    pub(crate) async fn by_key(db: &Database) -> Result<Self> {
        let mut feed = Self::ByKey(0);
        feed.poll(db).await?;
        Ok(feed)
    }

    /// The same by commit number.
    pub(crate) async fn by_commit(db: &Database) -> Result<Self> {
        let mut feed = Self::ByCommit(CommitSeq::default());
        feed.poll(db).await?;
        Ok(feed)
    }

    /// The keys of what is new.
    pub(crate) async fn poll(&mut self, db: &Database) -> Result<Vec<i64>> {
        let orders = match *self {
            Self::ByKey(last) => {
                Order::query()
                    .filter(Order::ID.gt(last))
                    .order_by(Order::ID.asc())
                    .all(db)
                    .await?
            }
            Self::ByCommit(last) => {
                Order::query()
                    .filter(Order::COMMIT_SEQ.gt(last))
                    .order_by(Order::COMMIT_SEQ.asc())
                    .all(db)
                    .await?
            }
        };
        if let Some(order) = orders.last() {
            match self {
                Self::ByKey(last) => *last = order.id,
                Self::ByCommit(last) => *last = order.commit_seq,
            }
        }
        Ok(orders.into_iter().map(|order| order.id).collect())
    }
}
