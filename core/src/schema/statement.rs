//! CREATE TABLE and CREATE INDEX.

use std::{borrow::Cow, fmt::Write};

use crate::{
    entity::{ColumnDef, DefaultValue, ForeignKeyAction, IndexDef, IndexedBy, Reference, TableDef},
    error::{Error, ErrorKind, Result},
    sql::{Identifier, Literal},
    value::{KeyOrigin, OneOf, Storage, Value},
};

/// CREATE TABLE, one column a line: the text is kept in the file, and people read it there.
pub(crate) fn create_table(table: &TableDef) -> Result<String> {
    let mut lines = (table.columns.iter().enumerate())
        .map(|(index, column)| column_line(table, index, column))
        .collect::<Result<Vec<_>>>()?;
    if table.key.len() > 1 {
        lines.push(format!("PRIMARY KEY ({})", names(table, table.key)));
    }
    for foreign_key in table.foreign_keys {
        let columns = names(table, foreign_key.columns);
        let references = references(&foreign_key.reference);
        lines.push(format!("FOREIGN KEY ({columns}) {references}"));
    }
    lines.extend(table.checks.iter().map(|check| format!("CHECK ({check})")));
    Ok(format!(
        "CREATE TABLE IF NOT EXISTS {} (\n  {}\n){}",
        Identifier(table.name),
        lines.join(",\n  "),
        match (table.strict, table.without_rowid) {
            (true, true) => " STRICT, WITHOUT ROWID",
            (true, false) => " STRICT",
            (false, true) => " WITHOUT ROWID",
            (false, false) => "",
        }
    ))
}

/// An index that a table asks for.
pub(crate) struct Index {
    pub(crate) name: Cow<'static, str>,
    /// The columns' names, or the expressions, as people read it.
    pub(crate) on: String,
    pub(crate) sql: String,
}

/// The indexes of a table, those of single columns first.
pub(crate) fn indexes(table: &'static TableDef) -> impl Iterator<Item = Index> {
    let single = table.columns.iter().filter(|column| column.index);
    let single = single.map(|column| {
        let name = format!("{}_{}", table.name, column.name);
        index(
            table,
            name.into(),
            &Identifier(column.name).to_string(),
            column.name,
            "",
            None,
        )
    });
    single.chain(
        table
            .indexes
            .iter()
            .map(move |definition| declared(table, definition)),
    )
}

fn declared(table: &'static TableDef, definition: &IndexDef) -> Index {
    let unique = if definition.unique { "UNIQUE " } else { "" };
    let (columns, on, default_name) = match definition.on {
        IndexedBy::Columns(columns) => {
            let plain: Vec<_> = columns
                .iter()
                .map(|column| table.columns[*column].name)
                .collect();
            (
                names(table, columns),
                plain.join(", "),
                format!("{}_{}", table.name, plain.join("_")),
            )
        }
        IndexedBy::Expressions(expressions) => (
            expressions.to_owned(),
            expressions.to_owned(),
            format!("{}_expression", table.name),
        ),
    };
    let name = definition
        .name
        .map_or(Cow::Owned(default_name), Cow::Borrowed);
    index(table, name, &columns, &on, unique, definition.filter)
}

fn index(
    table: &TableDef,
    name: Cow<'static, str>,
    columns: &str,
    on: &str,
    unique: &str,
    filter: Option<&str>,
) -> Index {
    let mut sql = format!(
        "CREATE {unique}INDEX IF NOT EXISTS {} ON {} ({columns})",
        Identifier(&name),
        Identifier(table.name),
    );
    if let Some(filter) = filter {
        sql.push_str(" WHERE ");
        sql.push_str(filter);
    }
    Index {
        name,
        on: on.to_owned(),
        sql,
    }
}

/// The quoted names of some columns.
fn names(table: &TableDef, columns: &[usize]) -> String {
    let names: Vec<_> = (columns.iter())
        .map(|column| Identifier(table.columns[*column].name).to_string())
        .collect();
    names.join(", ")
}

