//! The statements of each table, made once a process.

use std::{
    collections::HashMap,
    ptr,
    sync::{Arc, LazyLock},
};

use parking_lot::RwLock;

use crate::{entity::TableDef, sql::dml};

/// How many sets of columns one table keeps an UPDATE for; the rest is made each time.
const KEPT_UPDATES: usize = 256;

static STATEMENTS: LazyLock<RwLock<HashMap<usize, Arc<Statements>>>> =
    LazyLock::new(RwLock::default);

/// The statements of one table.
#[derive(Debug)]
pub(crate) struct Statements {
    table: &'static TableDef,
    /// Inserts a row: the values of all columns.
    pub(crate) insert: Arc<str>,
    /// Deletes a row: its key, and its version if it has one.
    pub(crate) delete: Arc<str>,
    /// Reads all columns of a row: its key.
    pub(crate) by_key: Arc<str>,
    updates: RwLock<HashMap<Box<[usize]>, Arc<str>>>,
}

/// The statements of a table.
pub(crate) fn of(table: &'static TableDef) -> Arc<Statements> {
    // Definitions are never freed, so the address says which it is. The compiler may keep one of them twice.
    let address = ptr::from_ref(table).addr();
    if let Some(known) = STATEMENTS.read().get(&address) {
        return Arc::clone(known);
    }
    let made = Arc::new(Statements::new(table));
    Arc::clone(STATEMENTS.write().entry(address).or_insert(made))
}

impl Statements {
    fn new(table: &'static TableDef) -> Self {
        let columns: Vec<_> = table.columns.iter().map(|column| column.name).collect();
        let key = table.key_column().name;
        Self {
            table,
            insert: dml::insert(table.name, &columns),
            delete: dml::delete(table.name, &filter(table)),
            by_key: dml::select(table.name, &columns, &[key]),
            updates: RwLock::default(),
        }
    }

    /// Updates these columns of a row: their values, the next version if there is one, the key, and the version
    /// that was read.
    pub(crate) fn update(&self, columns: &[usize]) -> Arc<str> {
        if let Some(known) = self.updates.read().get(columns) {
            return Arc::clone(known);
        }
        let table = self.table;
        let set: Vec<_> = (columns.iter().copied())
            .chain(table.version)
            .map(|column| table.columns[column].name)
            .collect();
        let text = dml::update(table.name, &set, &filter(table));
        let mut updates = self.updates.write();
        if updates.len() < KEPT_UPDATES {
            updates.insert(columns.into(), Arc::clone(&text));
        }
        text
    }
}

fn filter(table: &'static TableDef) -> Vec<&'static str> {
    [Some(table.key), table.version]
        .into_iter()
        .flatten()
        .map(|column| table.columns[column].name)
        .collect()
}
