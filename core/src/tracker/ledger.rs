//! What a plan in flight wrote, and what its receipt says about it.

use crate::{
    entity::TableDef,
    sql::Receipt,
    tracker::{Place, TemporaryKeys},
    value::{TEMPORARY_KEYS, Value},
};

/// What is needed to accept a plan once it is committed: one entry for each step of its batch, in the same order.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) entries: Vec<LedgerEntry>,
    pub(crate) keys: TemporaryKeys,
}

/// What a plan wrote of one entity.
#[derive(Debug)]
pub(crate) struct LedgerEntry {
    pub(crate) place: Place,
    pub(crate) written: Written,
}

/// What a plan did with an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Inserted it, under the key at this position of the receipt if the writer gives it.
    Inserted {
        key: Option<usize>,
        version: Option<i64>,
    },
    /// Updated it, to this version.
    Updated { version: Option<i64> },
    /// Deleted it.
    Deleted,
}

/// The keys that were asked for, and those that were given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) keys: &'a TemporaryKeys,
    pub(crate) receipt: &'a Receipt,
}

impl Given<'_> {
    pub(crate) fn key(&self, position: Option<usize>) -> Option<i64> {
        self.receipt.keys.get(position?).copied()
    }

    /// The key that replaces this value in a column that refers to the table.
    pub(crate) fn replacement(&self, table: &TableDef, value: &Value) -> Option<i64> {
        match value {
            Value::Integer(key) if TEMPORARY_KEYS.contains(key) => {
                self.key(self.keys.position(table, *key))
            }
            _ => None,
        }
    }
}
