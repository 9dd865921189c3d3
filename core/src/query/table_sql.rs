//! What is rendered once for each table, and then only looked up.

use std::sync::Arc;

use crate::{
    entity::{PerTable, TableDef},
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

static RENDERED: PerTable<TableSql> = PerTable::new();

impl TableSql {
    pub(crate) fn of(table: &'static TableDef) -> &'static Self {
        RENDERED.of(table, Self::render)
    }

    fn render(table: &'static TableDef) -> Self {
        let columns = ColumnList::new(table.columns.iter().map(|column| column.name));
        let by_key = Select {
            conditions: (table.key_columns())
                .map(|key| Predicate::Compare {
                    term: Term::Column(key.name),
                    comparison: Comparison::Equal,
                    with: Term::Value(Value::Null),
                })
                .collect(),
            ..Select::of(table.name, Term::All(columns.clone()))
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
