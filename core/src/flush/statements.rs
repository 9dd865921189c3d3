//! The statements of each table, made once a process.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{
    entity::{PerTable, TableDef},
    query::TableSql,
    sql::dml,
};

/// How many sets of columns one table keeps an UPDATE for; the rest is made each time.
const KEPT_UPDATES: usize = 256;

static STATEMENTS: PerTable<Statements> = PerTable::new();

/// The statements of one table.
#[derive(Debug)]
pub(crate) struct Statements {
    table: &'static TableDef,
    /// Inserts a row: the values of all columns that are written.
    pub(crate) insert: Arc<str>,
    /// Whether inserts and updates return what the database computed.
    pub(crate) returns: bool,
    /// Deletes a row: its key, and its version if it has one.
    pub(crate) delete: Arc<str>,
    /// Reads all columns of a row: its key.
    pub(crate) by_key: Arc<str>,
    updates: RwLock<HashMap<Box<[usize]>, Arc<str>>>,
}

/// The statements of a table.
pub(crate) fn of(table: &'static TableDef) -> &'static Statements {
    STATEMENTS.of(table, Statements::new)
}

impl Statements {
    fn new(table: &'static TableDef) -> Self {
        let columns: Vec<_> = (table.written_columns())
            .map(|column| table.columns[column].name)
            .collect();
        let computed = computed(table);
        Self {
            table,
            returns: !computed.is_empty(),
            insert: dml::insert(table.name, &columns, &computed),
            delete: dml::delete(table.name, &filter(table)),
            by_key: Arc::clone(&TableSql::of(table).whole_by_key),
            updates: RwLock::default(),
        }
    }

    /// Updates these columns of a row: their values, the next version if there is one, the key, and the version
    /// that was read.
    pub(crate) fn update(&self, columns: &[usize]) -> Arc<str> {
        let updates = self.updates.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = updates.get(columns) {
            return Arc::clone(known);
        }
        drop(updates);
        let table = self.table;
        let set: Vec<_> = (columns.iter().copied())
            .chain(table.version)
            .map(|column| table.columns[column].name)
            .collect();
        let text = dml::update(table.name, &set, &filter(table), &computed(table));
        let mut updates = self.updates.write().unwrap_or_else(PoisonError::into_inner);
        if updates.len() < KEPT_UPDATES {
            updates.insert(columns.into(), Arc::clone(&text));
        }
        text
    }
}

fn filter(table: &'static TableDef) -> Vec<&'static str> {
    (table.key.iter().copied())
        .chain(table.version)
        .map(|column| table.columns[column].name)
        .collect()
}

fn computed(table: &'static TableDef) -> Vec<&'static str> {
    (table.computed_columns())
        .map(|column| table.columns[column].name)
        .collect()
}
