//! Table definitions as SQL, and the order in which tables depend on each other.

mod rank;
mod statement;
mod tombstones;

pub(crate) use self::{
    rank::{Rank, Ranks},
    tombstones::{TOMBSTONE_SEQ, deleted_trigger_of, rekeyed_trigger_of},
};

use std::collections::{HashMap, HashSet};

use crate::{
    entity::TableDef,
    error::{Error, ErrorKind, Result},
    schema::{
        statement::{create_table, indexes},
        tombstones::create_tombstones,
    },
};

/// Beginnings of names that are not the application's: SQLite's own tables, and this library's.
const RESERVED_PREFIXES: [&str; 2] = ["sqlite_", "anabranch_"];

/// The statements that create these tables and their indexes, as far as they do not exist; tables that are
/// referred to come first.
///
/// An entity may be listed more than once. A reference to a table that is not listed is kept: the table may exist
/// already, and SQLite looks for it only when rows are written.
///
/// # Errors
///
/// Kind [`ErrorKind::Model`]: two entities are for one table, two indexes would have one name, or a name is empty
/// or reserved.
pub fn create_tables(tables: &[&'static TableDef]) -> Result<Vec<String>> {
    check_tables(tables)?;
    let ordered = in_order(tables);
    check_index_names(&ordered)?;
    let mut statements = Vec::new();
    for table in ordered {
        statements.push(create_table(table)?);
        statements.extend(indexes(table).map(|index| index.sql));
        if table.tombstones {
            statements.extend(create_tombstones(table));
        }
    }
    Ok(statements)
}

/// Each table once, those referred to first, and otherwise as listed.
fn in_order(tables: &[&'static TableDef]) -> Vec<&'static TableDef> {
    let mut ranks = Ranks::default();
    let mut seen = HashSet::new();
    let mut ordered: Vec<_> = tables
        .iter()
        .copied()
        .filter(|table| seen.insert(folded(table.name)))
        .collect();
    ordered.sort_by_key(|table| ranks.of(table).level);
    ordered
}

/// SQLite compares names without regard to ASCII case; so does everything here.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn check_tables(tables: &[&'static TableDef]) -> Result<()> {
    let mut seen: HashMap<String, &'static TableDef> = HashMap::new();
    for &table in tables {
        check_names(table)?;
        if let Some(other) = seen.insert(folded(table.name), table)
            && !is_same(other, table)
        {
            return Err(model(
                table,
                format!(
                    "two entities are for this table: {} and {}; give one of them another name with #[entity(table = ...)]",
                    other.entity, table.entity
                ),
            ));
        }
    }
    Ok(())
}

/// Whether both are the definition of one entity: a constant has no address of its own, so what it says counts.
fn is_same(one: &'static TableDef, other: &'static TableDef) -> bool {
    std::ptr::eq(one, other)
        || (one.entity == other.entity
            && create_table(one).ok() == create_table(other).ok()
            && indexes(one)
                .map(|index| index.sql)
                .eq(indexes(other).map(|index| index.sql)))
}

fn check_names(table: &TableDef) -> Result<()> {
    if table.name.is_empty() {
        return Err(model(
            table,
            format!("the table of {} has an empty name", table.entity),
        ));
    }
    if table.columns.iter().any(|column| column.name.is_empty()) {
        return Err(model(table, "a column has an empty name"));
    }
    for prefix in RESERVED_PREFIXES {
        if folded(table.name).starts_with(prefix) {
            return Err(model(
                table,
                format!("names that begin with {prefix} are reserved"),
            ));
        }
    }
    Ok(())
}

/// Tables and indexes share their names, and IF NOT EXISTS would pass over the second one without a word.
fn check_index_names(tables: &[&'static TableDef]) -> Result<()> {
    let mut taken: HashMap<String, String> = tables
        .iter()
        .map(|table| (folded(table.name), format!("the table {}", table.name)))
        .collect();
    for table in tables {
        for index in indexes(table) {
            let this = format!("the index on {}.{}", table.name, index.on);
            if let Some(other) = taken.insert(folded(&index.name), this) {
                return Err(model(
                    table,
                    format!(
                        "the index on {} would be named {}, as {other} is",
                        index.on, index.name
                    ),
                ));
            }
        }
    }
    Ok(())
}

fn model(table: &TableDef, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    let error = Error::new(ErrorKind::Model, message);
    if table.name.is_empty() {
        error
    } else {
        error.with_table(table.name)
    }
}

#[cfg(test)]
mod tests;
