//! sqlx: a pool, or a pool of readers beside one connection that writes.

mod answers;

use std::{path::Path, time::Duration};

use anabranch::prelude::Synchronous;
use chrono::NaiveDateTime;
use sqlx::{
    FromRow, SqliteExecutor, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use workload::{NewOrder, Result, pause};

use crate::{
    contender::{Contender, Seen},
    contenders::{
        ALL, BUSY_TIMEOUT, BY_KEY, CACHE_KIB, INSERT, JOURNAL_SIZE_LIMIT, READERS, UPDATE, lost,
    },
    question::Question,
};

#[derive(Debug, FromRow)]
#[allow(dead_code, reason = "the whole row is read, as an application does")]
struct Order {
    id: i64,
    writer: i64,
    item: String,
    quantity: i64,
    price: f64,
    placed_at: NaiveDateTime,
    version: i64,
}

/// A database of sqlx.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    readers: SqlitePool,
    /// The same pool, or one of a single connection.
    writers: SqlitePool,
}

impl Pools {
    /// One pool for all: writers wait for each other in SQLite's busy handler.
    pub(crate) async fn open(path: &Path, synchronous: Synchronous) -> Result<Self> {
        let readers = pool(path, synchronous, READERS).await?;
        Ok(Self {
            writers: readers.clone(),
            readers,
        })
    }

    /// Writers wait for their turn on the one connection that writes.
    pub(crate) async fn open_with_one_writer(
        path: &Path,
        synchronous: Synchronous,
    ) -> Result<Self> {
        Ok(Self {
            writers: pool(path, synchronous, 1).await?,
            readers: pool(path, synchronous, READERS).await?,
        })
    }
}

async fn pool(path: &Path, synchronous: Synchronous, connections: u32) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match synchronous {
            Synchronous::Full => SqliteSynchronous::Full,
            Synchronous::Normal => SqliteSynchronous::Normal,
            Synchronous::Off => SqliteSynchronous::Off,
        })
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("cache_size", format!("-{CACHE_KIB}"))
        .pragma("journal_size_limit", JOURNAL_SIZE_LIMIT.to_string());
    // All are opened beforehand, and none is pinged before its use: an embedded database does not hang up.
    let pool = SqlitePoolOptions::new()
        .min_connections(connections)
        .max_connections(connections)
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    Ok(pool)
}

async fn insert(executor: impl SqliteExecutor<'_>, order: NewOrder) -> Result<()> {
    sqlx::query(INSERT)
        .bind(order.writer)
        .bind(order.item)
        .bind(order.quantity)
        .bind(order.price)
        .bind(order.placed_at)
        .execute(executor)
        .await?;
    Ok(())
}

impl Contender for Pools {
    async fn save(&self, order: NewOrder) -> Result<()> {
        insert(&self.writers, order).await
    }

    async fn get(&self, id: i64) -> Result<Seen> {
        let order: Option<Order> = sqlx::query_as(BY_KEY)
            .bind(id)
            .fetch_optional(&self.readers)
            .await?;
        Ok(Seen::of(order.map(|order| (order.id, order.quantity))))
    }

    async fn scan(&self) -> Result<Seen> {
        let orders: Vec<Order> = sqlx::query_as(ALL).fetch_all(&self.readers).await?;
        Ok(Seen::of(
            orders.iter().map(|order| (order.id, order.quantity)),
        ))
    }

    async fn answer(&self, question: Question) -> Result<Seen> {
        answers::answer(&self.readers, question).await
    }

    async fn increment(&self, id: i64) -> Result<()> {
        let mut tx = self.writers.begin_with("BEGIN IMMEDIATE").await?;
        let order: Order = sqlx::query_as(BY_KEY).bind(id).fetch_one(&mut *tx).await?;
        let updated = sqlx::query(UPDATE)
            .bind(order.quantity + 1)
            .bind(order.id)
            .bind(order.version)
            .execute(&mut *tx)
            .await?;
        if updated.rows_affected() != 1 {
            return Err(lost(id));
        }
        tx.commit().await?;
        Ok(())
    }

    async fn insert(&self, order: NewOrder, wait: Duration) -> Result<()> {
        let mut tx = self.writers.begin_with("BEGIN IMMEDIATE").await?;
        insert(&mut *tx, order).await?;
        pause(wait).await;
        tx.commit().await?;
        Ok(())
    }

    async fn close(self) -> Result<()> {
        self.writers.close().await;
        self.readers.close().await;
        Ok(())
    }
}