fn column_line(table: &TableDef, index: usize, column: &ColumnDef) -> Result<String> {
    let storage = match column.storage {
        Storage::Any if !table.strict => Storage::Blob,
        storage => storage,
    };
    let mut line = format!("{} {}", Identifier(column.name), storage.as_sql());
    if *table.key == [index] {
        line.push_str(key_constraint(table, column));
    } else if !column.nullable {
        line.push_str(" NOT NULL");
    }
    write_constraints(&mut line, table, column)?;
    Ok(line)
}

/// Only INTEGER PRIMARY KEY is the rowid and never NULL; in other keys SQLite would allow NULL, for history's sake.
fn key_constraint(table: &TableDef, column: &ColumnDef) -> &'static str {
    let is_rowid = table.key_origin == KeyOrigin::Writer
        && column.storage == Storage::Integer
        && !table.without_rowid;
    match (is_rowid, table.autoincrement) {
        (true, true) => " PRIMARY KEY AUTOINCREMENT",
        (true, false) => " PRIMARY KEY",
        (false, _) => " PRIMARY KEY NOT NULL",
    }
}

fn write_constraints(line: &mut String, table: &TableDef, column: &ColumnDef) -> Result<()> {
    // Writing to a String does not fail.
    if let Some(collate) = column.collate {
        let _ = write!(line, " COLLATE {}", Identifier(collate));
    }
    if column.unique {
        line.push_str(" UNIQUE");
    }
    let is_commit_seq = table
        .commit_seq
        .is_some_and(|at| std::ptr::eq(&raw const table.columns[at], column));
    match column.default {
        Some(DefaultValue::Sql(default)) => {
            let _ = write!(line, " DEFAULT ({default})");
        }
        Some(DefaultValue::Value(default)) => {
            let value = default().map_err(|error| {
                Error::new(
                    ErrorKind::Model,
                    format!("the default cannot be stored: {error}"),
                )
                .with_table(table.name)
                .with_column(column.name)
            })?;
            let _ = write!(line, " DEFAULT {}", Literal(&value));
        }
        // Raw SQL need not know it: the writer stamps the row.
        None if is_commit_seq => line.push_str(" DEFAULT 0"),
        None => {}
    }
    if let Some(generated) = column.generated {
        let kind = if generated.stored {
            "STORED"
        } else {
            "VIRTUAL"
        };
        let _ = write!(
            line,
            " GENERATED ALWAYS AS ({}) {kind}",
            generated.expression
        );
    }
    if let Some(check) = column.check {
        let _ = write!(line, " CHECK ({check})");
    }
    write_one_of(line, column);
    if let Some(reference) = &column.references {
        line.push(' ');
        line.push_str(&references(reference));
    }
    Ok(())
}

/// NULL passes a CHECK, so an optional column may still be NULL.
fn write_one_of(line: &mut String, column: &ColumnDef) {
    let values: Vec<_> = match column.one_of {
        OneOf::Any => return,
        OneOf::Texts(texts) => (texts.iter())
            .map(|text| Literal(&Value::Text((*text).to_owned())).to_string())
            .collect(),
        OneOf::Integers(integers) => integers.iter().map(i64::to_string).collect(),
    };
    let _ = write!(
        line,
        " CHECK ({} IN ({}))",
        Identifier(column.name),
        values.join(", ")
    );
}

fn references(reference: &Reference) -> String {
    let table = (reference.table)();
    let mut text = format!(
        "REFERENCES {} ({})",
        Identifier(table.name),
        names(table, table.key)
    );
    for (event, action) in [
        ("DELETE", reference.on_delete),
        ("UPDATE", reference.on_update),
    ] {
        if action != ForeignKeyAction::NoAction {
            let _ = write!(text, " ON {event} {}", action.as_sql());
        }
    }
    text
}
