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
    /// The time that the plan wrote in columns such as `updated_at`, if it wrote any.
    pub(crate) now: Option<Value>,
}

/// What a plan wrote of one entity.
#[derive(Debug)]
pub(crate) struct LedgerEntry {
    pub(crate) place: Place,
    pub(crate) written: Written,
}

/// What a plan did with an entity.
#[derive(Debug)]
pub(crate) enum Written {
    /// Inserted it with this version, and the time in these columns.
    Inserted {
        version: Option<i64>,
        created_at: Option<usize>,
        updated_at: Option<usize>,
    },
    /// Updated it to this version, and the time in its `updated_at`.
    Updated { version: Option<i64> },
    /// Deleted the row with this key.
    Deleted { key: Vec<Value> },
}

/// What the library and the writer supplied: keys that were asked for, the time, what the database computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) keys: &'a TemporaryKeys,
    pub(crate) now: Option<&'a Value>,
    pub(crate) receipt: &'a Receipt,
}

impl<'a> Given<'a> {
    /// The key that replaces this value in a column of a table, if it is a temporary one.
    pub(crate) fn replacement(
        &self,
        table: &'static TableDef,
        column: usize,
        value: &Value,
    ) -> Option<Value> {
        let Value::Integer(key) = value else {
            return None;
        };
        if !TEMPORARY_KEYS.contains(key) {
            return None;
        }
        let position = self.keys.position(table.key_source(column)?, *key)?;
        self.receipt.keys.get(position).copied().map(Value::Integer)
    }

    /// What the database computed in a step, for each generated column.
    pub(crate) fn computed(&self, step: usize) -> &'a [Value] {
        let computed = &self.receipt.computed;
        match computed.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => &computed[at].1,
            Err(_) => &[],
        }
    }
}
