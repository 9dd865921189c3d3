//! Tokens of saves: recorded in the transaction of the save, so that whoever asks later finds both or neither.
//!
//! The table is the library's own, made by the first save that has a token. It is a plain one, for other programs to
//! read; only what was kept for long enough is deleted, some rows with each further token.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    engine::sqlite_error::from_rusqlite,
    error::{Error, ErrorKind, Result},
    value::{ColumnType, Value, ValueError, ValueRef},
};

pub(in crate::engine) const NAME: &str = "anabranch_saves";

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS anabranch_saves (
        token TEXT PRIMARY KEY NOT NULL,
        saved_at TEXT NOT NULL,
        commit_seq INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS anabranch_saves_saved_at ON anabranch_saves (saved_at);";

/// Old tokens go a hundred at most with each new one: more than come, and no work that a save would feel.
const FORGET: &str = "
    DELETE FROM anabranch_saves WHERE token IN (
        SELECT token FROM anabranch_saves WHERE saved_at < ?1 ORDER BY saved_at LIMIT 100
    )";

/// What is recorded of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SaveRecord {
    /// When the writer ran it.
    pub(crate) saved_at: DateTime<Utc>,
    /// The commit number, if any stamped table was touched.
    pub(crate) commit_seq: Option<i64>,
}

/// Records a token, and forgets some that are older than `retention`. Part of the transaction of the save.
pub(in crate::engine) fn insert(
    connection: &Connection,
    token: &str,
    retention: Duration,
) -> Result<()> {
    let now = DateTime::<Utc>::from(SystemTime::now());
    let saved_at = text(now)?;
    let inserted = match try_insert(connection, token, &saved_at) {
        // There is no table: it was never made, or undone with the save that made it.
        Err(error) if error.kind() == ErrorKind::Statement => {
            connection.execute_batch(TABLE).map_err(from_rusqlite)?;
            try_insert(connection, token, &saved_at)?
        }
        tried => tried?,
    };
    if !inserted {
        return Err(Error::new(
            ErrorKind::AlreadySaved,
            "a save with this token was committed before: nothing was written now; was_saved() tells when it was",
        ));
    }
    let oldest = TimeDelta::from_std(retention)
        .ok()
        .and_then(|retention| now.checked_sub_signed(retention));
    oldest.map_or(Ok(()), |oldest| forget(connection, &text(oldest)?))
}

/// Whether the token was not there yet.
fn try_insert(connection: &Connection, token: &str, saved_at: &str) -> Result<bool> {
    connection
        .prepare_cached(
            "INSERT INTO anabranch_saves (token, saved_at) VALUES (?1, ?2) ON CONFLICT (token) DO NOTHING",
        )
        .and_then(|mut insert| insert.execute((token, saved_at)))
        .map(|rows| rows == 1)
        .map_err(from_rusqlite)
}

fn forget(connection: &Connection, before: &str) -> Result<()> {
    connection
        .prepare_cached(FORGET)
        .and_then(|mut delete| delete.execute([before]))
        .map(drop)
        .map_err(from_rusqlite)
}

/// Adds the commit number, which is known only at the end.
pub(in crate::engine) fn set_number(
    connection: &Connection,
    token: &str,
    number: i64,
) -> Result<()> {
    connection
        .prepare_cached("UPDATE anabranch_saves SET commit_seq = ?1 WHERE token = ?2")
        .and_then(|mut update| update.execute((number, token)))
        .map(drop)
        .map_err(from_rusqlite)
}

/// What is recorded of a token.
pub(in crate::engine) fn find(connection: &Connection, token: &str) -> Result<Option<SaveRecord>> {
    let is_made: bool = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)",
            [NAME],
            |row| row.get(0),
        )
        .map_err(from_rusqlite)?;
    if !is_made {
        return Ok(None);
    }
    let found: Option<(String, Option<i64>)> = connection
        .prepare_cached("SELECT saved_at, commit_seq FROM anabranch_saves WHERE token = ?1")
        .and_then(|mut select| {
            select
                .query_row([token], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(from_rusqlite)?;
    found
        .map(|(saved_at, commit_seq)| {
            let saved_at = DateTime::decode(ValueRef::Text(saved_at.as_bytes()));
            Ok(SaveRecord {
                saved_at: saved_at.map_err(|error| of_column(ErrorKind::Decode, error))?,
                commit_seq,
            })
        })
        .transpose()
}

/// As date-times are stored everywhere: the text sorts as the time.
fn text(time: DateTime<Utc>) -> Result<String> {
    match time.encode() {
        Ok(Value::Text(text)) => Ok(text),
        Ok(_) => Err(of_column(
            ErrorKind::Value,
            ValueError::new("a time is stored as text"),
        )),
        Err(error) => Err(of_column(ErrorKind::Value, error)),
    }
}

fn of_column(kind: ErrorKind, error: ValueError) -> Error {
    Error::new(kind, error.to_string())
        .with_table(NAME)
        .with_column("saved_at")
        .with_source(error)
}
