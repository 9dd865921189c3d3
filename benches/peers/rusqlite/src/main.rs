//! rusqlite 0.39: the raw synchronous limit. Threads, one process, cached
//! prepared statements, no ORM.
//!
//! Variants: `rusqlite` relies on SQLite's busy handler between its 8
//! connections; `rusqlite-1w` has an in-process mutex around its write
//! transactions, so that no writer ever meets a busy database.

use std::sync::{Condvar, Mutex, MutexGuard};

use chrono::NaiveDateTime;
use peerkit::{
    BUSY_TIMEOUT, Config, Entity, INSERT_ORDER, NewOrder, NewWide, POOL, Res, SyncPeer, sleep,
};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params, params_from_iter};

struct Order {
    id: i64,
    #[allow(dead_code)]
    writer: i64,
    #[allow(dead_code)]
    item: String,
    quantity: i64,
    #[allow(dead_code)]
    price: f64,
    #[allow(dead_code)]
    placed_at: NaiveDateTime,
}

impl Order {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            writer: row.get(1)?,
            item: row.get(2)?,
            quantity: row.get(3)?,
            price: row.get(4)?,
            placed_at: row.get(5)?,
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

struct Peer {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
    writer: Option<Mutex<()>>,
    batch: Option<usize>,
}

impl Peer {
    /// Runs `work` on a connection of the pool.
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Res<T>) -> Res<T> {
        let mut idle = self.idle.lock().unwrap();
        let mut conn = loop {
            match idle.pop() {
                Some(conn) => break conn,
                None => idle = self.returned.wait(idle).unwrap(),
            }
        };
        drop(idle);
        let result = work(&mut conn);
        self.idle.lock().unwrap().push(conn);
        self.returned.notify_one();
        result
    }
    /// Runs `work`, which writes, on a connection of the pool.
    fn write<T>(&self, work: impl FnOnce(&mut Connection) -> Res<T>) -> Res<T> {
        let _alone: Option<MutexGuard<'_, ()>> =
            self.writer.as_ref().map(|writer| writer.lock().unwrap());
        self.with(work)
    }
}

impl SyncPeer for Peer {
    type Row = Order;

    fn open(config: &Config) -> Res<Self> {
        let mut idle = Vec::with_capacity(POOL);
        for _ in 0..POOL {
            let conn = Connection::open(&config.db)?;
            conn.busy_timeout(BUSY_TIMEOUT)?;
            conn.pragma_update(None, "journal_mode", "WAL")?;
            conn.pragma_update(None, "synchronous", config.sync.as_sql())?;
            idle.push(conn);
        }
        let exists = idle[0]
            .query_row(
                "SELECT 1 FROM sqlite_schema WHERE name = 'orders'",
                [],
                |_| Ok(()),
            )
            .optional()?;
        if exists.is_none() {
            idle[0].execute_batch(peerkit::ORDERS_DDL)?;
            idle[0].execute_batch(peerkit::WIDE_DDL)?;
        }
        Ok(Self {
            idle: Mutex::new(idle),
            returned: Condvar::new(),
            writer: (config.peer == "rusqlite-1w").then(|| Mutex::new(())),
            batch: config.batch,
        })
    }

    fn save(&self, o: NewOrder) -> Res<i64> {
        self.write(|conn| {
            conn.prepare_cached(INSERT_ORDER)?.execute(params![
                o.writer,
                o.item,
                o.quantity,
                o.price,
                o.placed_at
            ])?;
            Ok(conn.last_insert_rowid())
        })
    }

    fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        self.write(|conn| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for chunk in rows.chunks(self.batch.unwrap_or(BATCH)) {
                let marks = vec!["(?, ?, ?, ?, ?)"; chunk.len()].join(", ");
                let mut insert = tx.prepare_cached(&format!(
                    "INSERT INTO orders (writer, item, quantity, price, placed_at) VALUES {marks}"
                ))?;
                let values = chunk.iter().flat_map(|o| {
                    [
                        &o.writer as &dyn rusqlite::ToSql,
                        &o.item,
                        &o.quantity,
                        &o.price,
                        &o.placed_at,
                    ]
                });
                insert.execute(params_from_iter(values))?;
            }
            tx.commit()?;
            Ok(())
        })
    }

    fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        self.write(|conn| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let marks = format!("({})", vec!["?"; 19].join(", "));
            for chunk in rows.chunks(self.batch.unwrap_or(BATCH_WIDE)) {
                let marks = vec![marks.as_str(); chunk.len()].join(", ");
                let mut insert = tx.prepare_cached(&format!(
                    "INSERT INTO wide ({}) VALUES {marks}",
                    peerkit::WIDE_COLUMNS
                ))?;
                let values = chunk.iter().flat_map(|w| -> [&dyn rusqlite::ToSql; 19] {
                    [
                        &w.i[0],
                        &w.i[1],
                        &w.i[2],
                        &w.i[3],
                        &w.i[4],
                        &w.i[5],
                        &w.i[6],
                        &w.r[0],
                        &w.r[1],
                        &w.r[2],
                        &w.r[3],
                        &w.r[4],
                        &w.t[0],
                        &w.t[1],
                        &w.t[2],
                        &w.t[3],
                        &w.t[4],
                        &w.t[5],
                        &w.placed_at,
                    ]
                });
                insert.execute(params_from_iter(values))?;
            }
            tx.commit()?;
            Ok(())
        })
    }

    fn tx_work(&self, o: NewOrder, wait_us: u64) -> Res<u64> {
        self.write(|conn| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            tx.prepare_cached(INSERT_ORDER)?.execute(params![
                o.writer,
                o.item,
                o.quantity,
                o.price,
                o.placed_at
            ])?;
            sleep(wait_us);
            tx.commit()?;
            Ok(0)
        })
    }

    fn get(&self, id: i64) -> Res<Order> {
        self.with(|conn| {
            Ok(conn
                .prepare_cached(
                    "SELECT id, writer, item, quantity, price, placed_at FROM orders WHERE id = ?1",
                )?
                .query_row([id], Order::read)?)
        })
    }

    fn scan(&self) -> Res<Vec<Order>> {
        self.with(|conn| {
            let mut all = conn.prepare_cached(
                "SELECT id, writer, item, quantity, price, placed_at FROM orders",
            )?;
            let rows = all.query_map([], Order::read)?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })
    }

    fn rmw(&self, id: i64) -> Res<u64> {
        self.write(|conn| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut order = tx
                .prepare_cached(
                    "SELECT id, writer, item, quantity, price, placed_at FROM orders WHERE id = ?1",
                )?
                .query_row([id], Order::read)?;
            order.quantity += 1;
            tx.prepare_cached("UPDATE orders SET quantity = ?1 WHERE id = ?2")?
                .execute(params![order.quantity, order.id])?;
            tx.commit()?;
            Ok(0)
        })
    }

    fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        self.with(|conn| {
            let column = if table == "orders" { "quantity" } else { "i1" };
            Ok(conn.query_row(
                &format!("SELECT count(*), coalesce(sum({column}), 0) FROM {table}"),
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?)
        })
    }

    fn close(self) -> Res<()> {
        for conn in self.idle.into_inner().unwrap() {
            conn.close().map_err(|(_, error)| error)?;
        }
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 50;
const BATCH_WIDE: usize = 25;

fn main() {
    peerkit::run_sync::<Peer>();
}
