//! rusqlite on threads: what SQLite gives when nothing is between.
//!
//! Its functions are `async` only in name: each thread runs its whole work as one future that never waits.

mod answers;

pub(crate) use self::answers::product;

use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use anabranch::prelude::Synchronous;
use chrono::NaiveDateTime;
use rusqlite::{Connection, Row, TransactionBehavior, params};
use workload::{NewOrder, Result};

use crate::{
    contender::{Contender, Seen},
    contenders::{
        ALL, BUSY_TIMEOUT, BY_KEY, CACHE_KIB, INSERT, JOURNAL_SIZE_LIMIT, READERS, UPDATE, lost,
    },
    question::Question,
};

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

impl Order {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            writer: row.get(1)?,
            item: row.get(2)?,
            quantity: row.get(3)?,
            price: row.get(4)?,
            placed_at: row.get(5)?,
            version: row.get(6)?,
        })
    }
}

/// A database of rusqlite: connections for whoever needs one, and a mutex for those that write.
#[derive(Debug, Clone)]
pub(crate) struct Threads(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
    writing: Mutex<()>,
}

impl Threads {
    pub(crate) fn open(path: &Path, synchronous: Synchronous) -> Result<Self> {
        let open = || -> Result<Connection> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            let synchronous = match synchronous {
                Synchronous::Full => "FULL",
                Synchronous::Normal => "NORMAL",
                Synchronous::Off => "OFF",
            };
            connection.pragma_update(None, "synchronous", synchronous)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.pragma_update(None, "cache_size", -i64::try_from(CACHE_KIB)?)?;
            connection.pragma_update(
                None,
                "journal_size_limit",
                i64::try_from(JOURNAL_SIZE_LIMIT)?,
            )?;
            Ok(connection)
        };
        let idle = (0..READERS).map(|_| open()).collect::<Result<_>>()?;
        Ok(Self(Arc::new(Shared {
            idle: Mutex::new(idle),
            returned: Condvar::new(),
            writing: Mutex::new(()),
        })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let shared = &*self.0;
        let idle = shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = shared.returned.wait_while(idle, |idle| idle.is_empty());
        let taken = taken.unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = taken.ok_or("the pool of connections is empty")?;
        let outcome = work(&mut connection);
        let mut idle = shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
        drop(idle);
        shared.returned.notify_one();
        outcome
    }

    fn write<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let writing = &self.0.writing;
        let _alone = writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.with(work)
    }
}

fn insert(connection: &Connection, order: &NewOrder) -> Result<()> {
    connection.prepare_cached(INSERT)?.execute(params![
        order.writer,
        order.item,
        order.quantity,
        order.price,
        order.placed_at
    ])?;
    Ok(())
}

impl Contender for Threads {
    const THREADS: Option<u32> = Some(READERS);

    async fn save(&self, order: NewOrder) -> Result<()> {
        self.write(|connection| insert(connection, &order))
    }

    async fn get(&self, id: i64) -> Result<Seen> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(BY_KEY)?;
            let order = statement.query_row([id], Order::read)?;
            Ok(Seen::of([(order.id, order.quantity)]))
        })
    }

    async fn scan(&self) -> Result<Seen> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(ALL)?;
            let orders: Vec<Order> = statement
                .query_map([], Order::read)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Seen::of(
                orders.iter().map(|order| (order.id, order.quantity)),
            ))
        })
    }

    async fn answer(&self, question: Question) -> Result<Seen> {
        self.with(|connection| answers::answer(connection, question))
    }

    async fn increment(&self, id: i64) -> Result<()> {
        self.write(|connection| {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let order = tx.prepare_cached(BY_KEY)?.query_row([id], Order::read)?;
            let updated = tx.prepare_cached(UPDATE)?.execute(params![
                order.quantity + 1,
                order.id,
                order.version
            ])?;
            if updated != 1 {
                return Err(lost(id));
            }
            tx.commit()?;
            Ok(())
        })
    }

    async fn insert(&self, order: NewOrder, wait: Duration) -> Result<()> {
        self.write(|connection| {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            insert(&tx, &order)?;
            if !wait.is_zero() {
                thread::sleep(wait);
            }
            tx.commit()?;
            Ok(())
        })
    }

    async fn close(self) -> Result<()> {
        let shared = Arc::try_unwrap(self.0).map_err(|_| "a thread still has the database open")?;
        let idle = shared.idle.into_inner();
        for connection in idle.unwrap_or_else(PoisonError::into_inner) {
            connection.close().map_err(|(_, error)| error)?;
        }
        Ok(())
    }
}
