//! What is rendered once for each entity, and then only looked up.

use std::{any::TypeId, collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;

use crate::{
    entity::Entity,
    sql::{ColumnList, Comparison, Cost, Predicate, Select},
    value::Value,
};

/// The texts of one entity.
#[derive(Debug)]
pub(in crate::query) struct EntitySql {
    /// All columns, in the table's order.
    pub(in crate::query) columns: ColumnList,
    /// Selects one row by its key, which is the only argument.
    pub(in crate::query) by_key: Arc<str>,
    /// What reading one row by its key may cost.
    pub(in crate::query) row_cost: Cost,
}

/// Entity types are as many as a program declares, so the entries stay for good.
static RENDERED: RwLock<BTreeMap<TypeId, &'static EntitySql>> = RwLock::new(BTreeMap::new());

impl EntitySql {
    pub(in crate::query) fn of<E: Entity>() -> &'static Self {
        let entity = TypeId::of::<E>();
        if let Some(known) = RENDERED.read().get(&entity) {
            return known;
        }
        RENDERED
            .write()
            .entry(entity)
            .or_insert_with(|| Box::leak(Box::new(Self::render::<E>())))
    }

    fn render<E: Entity>() -> Self {
        let table = E::TABLE;
        let columns = ColumnList::new(table.columns.iter().map(|column| column.name));
        let by_key = Select {
            columns: columns.clone(),
            table: table.name,
            conditions: vec![Predicate::Compare {
                column: table.key_column().name,
                comparison: Comparison::Equal,
                value: Value::Null,
            }],
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
