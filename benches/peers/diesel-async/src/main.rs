//! diesel-async 0.9 with SQLite through `SyncConnectionWrapper` (each query
//! runs on tokio's blocking pool), and a deadpool of 8 connections.

#[path = "../../diesel/src/schema.rs"]
mod schema;

use diesel::prelude::{ExpressionMethods, QueryDsl, SelectableHelper, SqliteConnection};
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};
use peerkit::{AsyncPeer, BUSY_TIMEOUT, Config, NewOrder, NewWide, POOL, Res, pause};

use crate::schema::{Counted, InsertOrder, InsertWide, Order, orders, wide};

type Conn = SyncConnectionWrapper<SqliteConnection>;

#[derive(Clone)]
struct Peer {
    pool: Pool<Conn>,
    batch: Option<usize>,
    tokio_timer: bool,
}

impl AsyncPeer for Peer {
    type Row = Order;

    async fn open(config: &Config) -> Res<Self> {
        let pragmas = format!(
            "PRAGMA busy_timeout = {}; PRAGMA journal_mode = WAL; PRAGMA synchronous = {};",
            BUSY_TIMEOUT.as_millis(),
            config.sync.as_sql()
        );
        let mut manager = ManagerConfig::<Conn>::default();
        // An embedded database cannot lose a connection, so none is tested before its use.
        manager.recycling_method = RecyclingMethod::Fast;
        manager.custom_setup = Box::new(move |url| {
            let (url, pragmas) = (url.to_owned(), pragmas.clone());
            Box::pin(async move {
                let mut conn = Conn::establish(&url).await?;
                conn.batch_execute(&pragmas)
                    .await
                    .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
                Ok(conn)
            })
        });
        let pool = Pool::builder(AsyncDieselConnectionManager::new_with_config(
            config.db_str(),
            manager,
        ))
        .max_size(POOL)
        .build()?;
        let mut all = Vec::new();
        for _ in 0..POOL {
            all.push(pool.get().await?);
        }
        for ddl in [peerkit::ORDERS_DDL, peerkit::WIDE_DDL] {
            all[0]
                .batch_execute(&ddl.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
                .await?;
        }
        drop(all);
        Ok(Self {
            pool,
            batch: config.batch,
            tokio_timer: config.tokio_timer,
        })
    }

    async fn save(&self, order: NewOrder) -> Res<i64> {
        let mut conn = self.pool.get().await?;
        Ok(diesel::insert_into(orders::table)
            .values(InsertOrder::from(&order))
            .returning(orders::id)
            .get_result(&mut conn)
            .await?)
    }

    // diesel-async's own `execute` does not accept a batch for SQLite ("no valid SQL
    // fragment"), so the bulk paths run diesel's on the inner connection, in one blocking task.
    async fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        let mut conn = self.pool.get().await?;
        let batch = self.batch.unwrap_or(BATCH);
        conn.spawn_blocking(move |conn| {
            conn.immediate_transaction(|conn| {
                for chunk in rows.chunks(batch) {
                    let chunk: Vec<_> = chunk.iter().map(InsertOrder::from).collect();
                    diesel::RunQueryDsl::execute(
                        diesel::insert_into(orders::table).values(&chunk),
                        conn,
                    )?;
                }
                Ok(())
            })
        })
        .await?;
        Ok(())
    }

    async fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        let mut conn = self.pool.get().await?;
        let batch = self.batch.unwrap_or(BATCH_WIDE);
        conn.spawn_blocking(move |conn| {
            conn.immediate_transaction(|conn| {
                for chunk in rows.chunks(batch) {
                    let chunk: Vec<_> = chunk.iter().map(InsertWide::from).collect();
                    diesel::RunQueryDsl::execute(
                        diesel::insert_into(wide::table).values(&chunk),
                        conn,
                    )?;
                }
                Ok(())
            })
        })
        .await?;
        Ok(())
    }

    async fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64> {
        let mut conn = self.pool.get().await?;
        conn.immediate_transaction(async |conn| {
            let _id: i64 = diesel::insert_into(orders::table)
                .values(InsertOrder::from(&order))
                .returning(orders::id)
                .get_result(conn)
                .await?;
            pause(wait_us, self.tokio_timer).await;
            diesel::QueryResult::Ok(())
        })
        .await?;
        Ok(0)
    }

    async fn get(&self, id: i64) -> Res<Order> {
        let mut conn = self.pool.get().await?;
        Ok(orders::table
            .find(id)
            .select(Order::as_select())
            .first(&mut conn)
            .await?)
    }

    async fn scan(&self) -> Res<Vec<Order>> {
        let mut conn = self.pool.get().await?;
        Ok(orders::table
            .select(Order::as_select())
            .load(&mut conn)
            .await?)
    }

    async fn rmw(&self, id: i64) -> Res<u64> {
        let mut conn = self.pool.get().await?;
        conn.immediate_transaction(async |conn| {
            let order: Order = orders::table
                .find(id)
                .select(Order::as_select())
                .first(conn)
                .await?;
            diesel::update(orders::table.find(order.id))
                .set(orders::quantity.eq(order.quantity + 1))
                .execute(conn)
                .await?;
            diesel::QueryResult::Ok(())
        })
        .await?;
        Ok(0)
    }

    async fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let mut conn = self.pool.get().await?;
        let column = if table == "orders" { "quantity" } else { "i1" };
        let counted: Counted = diesel::sql_query(format!(
            "SELECT count(*) AS found, coalesce(sum({column}), 0) AS total FROM {table}"
        ))
        .get_result(&mut conn)
        .await?;
        Ok((counted.found, counted.total))
    }

    async fn close(self) -> Res<()> {
        self.pool.close();
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 100;
const BATCH_WIDE: usize = 100;

fn main() {
    peerkit::run_async::<Peer>(|_| None);
}
