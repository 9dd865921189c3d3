//! turso 0.9.0-pre.2, the SQLite rewrite in Rust.
//!
//! Variants: `turso` is its ordinary WAL mode with `BEGIN IMMEDIATE`;
//! `turso-mvcc` has `journal_mode = 'mvcc'` and `BEGIN CONCURRENT`, retried on
//! conflicts as its own example `concurrent_writes.rs` does it.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use chrono::NaiveDateTime;
use peerkit::{
    AsyncPeer, BUSY_TIMEOUT, Config, Entity, INSERT_ORDER, NewOrder, NewWide, POOL, Res, Rng, pause,
};
use tokio::sync::Semaphore;
use turso::{Builder, Connection, Error, Row, Value, params_from_iter};

#[allow(dead_code)]
struct Order {
    id: i64,
    writer: i64,
    item: String,
    quantity: i64,
    price: f64,
    placed_at: NaiveDateTime,
}

impl Order {
    /// turso has no row mapping and no date type.
    fn read(row: &Row) -> Res<Self> {
        Ok(Self {
            id: row.get(0)?,
            writer: row.get(1)?,
            item: row.get(2)?,
            quantity: row.get(3)?,
            price: row.get(4)?,
            placed_at: NaiveDateTime::parse_from_str(
                &row.get::<String>(5)?,
                "%Y-%m-%d %H:%M:%S%.f",
            )?,
        })
    }
}

impl Entity for Order {
    fn key(&self) -> i64 {
        self.id
    }
    fn quantity(&self) -> i64 {
        self.quantity
    }
}

/// turso has no pool of its own.
struct Pool {
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
}

#[derive(Clone)]
struct Peer {
    pool: Arc<Pool>,
    mvcc: bool,
    batch: Option<usize>,
    tokio_timer: bool,
}

/// A connection out of the pool; goes back when dropped.
struct Lent<'a> {
    conn: Option<Connection>,
    pool: &'a Pool,
}

impl std::ops::Deref for Lent<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.conn.as_ref().unwrap()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.pool
            .idle
            .lock()
            .unwrap()
            .push(self.conn.take().unwrap());
        self.pool.free.add_permits(1);
    }
}

impl Pool {
    async fn get(&self) -> Lent<'_> {
        self.free.acquire().await.expect("never closed").forget();
        let conn = self.idle.lock().unwrap().pop();
        Lent { conn, pool: self }
    }
}

const GET: &str = "SELECT id, writer, item, quantity, price, placed_at FROM orders WHERE id = ?1";

fn text(at: NaiveDateTime) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

async fn run(conn: &Connection, sql: &str) -> Result<u64, Error> {
    conn.prepare_cached(sql).await?.execute(()).await
}

async fn insert(conn: &Connection, o: &NewOrder) -> Result<(), Error> {
    let mut insert = conn.prepare_cached(INSERT_ORDER).await?;
    insert
        .execute((
            o.writer,
            o.item.as_str(),
            o.quantity,
            o.price,
            text(o.placed_at),
        ))
        .await?;
    Ok(())
}

async fn get(conn: &Connection, id: i64) -> Res<Order> {
    let mut select = conn.prepare_cached(GET).await?;
    Order::read(&select.query_row((id,)).await?)
}

/// As in turso's own example of concurrent writes.
fn is_retryable(error: &Error) -> bool {
    matches!(error, Error::Busy(_) | Error::BusySnapshot(_))
        || matches!(error, Error::Error(text) if text.contains("conflict"))
}

/// The retries of one operation: for as long as the other peers wait for a
/// lock, with short random pauses that grow to 8 ms.
struct Retries {
    until: Instant,
    done: u64,
    rng: Rng,
}

