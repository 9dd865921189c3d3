//! sqlx 0.9 with its plain pool: the baseline of the comparison (1.0).

use std::str::FromStr;

use chrono::NaiveDateTime;
use peerkit::{
    AsyncPeer, BUSY_TIMEOUT, Config, Entity, INSERT_ORDER, NewOrder, NewWide, POOL, Res, pause,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

#[derive(sqlx::FromRow)]
#[allow(dead_code)]
struct Order {
    id: i64,
    writer: i64,
    item: String,
    quantity: i64,
    price: f64,
    placed_at: NaiveDateTime,
}

impl Entity for Order {
    fn key(&self) -> i64 {
        self.id
    }
    fn quantity(&self) -> i64 {
        self.quantity
    }
}

#[derive(Clone)]
struct Peer {
    pool: SqlitePool,
    batch: Option<usize>,
    tokio_timer: bool,
}

const GET: &str = "SELECT id, writer, item, quantity, price, placed_at FROM orders WHERE id = ?1";

fn insert(o: NewOrder) -> sqlx::query::Query<'static, Sqlite, sqlx::sqlite::SqliteArguments> {
    sqlx::query(INSERT_ORDER)
        .bind(o.writer)
        .bind(o.item)
        .bind(o.quantity)
        .bind(o.price)
        .bind(o.placed_at)
}

impl AsyncPeer for Peer {
    type Row = Order;

    async fn open(config: &Config) -> Res<Self> {
        let options = SqliteConnectOptions::from_str(&format!("sqlite://{}", config.db_str()))?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::from_str(config.sync.as_sql())?)
            .busy_timeout(BUSY_TIMEOUT);
        // An embedded database cannot lose a connection, so none is pinged before its use.
        let pool = SqlitePoolOptions::new()
            .max_connections(POOL as u32)
            .min_connections(POOL as u32)
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
        let exists: Option<i64> =
            sqlx::query_scalar("SELECT 1 FROM sqlite_schema WHERE name = 'orders'")
                .fetch_optional(&pool)
                .await?;
        if exists.is_none() {
            sqlx::query(peerkit::ORDERS_DDL).execute(&pool).await?;
            sqlx::query(peerkit::WIDE_DDL).execute(&pool).await?;
        }
        Ok(Self {
            pool,
            batch: config.batch,
            tokio_timer: config.tokio_timer,
        })
    }

    async fn save(&self, order: NewOrder) -> Res<i64> {
        Ok(insert(order).execute(&self.pool).await?.last_insert_rowid())
    }

    async fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        for chunk in rows.chunks(self.batch.unwrap_or(BATCH)) {
            let mut query = QueryBuilder::<Sqlite>::new(
                "INSERT INTO orders (writer, item, quantity, price, placed_at) ",
            );
            query.push_values(chunk, |mut row, o| {
                row.push_bind(o.writer)
                    .push_bind(o.item.as_str())
                    .push_bind(o.quantity)
                    .push_bind(o.price)
                    .push_bind(o.placed_at);
            });
            query.build().execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        for chunk in rows.chunks(self.batch.unwrap_or(BATCH_WIDE)) {
            let mut query = QueryBuilder::<Sqlite>::new(format!(
                "INSERT INTO wide ({}) ",
                peerkit::WIDE_COLUMNS
            ));
            query.push_values(chunk, |mut row, w| {
                for i in w.i {
                    row.push_bind(i);
                }
                for r in w.r {
                    row.push_bind(r);
                }
                for t in &w.t {
                    row.push_bind(t.as_str());
                }
                row.push_bind(w.placed_at);
            });
            query.build().execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64> {
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        insert(order).execute(&mut *tx).await?;
        pause(wait_us, self.tokio_timer).await;
        tx.commit().await?;
        Ok(0)
    }

    async fn get(&self, id: i64) -> Res<Order> {
        Ok(sqlx::query_as(GET).bind(id).fetch_one(&self.pool).await?)
    }

    async fn scan(&self) -> Res<Vec<Order>> {
        Ok(
            sqlx::query_as("SELECT id, writer, item, quantity, price, placed_at FROM orders")
                .fetch_all(&self.pool)
                .await?,
        )
    }

    async fn rmw(&self, id: i64) -> Res<u64> {
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let mut order: Order = sqlx::query_as(GET).bind(id).fetch_one(&mut *tx).await?;
        order.quantity += 1;
        sqlx::query("UPDATE orders SET quantity = ?1 WHERE id = ?2")
            .bind(order.quantity)
            .bind(order.id)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(0)
    }

    async fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let sql = match table {
            "orders" => "SELECT count(*), coalesce(sum(quantity), 0) FROM orders",
            _ => "SELECT count(*), coalesce(sum(i1), 0) FROM wide",
        };
        Ok(sqlx::query_as(sql).fetch_one(&self.pool).await?)
    }

    async fn close(self) -> Res<()> {
        self.pool.close().await;
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 1000;
const BATCH_WIDE: usize = 250;

fn main() {
    peerkit::run_async::<Peer>(|_| None);
}
