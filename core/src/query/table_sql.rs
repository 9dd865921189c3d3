//! What is rendered once for each table, and then only looked up.

use std::sync::Arc;

use crate::{
    entity::{ColumnDef, PerTable, TableDef},
    query::Included,
    sql::{ColumnList, Comparison, Cost, Predicate, Select, Term},
    value::Value,
};

/// The texts of one table.
#[derive(Debug)]
pub(crate) struct TableSql {
    /// All columns, in the table's order; in the place of a deferred one a constant.
    pub(in crate::query) columns: ColumnList,
    /// Selects those of one row by its key, whose values are the arguments.
    pub(in crate::query) by_key: Arc<str>,
    /// What that may cost.
    pub(in crate::query) by_key_cost: Cost,
    /// What reading one row may cost, whatever of it.
    pub(in crate::query) row_cost: Cost,
    /// Selects all columns of one row by its key, the deferred ones too.
    pub(crate) whole_by_key: Arc<str>,
}

static RENDERED: PerTable<TableSql> = PerTable::new();

impl TableSql {
    pub(crate) fn of(table: &'static TableDef) -> &'static Self {
        RENDERED.of(table, Self::render)
    }

    fn render(table: &'static TableDef) -> Self {
        let cost = |is_large| {
            if is_large { Cost::Any } else { Cost::Small }
        };
        let is_found = |column: &ColumnDef| column.large && !column.deferred;
        let columns = Included::NONE.list(table);
        let by_key = by_key(table, columns.clone());
        let whole_by_key = if table.defers() {
            let whole = ColumnList::new(table.columns.iter().map(|column| column.name));
            self::by_key(table, whole)
        } else {
            Arc::clone(&by_key)
        };
        Self {
            columns,
            by_key,
            whole_by_key,
            by_key_cost: cost(table.columns.iter().any(is_found)),
            row_cost: cost(table.has_large_columns()),
        }
    }
}

/// Selects these columns of one row by its key, whose values are the arguments.
pub(in crate::query) fn by_key(table: &'static TableDef, columns: ColumnList) -> Arc<str> {
    let select = Select {
        conditions: (table.key_columns())
            .map(|key| Predicate::Compare {
                term: Term::Column(key.name),
                comparison: Comparison::Equal,
                with: Term::Value(Value::Null),
            })
            .collect(),
        ..Select::of(table.name, Term::All(columns))
    };
    select.into_rows().text
}
