//! Indexes as attributes, of fields and of the struct.

use std::collections::HashSet;

use crate::entities::{
    catalog::{Index, Origin},
    model::Entity,
    notes::{Notes, shown},
    text::literal,
};

/// What indexes an entity has, as attributes.
#[derive(Debug)]
pub(crate) struct Indexes {
    /// Of each column: `unique`, or `index(...)`.
    pub(crate) of_column: Vec<Option<String>>,
    /// Of the struct.
    pub(crate) of_struct: Vec<String>,
}

/// The names that indexes and tables of the file have: an index that has none must not get one of them.
#[derive(Debug, Default)]
pub(crate) struct IndexNames(HashSet<String>);

impl IndexNames {
    pub(crate) fn add(&mut self, name: &str) {
        self.0.insert(name.to_ascii_lowercase());
    }

    /// A name like this one that is free.
    fn free(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        while !self.0.insert(free.to_ascii_lowercase()) {
            free.push_str("_unique");
        }
        free
    }
}

impl Indexes {
    pub(crate) fn of(entity: &Entity, names: &mut IndexNames, notes: &mut Notes) -> Self {
        let mut indexes = Self {
            of_column: vec![None; entity.draft.table.columns.len()],
            of_struct: Vec::new(),
        };
        let table = &entity.draft.table;
        // A column that is unique takes no index of its own beside it.
        for origin in [Origin::Unique, Origin::PrimaryKey, Origin::CreateIndex] {
            for index in table.indexes.iter().filter(|index| index.origin == origin) {
                indexes.add(entity, index, names, notes);
            }
        }
        indexes
    }

    fn add(&mut self, entity: &Entity, index: &Index, names: &mut IndexNames, notes: &mut Notes) {
        let draft = &entity.draft;
        let columns = index.plain();
        let is_key = index.unique && index.filter.is_none() && columns.as_ref() == Some(&draft.key);
        if is_key {
            return;
        }
        let is_left_out = |column: usize| draft.columns[column].rust_type.is_none();
        let mut positions = index.columns.iter().filter_map(|column| column.column);
        let why = if positions.any(is_left_out) {
            "a column of it is, too"
        } else if index.name.trim().is_empty() {
            "its name is empty"
        } else if columns.is_none() && index.on.is_empty() {
            "it is a UNIQUE by another collation than that of the column"
        } else {
            ""
        };
        if !why.is_empty() {
            let note = format!("the index {} is left out: {why}", shown(&index.name));
            notes.add(&draft.table.name, &note);
            return;
        }
        match columns {
            Some(columns) => self.add_plain(entity, index, &columns, names),
            None => self.of_struct.push(format!(
                "index({})",
                listed(
                    Some(format!("on = {}", literal(&index.on))),
                    Some(&index.name),
                    index
                )
            )),
        }
    }

    fn add_plain(
        &mut self,
        entity: &Entity,
        index: &Index,
        columns: &[usize],
        names: &mut IndexNames,
    ) {
        let table = &entity.draft.table;
        let is_constraint = index.origin != Origin::CreateIndex;
        let single = match columns {
            [column] if entity.draft.key != [*column] => Some(*column),
            _ => None,
        };
        let single = single.filter(|&column| self.of_column[column].is_none());
        if let (Some(column), true) = (single, is_constraint) {
            self.of_column[column] = Some("unique".to_owned());
            return;
        }
        let parts: Vec<_> = std::iter::once(&table.name)
            .chain(columns.iter().map(|&column| &table.columns[column].name))
            .map(String::as_str)
            .collect();
        let default = parts.join("_");
        let name = if is_constraint {
            names.free(&default)
        } else {
            index.name.clone()
        };
        let name = Some(name.as_str()).filter(|&name| name != default);
        if let Some(column) = single {
            let inside = listed(None, name, index);
            self.of_column[column] = Some(if inside.is_empty() {
                "index".to_owned()
            } else {
                format!("index({inside})")
            });
        } else {
            let columns = format!("columns({})", entity.written_fields(columns));
            let inside = listed(Some(columns), name, index);
            self.of_struct.push(format!("index({inside})"));
        }
    }
}

/// What stands in the parentheses of `index(...)`.
fn listed(on: Option<String>, name: Option<&str>, index: &Index) -> String {
    let items = [
        on,
        name.map(|name| format!("name = {}", literal(name))),
        index.unique.then(|| "unique".to_owned()),
        (index.filter.as_deref()).map(|filter| format!("where = {}", literal(filter))),
    ];
    items.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
