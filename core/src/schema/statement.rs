//! CREATE TABLE and CREATE INDEX.

use std::fmt::{self, Write};

use crate::{
    entity::{ColumnDef, ForeignKeyAction, Reference, TableDef},
    sql::Identifier,
    value::{KeyOrigin, Storage},
};

/// CREATE TABLE, one column a line: the text is kept in the file, and people read it there.
pub(crate) fn create_table(table: &TableDef) -> String {
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| column_line(table, index, column))
        .collect();
    lines.extend(table.checks.iter().map(|check| format!("CHECK ({check})")));
    format!(
        "CREATE TABLE IF NOT EXISTS {} (\n  {}\n){}",
        Identifier(table.name),
        lines.join(",\n  "),
        if table.strict { " STRICT" } else { "" }
    )
}

/// CREATE INDEX for each column that asks for it.
pub(crate) fn create_indexes(table: &TableDef) -> impl Iterator<Item = String> {
    table
        .columns
        .iter()
        .filter(|column| column.index)
        .map(|column| {
            format!(
                "CREATE INDEX IF NOT EXISTS {} ON {} ({})",
                Identifier(&index_name(table, column)),
                Identifier(table.name),
                Identifier(column.name)
            )
        })
}

/// `orders_customer_id`
pub(crate) fn index_name(table: &TableDef, column: &ColumnDef) -> String {
    format!("{}_{}", table.name, column.name)
}

fn column_line(table: &TableDef, index: usize, column: &ColumnDef) -> String {
    let mut line = format!("{} {}", Identifier(column.name), column.storage.as_sql());
    if index == table.key {
        line.push_str(key_constraint(table, column));
    } else if !column.nullable {
        line.push_str(" NOT NULL");
    }
    // Writing to a String does not fail.
    let _ = write_constraints(&mut line, column);
    line
}

/// Only INTEGER PRIMARY KEY is the rowid and never NULL; in other keys SQLite would allow NULL, for history's sake.
fn key_constraint(table: &TableDef, column: &ColumnDef) -> &'static str {
    if table.key_origin == KeyOrigin::Writer && column.storage == Storage::Integer {
        " PRIMARY KEY"
    } else {
        " PRIMARY KEY NOT NULL"
    }
}

fn write_constraints(line: &mut String, column: &ColumnDef) -> fmt::Result {
    if column.unique {
        line.push_str(" UNIQUE");
    }
    if let Some(default) = column.default {
        write!(line, " DEFAULT ({default})")?;
    }
    if let Some(check) = column.check {
        write!(line, " CHECK ({check})")?;
    }
    if let Some(reference) = &column.references {
        write_reference(line, reference)?;
    }
    Ok(())
}

fn write_reference(line: &mut String, reference: &Reference) -> fmt::Result {
    let table = (reference.table)();
    write!(
        line,
        " REFERENCES {} ({})",
        Identifier(table.name),
        Identifier(table.key_column().name)
    )?;
    for (event, action) in [
        ("DELETE", reference.on_delete),
        ("UPDATE", reference.on_update),
    ] {
        if action != ForeignKeyAction::NoAction {
            write!(line, " ON {event} {}", action.as_sql())?;
        }
    }
    Ok(())
}