impl Retries {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            until: now + BUSY_TIMEOUT,
            done: 0,
            rng: Rng::new(std::ptr::from_ref(&now) as u64),
        }
    }
    /// True if `error` is to be tried again, after a pause.
    async fn again(&mut self, error: &Error) -> bool {
        if !is_retryable(error) || Instant::now() > self.until {
            return false;
        }
        self.done += 1;
        if self.done == 1 {
            tokio::task::yield_now().await;
        } else {
            let most = 50 << self.done.min(8);
            pause(self.rng.next() % most.min(8_000), false).await;
        }
        true
    }
}

impl Peer {
    fn begin(&self) -> &'static str {
        if self.mvcc {
            "BEGIN CONCURRENT"
        } else {
            "BEGIN IMMEDIATE"
        }
    }
    async fn multi_row(
        &self,
        table: &str,
        columns: &str,
        width: usize,
        batch: usize,
        rows: impl Iterator<Item = Vec<Value>>,
    ) -> Res<()> {
        let conn = self.pool.get().await;
        run(&conn, self.begin()).await?;
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut values: Vec<Value> = Vec::with_capacity(width * batch);
            let mut count = 0;
            for row in rows.by_ref().take(batch) {
                values.extend(row);
                count += 1;
            }
            let marks = format!("({})", vec!["?"; width].join(", "));
            let sql = format!(
                "INSERT INTO {table} ({columns}) VALUES {}",
                vec![marks; count].join(", ")
            );
            conn.prepare_cached(sql)
                .await?
                .execute(params_from_iter(values))
                .await?;
        }
        run(&conn, "COMMIT").await?;
        Ok(())
    }
    async fn try_tx_work(
        &self,
        conn: &Connection,
        order: &NewOrder,
        wait_us: u64,
    ) -> Result<(), Error> {
        run(conn, self.begin()).await?;
        insert(conn, order).await?;
        pause(wait_us, self.tokio_timer).await;
        run(conn, "COMMIT").await?;
        Ok(())
    }
    async fn try_rmw(&self, conn: &Connection, id: i64) -> Res<()> {
        run(conn, self.begin()).await?;
        let mut order = get(conn, id).await?;
        order.quantity += 1;
        let mut update = conn
            .prepare_cached("UPDATE orders SET quantity = ?1 WHERE id = ?2")
            .await?;
        update.execute((order.quantity, order.id)).await?;
        run(conn, "COMMIT").await?;
        Ok(())
    }
}

impl AsyncPeer for Peer {
    type Row = Order;

    async fn open(config: &Config) -> Res<Self> {
        let mvcc = config.peer == "turso-mvcc";
        let db = Builder::new_local(config.db_str()).build().await?;
        let mut idle = Vec::with_capacity(POOL);
        for _ in 0..POOL {
            let conn = db.connect()?;
            conn.busy_timeout(BUSY_TIMEOUT)?;
            conn.pragma_update("journal_mode", if mvcc { "'mvcc'" } else { "'wal'" })
                .await?;
            conn.pragma_update("synchronous", config.sync.as_sql())
                .await?;
            idle.push(conn);
        }
        for ddl in [peerkit::ORDERS_DDL, peerkit::WIDE_DDL] {
            idle[0]
                .execute(
                    ddl.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
                    (),
                )
                .await?;
        }
        Ok(Self {
            pool: Arc::new(Pool {
                idle: Mutex::new(idle),
                free: Semaphore::new(POOL),
            }),
            mvcc,
            batch: config.batch,
            tokio_timer: config.tokio_timer,
        })
    }

    async fn save(&self, order: NewOrder) -> Res<i64> {
        let conn = self.pool.get().await;
        insert(&conn, &order).await?;
        Ok(conn.last_insert_rowid())
    }

