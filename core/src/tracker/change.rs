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
        key: Value,
        version: Option<i64>,
        columns: Vec<ColumnChange>,
    },
    /// It was removed; the values of all columns as they were read.
    Deleted { values: Vec<Value> },
}

/// A column that differs.
#[derive(Debug, PartialEq)]
pub(crate) struct ColumnChange {
    pub(crate) column: usize,
    pub(crate) value: Value,
    /// Of a unique column, the value that others may take once this change is written.
    pub(crate) freed: Option<Value>,
}
