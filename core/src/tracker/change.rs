//! What changed, as detection finds it and the flush plan takes it.

use crate::{entity::TableDef, tracker::Place, value::Value};

/// Everything that a save has to write, in the order in which it was touched.
#[derive(Debug)]
pub(crate) struct Changes(pub(crate) Vec<Change>);

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One entity that a save has to write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) table: &'static TableDef,
    pub(crate) place: Place,
    pub(crate) changed: Changed,
}

/// How an entity differs from the database.
#[derive(Debug, PartialEq)]
pub(crate) enum Changed {
    /// It is new; the values of all columns.
    Inserted { values: Vec<Value> },
    /// Some columns differ from the row with this key and version.
    Updated {
        key: Vec<Value>,
        version: Option<i64>,
        columns: Vec<ColumnChange>,
        /// The sets of unique columns in which it changed.
        unique: Vec<UniqueChange>,
        /// The rows that it no longer refers to, and with which it would have been deleted.
        left: Vec<RowKey>,
        /// The rows to which it refers now, and did not before.
        joined: Vec<RowKey>,
    },
    /// It was removed; the values of all columns as they were read.
    Deleted { values: Vec<Value> },
}

/// A row, by its key.
#[derive(Debug, Clone)]
pub(crate) struct RowKey {
    pub(crate) table: &'static TableDef,
    pub(crate) key: Vec<Value>,
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        self.table.name == other.table.name && self.key == other.key
    }
}

/// A column that differs.
#[derive(Debug, PartialEq)]
pub(crate) struct ColumnChange {
    pub(crate) column: usize,
    pub(crate) value: Value,
}

/// A set of unique columns that differs: others may take the values that it gives up once this change is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UniqueChange {
    pub(crate) columns: &'static [usize],
    pub(crate) freed: Vec<Value>,
    pub(crate) taken: Vec<Value>,
}
