//! diesel 2.3 with its r2d2 pool: threads, generated queries, cached statements.

mod schema;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Pool};
use peerkit::{BUSY_TIMEOUT, Config, NewOrder, NewWide, POOL, Res, SyncPeer, sleep};

use crate::schema::{Counted, InsertOrder, InsertWide, Order, orders, wide};

#[derive(Debug)]
struct Setup {
    pragmas: String,
}

impl CustomizeConnection<SqliteConnection, diesel::r2d2::Error> for Setup {
    fn on_acquire(&self, conn: &mut SqliteConnection) -> Result<(), diesel::r2d2::Error> {
        conn.batch_execute(&self.pragmas)
            .map_err(diesel::r2d2::Error::QueryError)
    }
}

struct Peer {
    pool: Pool<ConnectionManager<SqliteConnection>>,
    batch: Option<usize>,
}

impl SyncPeer for Peer {
    type Row = Order;

    fn open(config: &Config) -> Res<Self> {
        let pragmas = format!(
            "PRAGMA busy_timeout = {}; PRAGMA journal_mode = WAL; PRAGMA synchronous = {};",
            BUSY_TIMEOUT.as_millis(),
            config.sync.as_sql()
        );
        // An embedded database cannot lose a connection, so none is tested before its use.
        let pool = Pool::builder()
            .max_size(POOL as u32)
            .test_on_check_out(false)
            .connection_customizer(Box::new(Setup { pragmas }))
            .build(ConnectionManager::new(config.db_str()))?;
        let conn = &mut pool.get()?;
        conn.batch_execute(
            &peerkit::ORDERS_DDL.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
        )?;
        conn.batch_execute(
            &peerkit::WIDE_DDL.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
        )?;
        Ok(Self {
            pool,
            batch: config.batch,
        })
    }

    fn save(&self, order: NewOrder) -> Res<i64> {
        let conn = &mut self.pool.get()?;
        Ok(diesel::insert_into(orders::table)
            .values(InsertOrder::from(&order))
            .returning(orders::id)
            .get_result(conn)?)
    }

    fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        let conn = &mut self.pool.get()?;
        let batch = self.batch.unwrap_or(BATCH);
        conn.immediate_transaction(|conn| {
            for chunk in rows.chunks(batch) {
                if batch == 1 {
                    diesel::insert_into(orders::table)
                        .values(InsertOrder::from(&chunk[0]))
                        .execute(conn)?;
                } else {
                    let chunk: Vec<_> = chunk.iter().map(InsertOrder::from).collect();
                    diesel::insert_into(orders::table)
                        .values(&chunk)
                        .execute(conn)?;
                }
            }
            diesel::QueryResult::Ok(())
        })?;
        Ok(())
    }

    fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        let conn = &mut self.pool.get()?;
        let batch = self.batch.unwrap_or(BATCH_WIDE);
        conn.immediate_transaction(|conn| {
            for chunk in rows.chunks(batch) {
                if batch == 1 {
                    diesel::insert_into(wide::table)
                        .values(InsertWide::from(&chunk[0]))
                        .execute(conn)?;
                } else {
                    let chunk: Vec<_> = chunk.iter().map(InsertWide::from).collect();
                    diesel::insert_into(wide::table)
                        .values(&chunk)
                        .execute(conn)?;
                }
            }
            diesel::QueryResult::Ok(())
        })?;
        Ok(())
    }

    fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64> {
        let conn = &mut self.pool.get()?;
        conn.immediate_transaction(|conn| {
            let _id: i64 = diesel::insert_into(orders::table)
                .values(InsertOrder::from(&order))
                .returning(orders::id)
                .get_result(conn)?;
            sleep(wait_us);
            diesel::QueryResult::Ok(())
        })?;
        Ok(0)
    }

    fn get(&self, id: i64) -> Res<Order> {
        let conn = &mut self.pool.get()?;
        Ok(orders::table
            .find(id)
            .select(Order::as_select())
            .first(conn)?)
    }

    fn scan(&self) -> Res<Vec<Order>> {
        let conn = &mut self.pool.get()?;
        Ok(orders::table.select(Order::as_select()).load(conn)?)
    }

    fn rmw(&self, id: i64) -> Res<u64> {
        let conn = &mut self.pool.get()?;
        conn.immediate_transaction(|conn| {
            let order = orders::table
                .find(id)
                .select(Order::as_select())
                .first(conn)?;
            diesel::update(orders::table.find(order.id))
                .set(orders::quantity.eq(order.quantity + 1))
                .execute(conn)?;
            diesel::QueryResult::Ok(())
        })?;
        Ok(0)
    }

    fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let conn = &mut self.pool.get()?;
        let column = if table == "orders" { "quantity" } else { "i1" };
        let counted: Counted = diesel::sql_query(format!(
            "SELECT count(*) AS found, coalesce(sum({column}), 0) AS total FROM {table}"
        ))
        .get_result(conn)?;
        Ok((counted.found, counted.total))
    }

    fn close(self) -> Res<()> {
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 100;
const BATCH_WIDE: usize = 100;

fn main() {
    peerkit::run_sync::<Peer>();
}
