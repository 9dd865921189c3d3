//! This library, used as an application uses it: entities, a context for each piece of work.

mod answers;

use std::{path::Path, time::Duration};

use anabranch::{observe::Statistics, prelude::*};
use chrono::NaiveDateTime;
use workload::{NewOrder, Result, pause};

use crate::{
    contender::{Contender, Seen},
    contenders::{BUSY_TIMEOUT, CACHE_KIB, JOURNAL_SIZE_LIMIT, READERS, missing},
    question::Question,
};

/// The entity of all benchmarks.
#[derive(Debug, Clone, Entity)]
#[entity(table = "orders")]
pub(crate) struct Order {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) writer: i64,
    pub(crate) item: String,
    pub(crate) quantity: i64,
    pub(crate) price: f64,
    pub(crate) placed_at: NaiveDateTime,
    #[entity(version)]
    pub(crate) version: i64,
}

impl From<NewOrder> for Order {
    fn from(order: NewOrder) -> Self {
        Self {
            id: 0,
            writer: order.writer,
            item: order.item,
            quantity: order.quantity,
            price: order.price,
            placed_at: order.placed_at,
            version: 0,
        }
    }
}

/// How an order is incremented, or inserted in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Load, change, save; the version tells whether somebody else was faster.
    Optimistic,
    /// The same in `db.write`, where nobody can be: what the guide advises for rows that everybody writes.
    Exclusive,
    /// In `db.concurrent`, beside others.
    Concurrent,
}

/// A database of this library.
#[derive(Debug, Clone)]
pub(crate) struct Library {
    db: Database,
    way: Way,
}

impl Library {
    pub(crate) async fn open(
        path: &Path,
        synchronous: Synchronous,
        execution: Execution,
        way: Way,
    ) -> Result<Self> {
        let db = Database::builder(path)
            .synchronous(synchronous)
            .execution(execution)
            .busy_timeout(BUSY_TIMEOUT)
            .cache_size(Bytes::kib(CACHE_KIB))
            .journal_size_limit(Bytes(JOURNAL_SIZE_LIMIT))
            .readers(READERS.try_into()?)
            .open()
            .await?;
        Ok(Self { db, way })
    }

    pub(crate) const fn database(&self) -> &Database {
        &self.db
    }

    async fn increment_optimistically(&self, id: i64) -> Result<()> {
        loop {
            let mut ctx = self.db.context();
            let order = ctx.find::<Order>(id).await?.ok_or_else(|| missing(id))?;
            ctx[order].quantity += 1;
            match ctx.save_changes().await {
                Err(error) if error.is_conflict() => {}
                saved => return Ok(saved.map(drop)?),
            }
        }
    }

    async fn increment_concurrently(&self, id: i64) -> anabranch::error::Result<bool> {
        self.db
            .concurrent(async move |s| {
                let mut ctx = s.context();
                let Some(order) = ctx.find::<Order>(id).await? else {
                    return Ok(false);
                };
                ctx[order].quantity += 1;
                ctx.save_changes().await?;
                Ok(true)
            })
            .await
    }

    async fn increment_exclusively(&self, id: i64) -> anabranch::error::Result<bool> {
        self.db
            .write(async move |tx| {
                let mut ctx = tx.context();
                let Some(order) = ctx.find::<Order>(id).await? else {
                    return Ok(false);
                };
                ctx[order].quantity += 1;
                ctx.save_changes().await?;
                Ok(true)
            })
            .await
    }
}

impl Contender for Library {
    async fn save(&self, order: NewOrder) -> Result<()> {
        let mut ctx = self.db.context();
        ctx.add(Order::from(order));
        ctx.save_changes().await?;
        Ok(())
    }

    async fn get(&self, id: i64) -> Result<Seen> {
        let order = Order::find(&self.db, id).await?;
        Ok(Seen::of(order.map(|order| (order.id, order.quantity))))
    }

    async fn scan(&self) -> Result<Seen> {
        let orders = Order::query().all(&self.db).await?;
        Ok(Seen::of(
            orders.iter().map(|order| (order.id, order.quantity)),
        ))
    }

    async fn answer(&self, question: Question) -> Result<Seen> {
        Ok(answers::answer(&self.db, question).await?)
    }

    async fn increment(&self, id: i64) -> Result<()> {
        let found = match self.way {
            Way::Optimistic => return self.increment_optimistically(id).await,
            Way::Exclusive => self.increment_exclusively(id).await?,
            Way::Concurrent => self.increment_concurrently(id).await?,
        };
        if found { Ok(()) } else { Err(missing(id)) }
    }

    async fn insert(&self, order: NewOrder, wait: Duration) -> Result<()> {
        if self.way == Way::Concurrent {
            let insert = async move |s: &mut Session| {
                let mut ctx = s.context();
                ctx.add(Order::from(order.clone()));
                ctx.save_changes().await?;
                pause(wait).await;
                Ok(())
            };
            return Ok(self.db.concurrent(insert).await?);
        }
        let insert = async move |tx: &mut Transaction| {
            let mut ctx = tx.context();
            ctx.add(Order::from(order));
            ctx.save_changes().await?;
            pause(wait).await;
            Ok(())
        };
        Ok(self.db.write(insert).await?)
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.db.statistics())
    }

    async fn close(self) -> Result<()> {
        self.db.close().await?;
        Ok(())
    }
}