    async fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        let batch = self.batch.unwrap_or(BATCH);
        if batch > 1 {
            let columns = "writer, item, quantity, price, placed_at";
            let rows = rows.into_iter().map(|o| {
                vec![
                    Value::Integer(o.writer),
                    Value::Text(o.item),
                    Value::Integer(o.quantity),
                    Value::Real(o.price),
                    Value::Text(text(o.placed_at)),
                ]
            });
            return self.multi_row("orders", columns, 5, batch, rows).await;
        }
        let conn = self.pool.get().await;
        run(&conn, self.begin()).await?;
        let mut insert = conn.prepare_cached(INSERT_ORDER).await?;
        for o in rows {
            insert
                .execute((o.writer, o.item, o.quantity, o.price, text(o.placed_at)))
                .await?;
        }
        run(&conn, "COMMIT").await?;
        Ok(())
    }

    async fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        let batch = self.batch.unwrap_or(BATCH_WIDE);
        let rows = rows.into_iter().map(|w| {
            let mut values = Vec::with_capacity(19);
            values.extend(w.i.map(Value::Integer));
            values.extend(w.r.map(Value::Real));
            values.extend(w.t.map(Value::Text));
            values.push(Value::Text(text(w.placed_at)));
            values
        });
        if batch > 1 {
            return self
                .multi_row("wide", peerkit::WIDE_COLUMNS, 19, batch, rows)
                .await;
        }
        let conn = self.pool.get().await;
        run(&conn, self.begin()).await?;
        let marks = vec!["?"; 19].join(", ");
        let mut insert = conn
            .prepare_cached(format!(
                "INSERT INTO wide ({}) VALUES ({marks})",
                peerkit::WIDE_COLUMNS
            ))
            .await?;
        for values in rows {
            insert.execute(params_from_iter(values)).await?;
        }
        run(&conn, "COMMIT").await?;
        Ok(())
    }

    async fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64> {
        let conn = self.pool.get().await;
        let mut retries = Retries::new();
        loop {
            match self.try_tx_work(&conn, &order, wait_us).await {
                Ok(()) => return Ok(retries.done),
                Err(error) => {
                    let _ = run(&conn, "ROLLBACK").await;
                    if !self.mvcc || !retries.again(&error).await {
                        return Err(error.into());
                    }
                }
            }
        }
    }

    async fn get(&self, id: i64) -> Res<Order> {
        get(&*self.pool.get().await, id).await
    }

    async fn scan(&self) -> Res<Vec<Order>> {
        let conn = self.pool.get().await;
        let mut select = conn
            .prepare_cached("SELECT id, writer, item, quantity, price, placed_at FROM orders")
            .await?;
        let mut rows = select.query(()).await?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().await? {
            all.push(Order::read(&row)?);
        }
        Ok(all)
    }

    async fn rmw(&self, id: i64) -> Res<u64> {
        let conn = self.pool.get().await;
        let mut retries = Retries::new();
        loop {
            match self.try_rmw(&conn, id).await {
                Ok(()) => return Ok(retries.done),
                Err(error) => {
                    let _ = run(&conn, "ROLLBACK").await;
                    let again = match error.downcast_ref::<Error>() {
                        Some(error) if self.mvcc => retries.again(error).await,
                        _ => false,
                    };
                    if !again {
                        return Err(error);
                    }
                }
            }
        }
    }

    async fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let conn = self.pool.get().await;
        let column = if table == "orders" { "quantity" } else { "i1" };
        let mut rows = conn
            .query(
                format!("SELECT count(*), coalesce(sum({column}), 0) FROM {table}"),
                (),
            )
            .await?;
        let row = rows.next().await?.ok_or("no count")?;
        let counted = (row.get(0)?, row.get(1)?);
        while rows.next().await?.is_some() {}
        Ok(counted)
    }

    async fn close(self) -> Res<()> {
        let conn = self.pool.get().await;
        let mut rows = conn.query("PRAGMA wal_checkpoint(TRUNCATE)", ()).await?;
        while rows.next().await?.is_some() {}
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 100;
const BATCH_WIDE: usize = 250;

fn main() {
    peerkit::run_async::<Peer>(|_| None);
}
