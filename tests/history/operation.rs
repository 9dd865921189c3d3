//! One statement with its arguments, and what a client saw of it: here, and when plain SQLite runs it again.

use std::fmt;

use anabranch::prelude::*;
use futures_util::TryStreamExt;
use rusqlite::{Connection, ffi, types::ValueRef};
use sqlx::{Either, Executor, Row, TypeInfo, ValueRef as _, sqlite::SqliteRow};

/// A value as a client sees it.
#[derive(Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// What the client looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    /// All rows.
    Rows,
    /// The first row; nobody asks for the next.
    FirstRow,
    /// How many rows were written.
    Changed,
    /// The key that SQLite chose.
    Rowid,
}

/// A statement, its arguments, and what is looked at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    pub(crate) sql: &'static str,
    pub(crate) args: Vec<Cell>,
    pub(crate) sees: Sees,
    /// Not a plain SELECT.
    pub(crate) writes: bool,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Rows(Vec<Vec<Cell>>),
    Changed(u64),
    Rowid(i64),
    /// By a constraint, which says so. The work goes on, unless the refusal ended the transaction.
    Refused(ErrorKind, String),
}

/// Where a live statement runs.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    Session(&'a mut Session),
    Transaction(&'a mut Transaction),
}

impl Place<'_> {
    pub(crate) fn context(&mut self) -> Context<'_> {
        match self {
            Self::Session(session) => session.context(),
            Self::Transaction(transaction) => transaction.context(),
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Integer(integer) => integer.fmt(f),
            Self::Real(real) => real.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<i64> for Cell {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl Operation {
    pub(crate) const fn read(sql: &'static str, args: Vec<Cell>) -> Self {
        Self {
            sql,
            args,
            sees: Sees::Rows,
            writes: false,
        }
    }

    pub(crate) const fn write(sql: &'static str, args: Vec<Cell>) -> Self {
        Self {
            sql,
            args,
            sees: Sees::Changed,
            writes: true,
        }
    }

    pub(crate) const fn seeing(mut self, sees: Sees) -> Self {
        self.sees = sees;
        self
    }

    /// Runs it for a client.
    pub(crate) async fn run(&self, place: &mut Place<'_>) -> Result<Seen, Error> {
        let error = match self.try_run(place).await {
            Ok(seen) => return Ok(seen),
            Err(error) => error,
        };
        let said = error.as_database_error().map(|error| error.message());
        let said = said.unwrap_or_default().to_owned();
        let error = Error::from(error);
        if is_constraint(error.kind()) {
            Ok(Seen::Refused(error.kind(), said))
        } else {
            Err(error)
        }
    }

    async fn try_run(&self, place: &mut Place<'_>) -> Result<Seen, sqlx::Error> {
        let query = self
            .args
            .iter()
            .fold(sqlx::query(self.sql), |query, arg| match arg {
                Cell::Null => query.bind(None::<i64>),
                Cell::Integer(integer) => query.bind(*integer),
                Cell::Real(real) => query.bind(*real),
                Cell::Text(text) => query.bind(text.clone()),
            });
        if self.sees == Sees::FirstRow {
            let row = match place {
                Place::Session(session) => session.fetch_optional(query).await?,
                Place::Transaction(transaction) => transaction.fetch_optional(query).await?,
            };
            return Ok(Seen::Rows(row.iter().map(cells).collect()));
        }
        let mut steps = match place {
            Place::Session(session) => session.fetch_many(query),
            Place::Transaction(transaction) => transaction.fetch_many(query),
        };
        let (mut rows, mut changed, mut rowid) = (Vec::new(), 0, 0);
        while let Some(step) = steps.try_next().await? {
            match step {
                Either::Left(done) => {
                    changed = done.rows_affected();
                    rowid = done.last_insert_rowid();
                }
                Either::Right(row) => rows.push(cells(&row)),
            }
        }
        Ok(match self.sees {
            Sees::Rows | Sees::FirstRow => Seen::Rows(rows),
            Sees::Changed => Seen::Changed(changed),
            Sees::Rowid => Seen::Rowid(rowid),
        })
    }

    /// Runs it again on plain SQLite.
    pub(crate) fn replay(&self, connection: &Connection) -> Seen {
        match self.try_replay(connection) {
            Ok(seen) => seen,
            Err(error) => Seen::Refused(kind_of(&error), error.to_string()),
        }
    }

    fn try_replay(&self, connection: &Connection) -> rusqlite::Result<Seen> {
        let mut statement = connection.prepare_cached(self.sql)?;
        for (place, arg) in (1..).zip(&self.args) {
            match arg {
                Cell::Null => statement.raw_bind_parameter(place, rusqlite::types::Null)?,
                Cell::Integer(integer) => statement.raw_bind_parameter(place, integer)?,
                Cell::Real(real) => statement.raw_bind_parameter(place, real)?,
                Cell::Text(text) => statement.raw_bind_parameter(place, text)?,
            }
        }
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut seen = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| Ok(plain_cell(row.get_ref(column)?)));
            seen.push(values.collect::<rusqlite::Result<_>>()?);
            if self.sees == Sees::FirstRow {
                break;
            }
        }
        Ok(match self.sees {
            Sees::Rows | Sees::FirstRow => Seen::Rows(seen),
            Sees::Changed => Seen::Changed(connection.changes()),
            Sees::Rowid => Seen::Rowid(connection.last_insert_rowid()),
        })
    }

    /// The statement with its arguments in it, for another process.
    pub(crate) fn written_out(&self) -> String {
        let mut args = self.args.iter();
        let mut text = String::new();
        for character in self.sql.chars() {
            match character {
                '?' => match args.next() {
                    Some(Cell::Integer(integer)) => text += &integer.to_string(),
                    Some(Cell::Text(value)) => text += &format!("'{value}'"),
                    other => panic!("not to be written out: {other:?}"),
                },
                '\n' => text.push(' '),
                other => text.push(other),
            }
        }
        text
    }
}

/// Whether this is a refusal that a client may carry on after.
pub(crate) const fn is_constraint(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Unique
            | ErrorKind::ForeignKey
            | ErrorKind::NotNull
            | ErrorKind::Check
            | ErrorKind::Constraint
    )
}

fn cells(row: &SqliteRow) -> Vec<Cell> {
    (0..row.len())
        .map(|column| {
            let value = row.try_get_raw(column).unwrap();
            match value.type_info().name() {
                _ if value.is_null() => Cell::Null,
                "INTEGER" => Cell::Integer(row.get_unchecked(column)),
                "REAL" => Cell::Real(row.get_unchecked(column)),
                "TEXT" => Cell::Text(row.get_unchecked(column)),
                other => panic!("no workload has a column of type {other}"),
            }
        })
        .collect()
}

pub(crate) fn plain_cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(integer) => Cell::Integer(integer),
        ValueRef::Real(real) => Cell::Real(real),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(_) => panic!("no workload has a blob"),
    }
}

pub(crate) fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    let code = error
        .sqlite_error()
        .unwrap_or_else(|| panic!("{error}"))
        .extended_code;
    match code {
        ffi::SQLITE_CONSTRAINT_UNIQUE
        | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | ffi::SQLITE_CONSTRAINT_ROWID => ErrorKind::Unique,
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => ErrorKind::ForeignKey,
        ffi::SQLITE_CONSTRAINT_NOTNULL => ErrorKind::NotNull,
        ffi::SQLITE_CONSTRAINT_CHECK => ErrorKind::Check,
        ffi::SQLITE_CONSTRAINT_TRIGGER => ErrorKind::Constraint,
        _ => panic!("a workload that plain SQLite does not run: {error}"),
    }
}
