//! The tables of a database, as SQLite describes them.

use rusqlite::{Connection, Result, types::Type};

use crate::entities::{choices::Choices, definition};

/// A table, or something like one.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) strict: bool,
    pub(crate) without_rowid: bool,
    pub(crate) autoincrement: bool,
    /// Whether a constraint says what happens on a conflict, such as REPLACE.
    pub(crate) on_conflict: bool,
    pub(crate) columns: Vec<Column>,
    /// CHECKs of the whole row.
    pub(crate) checks: Vec<String>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) foreign_keys: Vec<ForeignKey>,
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The declared type, as it was written.
    pub(crate) declared: String,
    pub(crate) affinity: Affinity,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
    /// Its place in the primary key, from 1 on; 0 if it is not in it.
    pub(crate) key: u32,
    pub(crate) generated: Option<Generated>,
    pub(crate) collate: Option<String>,
    pub(crate) checks: Vec<String>,
}

/// What the database computes.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) expression: String,
    pub(crate) stored: bool,
}

/// What SQLite does to values on their way into a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    Integer,
    Text,
    Real,
    Numeric,
    /// Nothing.
    None,
}

/// An index, or the one of a UNIQUE or PRIMARY KEY.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) unique: bool,
    pub(crate) origin: Origin,
    pub(crate) columns: Vec<IndexColumn>,
    /// What it is on, as SQL; empty for one that a constraint made.
    pub(crate) on: String,
    pub(crate) filter: Option<String>,
}

/// What an index was made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    CreateIndex,
    Unique,
    PrimaryKey,
}

#[derive(Debug)]
pub(crate) struct IndexColumn {
    /// Its position in the table; `None` for an expression.
    pub(crate) column: Option<usize>,
    pub(crate) descending: bool,
    /// Whether it is compared as the column by itself is.
    pub(crate) own_collation: bool,
}

#[derive(Debug)]
pub(crate) struct ForeignKey {
    /// The table referred to, as it is written there.
    pub(crate) table: String,
    /// The names of the columns that refer.
    pub(crate) from: Vec<String>,
    /// The names of those referred to; empty if it is the primary key.
    pub(crate) to: Vec<String>,
    pub(crate) on_delete: String,
    pub(crate) on_update: String,
}

/// What is listed beside tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Table,
    View,
    Virtual,
    Shadow,
}

/// What `PRAGMA table_list` tells.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) class: Class,
    strict: bool,
    without_rowid: bool,
}

/// All that has a name of its own in the file, in the order in which it was made.
pub(crate) fn list(connection: &Connection) -> Result<Vec<Listed>> {
    let mut statement = connection.prepare(
        "SELECT l.name, l.type, l.strict, l.wr FROM pragma_table_list l
         LEFT JOIN main.sqlite_schema s ON s.type IN ('table', 'view') AND s.name = l.name
         WHERE l.schema = 'main' AND l.name <> 'sqlite_schema' ORDER BY s.rowid, l.name",
    )?;
    let rows = statement.query_map([], |row| {
        let class: String = row.get(1)?;
        Ok(Listed {
            name: row.get(0)?,
            class: match class.as_str() {
                "view" => Class::View,
                "virtual" => Class::Virtual,
                "shadow" => Class::Shadow,
                _ => Class::Table,
            },
            strict: row.get(2)?,
            without_rowid: row.get(3)?,
        })
    })?;
    rows.collect()
}

impl Table {
    /// Reads what the pragmas and the definition say of it.
    pub(crate) fn read(connection: &Connection, listed: &Listed) -> Result<Self> {
        let sql: String = connection.query_row(
            "SELECT coalesce(sql, '') FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
            [&listed.name],
            |row| row.get(0),
        )?;
        let mut columns = columns(connection, listed)?;
        let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut text = definition::table(&sql, &names);
        for column in &mut columns {
            let read = text.columns.iter_mut();
            let mut read = read.filter(|text| text.name.eq_ignore_ascii_case(&column.name));
            let Some(text) = read.next() else { continue };
            column.checks = std::mem::take(&mut text.checks);
            column.collate = text.collate.take();
            if let (Some(generated), Some(expression)) =
                (&mut column.generated, text.generated.take())
            {
                generated.expression = expression;
            }
        }
        text.checks.retain(|check| {
            let lists = |column: &Column| Choices::parse(check, &column.name).is_some();
            let listed = columns.iter_mut().find(|column| lists(column));
            let is_of_row = listed.is_none();
            if let Some(column) = listed {
                column.checks.push(check.clone());
            }
            is_of_row
        });
        Ok(Self {
            name: listed.name.clone(),
            strict: listed.strict,
            without_rowid: listed.without_rowid,
            autoincrement: text.autoincrement,
            on_conflict: text.on_conflict,
            indexes: indexes(connection, listed, &columns)?,
            foreign_keys: foreign_keys(connection, listed)?,
            checks: text.checks,
            columns,
        })
    }

    /// The position of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        (self.columns.iter()).position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Adds the rowid as a last column, under the first of its names that no other column has; its position.
    pub(crate) fn push_rowid(&mut self) -> Option<usize> {
        if self.without_rowid {
            return None;
        }
        let mut names = ["rowid", "_rowid_", "oid"].into_iter();
        let name = names.find(|name| self.column(name).is_none())?;
        self.columns.push(Column {
            name: name.to_owned(),
            declared: "INTEGER".to_owned(),
            affinity: Affinity::Integer,
            not_null: true,
            default: None,
            key: 0,
            generated: None,
            collate: None,
            checks: Vec::new(),
        });
        Some(self.columns.len() - 1)
    }

