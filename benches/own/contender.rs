//! What a contender has to do.

use std::{future::Future, time::Duration};

use anabranch::observe::Statistics;
use workload::{NewOrder, Result};

use crate::question::Question;

/// An open database of one contender; a clone is another handle to it.
///
/// Everything that makes the work comparable (who does what, how often, at what times the clock is read) is outside;
/// what shows how the library is used is inside.
pub(crate) trait Contender: Clone + Send + Sync + 'static {
    /// On how many threads of its own the work runs, for a library that blocks; `None`: on tasks of the runtime.
    const THREADS: Option<u32> = None;

    /// Saves one new order in a transaction of its own.
    fn save(&self, order: NewOrder) -> impl Future<Output = Result<()>> + Send;

    /// Reads an order by its key.
    fn get(&self, id: i64) -> impl Future<Output = Result<Seen>> + Send;

    /// Reads all orders into a list.
    fn scan(&self) -> impl Future<Output = Result<Seen>> + Send;

    /// Answers a question about the shops and products.
    fn answer(&self, question: Question) -> impl Future<Output = Result<Seen>> + Send;

    /// Reads an order, adds one to its quantity and to its version, and saves it; tries again if somebody else was
    /// faster.
    fn increment(&self, id: i64) -> impl Future<Output = Result<()>> + Send;

    /// Saves one new order in a transaction that then waits so long before it commits.
    fn insert(&self, order: NewOrder, wait: Duration) -> impl Future<Output = Result<()>> + Send;

    /// What the library counted since the file was opened, for one that counts.
    fn statistics(&self) -> Option<Statistics> {
        None
    }

    /// Closes the file.
    fn close(self) -> impl Future<Output = Result<()>> + Send;
}

/// What came out of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) rows: usize,
    /// The key of the last one.
    pub(crate) last: i64,
    /// The sum of their quantities.
    pub(crate) quantity: i64,
}

impl Seen {
    /// Of rows that were read, by their keys and quantities.
    pub(crate) fn of(rows: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut seen = Self {
            rows: 0,
            last: 0,
            quantity: 0,
        };
        for (key, quantity) in rows {
            seen.rows += 1;
            seen.last = key;
            seen.quantity += quantity;
        }
        seen
    }
}
