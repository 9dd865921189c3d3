//! toasty 0.11 with its SQLite driver.
//!
//! The driver runs SQLite on the threads of the async runtime, so a `BEGIN
//! IMMEDIATE` that waits for a lock holds a thread. Variants: `toasty` gives
//! the runtime twice as many threads as there are connections, `toasty-2w`
//! leaves it at tokio's default of one thread per core.

use peerkit::{AsyncPeer, BUSY_TIMEOUT, Config, Entity, NewOrder, NewWide, POOL, Res, pause};
use toasty::Db;
use toasty_core::driver::operation::TransactionMode;

#[derive(Debug, toasty::Model)]
#[table = "orders"]
struct Order {
    #[key]
    #[auto]
    id: i64,
    writer: i64,
    item: String,
    quantity: i64,
    price: f64,
    placed_at: jiff::civil::DateTime,
}

#[derive(Debug, toasty::Model)]
#[table = "wide"]
struct Wide {
    #[key]
    #[auto]
    id: i64,
    i1: i64,
    i2: i64,
    i3: i64,
    i4: i64,
    i5: i64,
    i6: i64,
    i7: i64,
    r1: f64,
    r2: f64,
    r3: f64,
    r4: f64,
    r5: f64,
    t1: String,
    t2: String,
    t3: String,
    t4: String,
    t5: String,
    t6: String,
    placed_at: jiff::civil::DateTime,
}

impl Entity for Order {
    fn key(&self) -> i64 {
        self.id
    }
    fn quantity(&self) -> i64 {
        self.quantity
    }
}

/// toasty speaks jiff, the data generator speaks chrono.
fn civil(at: chrono::NaiveDateTime) -> jiff::civil::DateTime {
    jiff::Timestamp::from_microsecond(at.and_utc().timestamp_micros())
        .expect("a moment of 2024")
        .to_zoned(jiff::tz::TimeZone::UTC)
        .datetime()
}

#[derive(Clone)]
struct Peer {
    db: Db,
    batch: Option<usize>,
    tokio_timer: bool,
}

impl AsyncPeer for Peer {
    type Row = Order;

    async fn open(config: &Config) -> Res<Self> {
        let db = Db::builder()
            .models(toasty::models!(Order, Wide))
            .max_pool_size(POOL)
            .connect(&format!("sqlite:{}", config.db_str()))
            .await?;
        // The driver has no options, so each connection of the pool is set up by hand.
        let mut all = Vec::new();
        for _ in 0..POOL {
            let mut conn = db.connection().await?;
            for pragma in [
                format!("PRAGMA busy_timeout = {}", BUSY_TIMEOUT.as_millis()),
                "PRAGMA journal_mode = WAL".to_owned(),
                format!("PRAGMA synchronous = {}", config.sync.as_sql()),
            ] {
                toasty::sql::query(pragma).exec(&mut conn).await?;
            }
            all.push(conn);
        }
        for ddl in [peerkit::ORDERS_DDL, peerkit::WIDE_DDL] {
            toasty::sql::statement(ddl.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
                .exec(&mut all[0])
                .await?;
        }
        Ok(Self {
            db,
            batch: config.batch,
            tokio_timer: config.tokio_timer,
        })
    }

    async fn save(&self, o: NewOrder) -> Res<i64> {
        let mut db = self.db.clone();
        let order = toasty::create!(Order {
            writer: o.writer,
            item: o.item,
            quantity: o.quantity,
            price: o.price,
            placed_at: civil(o.placed_at),
        })
        .exec(&mut db)
        .await?;
        Ok(order.id)
    }

    async fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        let mut db = self.db.clone();
        let mut tx = db
            .transaction_builder()
            .mode(TransactionMode::Immediate)
            .begin()
            .await?;
        let batch = self.batch.unwrap_or(BATCH);
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut many = Order::create_many();
            for o in rows.by_ref().take(batch) {
                many = many.item(toasty::create!(Order {
                    writer: o.writer,
                    item: o.item,
                    quantity: o.quantity,
                    price: o.price,
                    placed_at: civil(o.placed_at),
                }));
            }
            many.exec(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        let mut db = self.db.clone();
        let mut tx = db
            .transaction_builder()
            .mode(TransactionMode::Immediate)
            .begin()
            .await?;
        let batch = self.batch.unwrap_or(BATCH_WIDE);
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut many = Wide::create_many();
            for w in rows.by_ref().take(batch) {
                let [i1, i2, i3, i4, i5, i6, i7] = w.i;
                let [r1, r2, r3, r4, r5] = w.r;
                let [t1, t2, t3, t4, t5, t6] = w.t;
                let placed_at = civil(w.placed_at);
                many = many.item(toasty::create!(Wide {
                    i1,
                    i2,
                    i3,
                    i4,
                    i5,
                    i6,
                    i7,
                    r1,
                    r2,
                    r3,
                    r4,
                    r5,
                    t1,
                    t2,
                    t3,
                    t4,
                    t5,
                    t6,
                    placed_at
                }));
            }
            many.exec(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn tx_work(&self, o: NewOrder, wait_us: u64) -> Res<u64> {
        let mut db = self.db.clone();
        let mut tx = db
            .transaction_builder()
            .mode(TransactionMode::Immediate)
            .begin()
            .await?;
        toasty::create!(Order {
            writer: o.writer,
            item: o.item,
            quantity: o.quantity,
            price: o.price,
            placed_at: civil(o.placed_at),
        })
        .exec(&mut tx)
        .await?;
        pause(wait_us, self.tokio_timer).await;
        tx.commit().await?;
        Ok(0)
    }

    async fn get(&self, id: i64) -> Res<Order> {
        let mut db = self.db.clone();
        Ok(Order::get_by_id(&mut db, &id).await?)
    }

    async fn scan(&self) -> Res<Vec<Order>> {
        let mut db = self.db.clone();
        Ok(Order::all().exec(&mut db).await?)
    }

    async fn rmw(&self, id: i64) -> Res<u64> {
        let mut db = self.db.clone();
        let mut tx = db
            .transaction_builder()
            .mode(TransactionMode::Immediate)
            .begin()
            .await?;
        let mut order = Order::get_by_id(&mut tx, &id).await?;
        let quantity = order.quantity + 1;
        toasty::update!(order { quantity }).exec(&mut tx).await?;
        tx.commit().await?;
        Ok(0)
    }

    async fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let mut db = self.db.clone();
        let column = if table == "orders" { "quantity" } else { "i1" };
        let rows = toasty::sql::query(format!(
            "SELECT count(*), coalesce(sum({column}), 0) FROM {table}"
        ))
        .exec(&mut db)
        .await?;
        match rows.as_slice() {
            [toasty::stmt::Value::Record(record)] => match (&record[0], &record[1]) {
                (toasty::stmt::Value::I64(rows), toasty::stmt::Value::I64(sum)) => {
                    Ok((*rows, *sum))
                }
                other => Err(format!("count gave {other:?}").into()),
            },
            other => Err(format!("count gave {other:?}").into()),
        }
    }

    async fn close(self) -> Res<()> {
        drop(self.db);
        // The connections close in tasks of their own.
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 250;
const BATCH_WIDE: usize = 50;

fn main() {
    peerkit::run_async::<Peer>(|config| (config.peer != "toasty-2w").then_some(2 * POOL));
}
