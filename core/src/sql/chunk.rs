//! What a bulk operation hands to the writer at a time: a statement, and the rows to run it for.

use std::sync::Arc;

use crate::value::Value;

/// A statement, and the rows for which it runs in one transaction.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The text, with placeholders `?1`, `?2`, ... for the values of a row.
    pub text: Arc<str>,
    /// The same for several rows at a time, which is faster.
    pub several: Option<Several>,
    /// The table that it writes.
    pub table: &'static str,
    /// How many values a row has.
    pub width: usize,
    /// The values of all rows, one row after the other.
    pub values: Vec<Value>,
    /// The values of further placeholders, the same for all rows.
    pub shared: Vec<Value>,
    /// The key that the writer gives to rows in which it is NULL.
    pub key: Option<ChunkKey>,
    /// What it means when nothing was changed for a row.
    pub unchanged: Unchanged,
    /// Of how many rows that are passed over it is told which they are.
    pub tells: usize,
}

/// A statement for so many rows.
#[derive(Debug, Clone)]
pub(crate) struct Several {
    /// How many.
    pub rows: usize,
    /// The text, with placeholders for the values of one after the other.
    pub text: Arc<str>,
}

/// What it means when nothing was changed for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// It is passed over.
    Skipped,
    /// Something kept it from being inserted, which is an error.
    NotInserted,
    /// There is no row with its key and version; or something kept the one that is there from being changed, which is an
    /// error.
    Missing {
        /// The entity's name.
        entity: &'static str,
        /// The position of the key's first value in the row; the version is the last of all.
        key: usize,
        /// How many it has.
        columns: usize,
        /// Asks by these whether the row is there.
        probe: Arc<str>,
        /// Whether a row that is not there is passed over, and is no conflict.
        is_skipped: bool,
    },
}

/// The integer key that a row may lack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkKey {
    /// Its position among the values of a row.
    pub at: usize,
    /// Its column.
    pub column: &'static str,
    /// The largest one that a row of the chunk brings along: none below it is given.
    pub above: i64,
}

impl Chunk {
    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.width
    }
}
