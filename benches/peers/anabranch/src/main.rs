//! This library, as an application uses it: entities, and a context for each piece of work.
//!
//! Variants: `anabranch` runs short statements on the task that asks, `anabranch-threaded` runs all of them on threads.

mod entities;

use anabranch::prelude::*;
use peerkit::{AsyncPeer, BUSY_TIMEOUT, Config, NewOrder, NewWide, POOL, Res, pause};

use crate::entities::{Order, Wide};

/// The page cache of each connection, in KiB: SQLite's default, which the other peers have.
const CACHE_KIB: u64 = 2000;

#[derive(Clone)]
struct Peer {
    db: Database,
    /// Whether everybody changes the same row.
    hot: bool,
    tokio_timer: bool,
}

impl Peer {
    /// Inserts the rows in one transaction.
    async fn import<E: Entity>(&self, rows: impl Iterator<Item = E> + Send) -> Res<()> {
        self.db.bulk_insert().atomic().run(rows).await?;
        Ok(())
    }

    /// Loads, changes and saves. No transaction is needed: the version tells whether somebody came between, and that
    /// is an error here, for nobody does.
    async fn increment(&self, id: i64) -> Res<()> {
        let mut ctx = self.db.context();
        let order = ctx.find::<Order>(id).await?.ok_or("no such order")?;
        ctx[order].quantity += 1;
        ctx.save_changes().await?;
        Ok(())
    }

    /// The same in an exclusive transaction, where nobody can come between: what the guide advises for a row that
    /// everybody writes.
    async fn increment_exclusively(&self, id: i64) -> Res<()> {
        let found = self
            .db
            .write(async |tx| {
                let mut ctx = tx.context();
                let Some(order) = ctx.find::<Order>(id).await? else {
                    return Ok(false);
                };
                ctx[order].quantity += 1;
                ctx.save_changes().await?;
                Ok(true)
            })
            .await?;
        if found {
            Ok(())
        } else {
            Err("no such order".into())
        }
    }
}

/// Opens the connections of all sessions beforehand, as those of the other peers' pools are.
async fn open_sessions(db: &Database) -> Res<()> {
    let mut sessions = Vec::new();
    for _ in 0..POOL {
        sessions.push(db.begin_concurrent(Isolation::Serializable).await?);
    }
    for session in sessions {
        session.rollback().await?;
    }
    Ok(())
}

impl AsyncPeer for Peer {
    type Row = Order;

    async fn open(config: &Config) -> Res<Self> {
        let db = Database::builder(&config.db)
            .synchronous(match config.sync {
                peerkit::Synchronous::Normal => Synchronous::Normal,
                peerkit::Synchronous::Full => Synchronous::Full,
            })
            .execution(match config.peer.as_str() {
                "anabranch-threaded" => Execution::Threaded,
                _ => Execution::Inline,
            })
            .busy_timeout(BUSY_TIMEOUT)
            .cache_size(Bytes::kib(CACHE_KIB))
            .readers(POOL)
            .sessions(POOL)
            .open()
            .await?;
        db.create_tables::<(Order, Wide)>().await?;
        if config.workload.starts_with("txwork") {
            open_sessions(&db).await?;
        }
        Ok(Self {
            db,
            hot: config.workload == "rmwhot",
            tokio_timer: config.tokio_timer,
        })
    }

    async fn save(&self, order: NewOrder) -> Res<i64> {
        let mut ctx = self.db.context();
        let order = ctx.add(Order::from(order));
        ctx.save_changes().await?;
        Ok(ctx[order].id)
    }

    async fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        self.import(rows.into_iter().map(Order::from)).await
    }

    async fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        self.import(rows.into_iter().map(Wide::from)).await
    }

    async fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64> {
        let tokio_timer = self.tokio_timer;
        let runs = self
            .db
            .concurrent(async move |s| {
                let mut ctx = s.context();
                ctx.add(Order::from(order.clone()));
                ctx.save_changes().await?;
                drop(ctx);
                pause(wait_us, tokio_timer).await;
                Ok(u64::from(s.attempt()))
            })
            .await?;
        Ok(runs - 1)
    }

    async fn get(&self, id: i64) -> Res<Order> {
        let order = Order::find(&self.db, id).await?;
        order.ok_or_else(|| "no such order".into())
    }

    async fn scan(&self) -> Res<Vec<Order>> {
        Ok(Order::query().all(&self.db).await?)
    }

    async fn rmw(&self, id: i64) -> Res<u64> {
        if self.hot {
            self.increment_exclusively(id).await?;
        } else {
            self.increment(id).await?;
        }
        Ok(0)
    }

    async fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let sql = match table {
            "orders" => "SELECT count(*), coalesce(sum(quantity), 0) FROM orders",
            _ => "SELECT count(*), coalesce(sum(i1), 0) FROM wide",
        };
        let counted = self
            .db
            .write(async |tx| Ok(sqlx::query_as(sql).fetch_one(&mut *tx).await?))
            .await?;
        Ok(counted)
    }

    async fn close(self) -> Res<()> {
        self.db.close().await?;
        Ok(())
    }
}

fn main() {
    peerkit::run_async::<Peer>(|_| None);
}
