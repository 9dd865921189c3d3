//! What is rendered once for each table, and then only looked up.

use std::{
    collections::BTreeMap,
    ptr,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{
    entity::TableDef,
    sql::{ColumnList, Comparison, Cost, Predicate, Select, Term},
    value::Value,
};

/// The texts of one table.
#[derive(Debug)]
pub(crate) struct TableSql {
    /// All columns, in the table's order.
    pub(in crate::query) columns: ColumnList,
    /// Selects all columns of one row by its key, whose values are the arguments.
    pub(crate) by_key: Arc<str>,
    /// What reading one row by its key may cost.
    pub(in crate::query) row_cost: Cost,
}

/// By the definition's address. Tables are as many as a program declares, so the entries stay for good.
static RENDERED: RwLock<BTreeMap<usize, &'static TableSql>> = RwLock::new(BTreeMap::new());

impl TableSql {
    pub(crate) fn of(table: &'static TableDef) -> &'static Self {
        // Definitions are never freed, so the address says which it is. The compiler may keep one of them twice.
        let address = ptr::from_ref(table).addr();
        let rendered = RENDERED.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rendered.get(&address) {
            return known;
        }
        drop(rendered);
        RENDERED
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(address)
            .or_insert_with(|| Box::leak(Box::new(Self::render(table))))
    }

    fn render(table: &'static TableDef) -> Self {
        let columns = ColumnList::new(table.columns.iter().map(|column| column.name));
        let by_key = Select {
            columns: columns.clone(),
            table: table.name,
            conditions: (table.key_columns())
                .map(|key| Predicate::Compare {
                    term: Term::Column(key.name),
                    comparison: Comparison::Equal,
                    value: Value::Null,
                })
                .collect(),
            order: Vec::new(),
            limit: None,
            offset: 0,
        };
        Self {
            columns,
            by_key: by_key.into_rows().text,
            row_cost: if table.has_large_columns() {
                Cost::Any
            } else {
                Cost::Small
            },
        }
    }
}
