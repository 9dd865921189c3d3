//! The contenders: this library, sqlx in its two common arrangements, and rusqlite as the limit.
//!
//! All open the same file with the same options; the definition of the table is this library's.

mod library;
mod pools;
mod threads;

pub(crate) use self::{
    library::{Library, Order, Way},
    pools::Pools,
    threads::{Threads, product},
};

/// How many connections read at once.
const READERS: u32 = 8;
/// How long anybody waits for a lock.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
/// The page cache of each connection, in KiB.
const CACHE_KIB: u64 = 16 * 1024;
/// The size of a log that starts anew, in bytes.
const JOURNAL_SIZE_LIMIT: u64 = 64 * 1024 * 1024;

const INSERT: &str = "INSERT INTO orders (writer, item, quantity, price, placed_at, version) VALUES (?1, ?2, ?3, ?4, ?5, 1)";
const ALL: &str = "SELECT id, writer, item, quantity, price, placed_at, version FROM orders";
const BY_KEY: &str =
    "SELECT id, writer, item, quantity, price, placed_at, version FROM orders WHERE id = ?1";
const UPDATE: &str =
    "UPDATE orders SET quantity = ?1, version = version + 1 WHERE id = ?2 AND version = ?3";

/// The error of a row that should be there.
fn missing(id: i64) -> workload::Error {
    format!("there is no order {id}").into()
}

/// The error of an update, inside of a transaction that nobody can come between, that did not meet its row.
fn lost(id: i64) -> workload::Error {
    format!("order {id} changed in the middle of a transaction").into()
}