    /// The columns of the primary key, in its order.
    pub(crate) fn primary_key(&self) -> Vec<usize> {
        let mut key: Vec<_> = (0..self.columns.len())
            .filter(|&column| self.columns[column].key > 0)
            .collect();
        key.sort_by_key(|&column| self.columns[column].key);
        key
    }

    /// Whether the primary key is the rowid: then SQLite keeps no index for it, and no NULL in it.
    pub(crate) fn key_is_rowid(&self) -> bool {
        let mut indexes = self.indexes.iter();
        !self.without_rowid
            && self.primary_key().len() == 1
            && !indexes.any(|index| index.origin == Origin::PrimaryKey)
    }
}

fn columns(connection: &Connection, listed: &Listed) -> Result<Vec<Column>> {
    let mut statement = connection.prepare(
        "SELECT name, type, \"notnull\", dflt_value, pk, hidden
         FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid",
    )?;
    let rows = statement.query_map([&listed.name], |row| {
        let (declared, hidden): (String, i64) = (row.get(1)?, row.get(5)?);
        let default: Option<String> = row.get(3)?;
        let default = default.map(|sql| definition::default(&sql));
        Ok(Column {
            name: row.get(0)?,
            affinity: Affinity::of(&declared, listed.strict),
            declared,
            not_null: row.get(2)?,
            default: default.filter(|sql| !sql.eq_ignore_ascii_case("NULL")),
            key: row.get(4)?,
            generated: matches!(hidden, 2 | 3).then(|| Generated {
                expression: String::new(),
                stored: hidden == 3,
            }),
            collate: None,
            checks: Vec::new(),
        })
    })?;
    rows.collect()
}

fn indexes(connection: &Connection, listed: &Listed, columns: &[Column]) -> Result<Vec<Index>> {
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut statement = connection.prepare(
        "SELECT l.name, l.\"unique\", l.origin, coalesce(s.sql, '')
         FROM pragma_index_list(?) l
         LEFT JOIN main.sqlite_schema s ON s.type = 'index' AND s.name = l.name
         ORDER BY s.rowid, l.seq DESC",
    )?;
    let rows = statement.query_map([&listed.name], |row| {
        let (origin, sql): (String, String) = (row.get(2)?, row.get(3)?);
        let text = definition::index(&sql, &names).unwrap_or_default();
        Ok(Index {
            name: row.get(0)?,
            unique: row.get(1)?,
            origin: match origin.as_str() {
                "pk" => Origin::PrimaryKey,
                "u" => Origin::Unique,
                _ => Origin::CreateIndex,
            },
            columns: Vec::new(),
            on: text.on,
            filter: text.filter,
        })
    })?;
    let mut indexes: Vec<_> = rows.collect::<Result<_>>()?;
    for index in &mut indexes {
        index.columns = index_columns(connection, &index.name, columns)?;
    }
    Ok(indexes)
}

fn index_columns(
    connection: &Connection,
    index: &str,
    columns: &[Column],
) -> Result<Vec<IndexColumn>> {
    let mut statement = connection.prepare(
        "SELECT name, \"desc\", coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno",
    )?;
    let rows = statement.query_map([index], |row| {
        let (name, descending): (Option<String>, bool) = (row.get(0)?, row.get(1)?);
        let collate: String = row.get(2)?;
        let column = name.and_then(|name| columns.iter().position(|column| column.name == name));
        let own = column.and_then(|column| columns[column].collate.as_deref());
        let own = own.unwrap_or("BINARY");
        Ok(IndexColumn {
            column,
            descending,
            own_collation: own.eq_ignore_ascii_case(&collate),
        })
    })?;
    rows.collect()
}

fn foreign_keys(connection: &Connection, listed: &Listed) -> Result<Vec<ForeignKey>> {
    let mut statement = connection.prepare(
        "SELECT id, \"table\", \"from\", \"to\", on_delete, on_update
         FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq",
    )?;
    let mut rows = statement.query([&listed.name])?;
    let mut found: Vec<(i64, ForeignKey)> = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        if found.last().is_none_or(|(last, _)| *last != id) {
            let key = ForeignKey {
                table: row.get(1)?,
                from: Vec::new(),
                to: Vec::new(),
                on_delete: row.get(4)?,
                on_update: row.get(5)?,
            };
            found.push((id, key));
        }
        if let Some((_, key)) = found.last_mut() {
            key.from.push(row.get(2)?);
            if row.get_ref(3)?.data_type() != Type::Null {
                key.to.push(row.get(3)?);
            }
        }
    }
    Ok(found.into_iter().map(|(_, key)| key).collect())
}

impl Affinity {
    /// By the rules of SQLite, in their order.
    fn of(declared: &str, strict: bool) -> Self {
        let declared = declared.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        if has(&["INT"]) {
            Self::Integer
        } else if has(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if declared.is_empty() || has(&["BLOB"]) || (strict && declared == "ANY") {
            Self::None
        } else if has(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    /// Whether numbers are made of text that looks like one, and integers of numbers that are whole.
    pub(crate) const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Real | Self::Numeric)
    }
}
