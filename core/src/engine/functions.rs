//! SQL functions: on all connections the folding of text, on those that write also those of SQLite whose answers a session
//! records, and `next_id`.

use std::sync::Arc;

use rusqlite::{
    Connection, Error as SqliteError,
    functions::{Context, FunctionFlags},
    types::ValueRef,
};

use crate::{
    engine::{
        ffi::randomness,
        hooks::{Draw, Draws, Watch},
        key::Allocator,
    },
    sql::{FOLD, WITHIN, folded},
};

/// As SQLite's own.
const MOST_BYTES: i64 = 1_000_000_000;

/// Registers the function by which text is searched whatever the case of its letters, on connections that read too.
pub(in crate::engine) fn register_fold(connection: &Connection) -> rusqlite::Result<()> {
    // Not in indexes, triggers or views: other programs, which use the file too, do not have it.
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(FOLD, 1, flags, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Text(text) => Some(folded(&String::from_utf8_lossy(text))),
            _ => None,
        })
    })
}

/// Registers the function through which what is computed for a column goes whose type has fewer integers than SQLite: a
/// row with another one could not be read again.
fn register_within(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(WITHIN, 3, flags, |context| {
        let (least, greatest) = (context.get::<i64>(1)?, context.get::<i64>(2)?);
        match context.get_raw(0) {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(value) if (least..=greatest).contains(&value) => Ok(Some(value)),
            _ => Err(SqliteError::UserFunctionError(
                format!(
                    "what is computed for a column is no integer from {least} to {greatest}, which are those of the field's type"
                )
                .into(),
            )),
        }
    })
}

/// Registers the functions.
pub(in crate::engine) fn register(
    connection: &Connection,
    draws: &Arc<Draws>,
    allocator: &Arc<Allocator>,
    heard: &Arc<Watch>,
) -> rusqlite::Result<()> {
    register_fold(connection)?;
    register_within(connection)?;
    let plain = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    let recorded = Arc::clone(draws);
    connection.create_scalar_function("random", 0, plain, move |_| {
        let is_number = |draw: &Draw| matches!(draw, Draw::Number(_));
        match recorded.draw(is_number, || Ok::<_, SqliteError>(Draw::Number(random())))? {
            Draw::Number(number) => Ok(number),
            _ => Ok(random()),
        }
    })?;
    let recorded = Arc::clone(draws);
    connection.create_scalar_function("randomblob", 1, plain, move |context| {
        let length = length(context)?;
        let fits = |draw: &Draw| matches!(draw, Draw::Bytes(bytes) if bytes.len() == length);
        match recorded.draw(fits, || {
            Ok::<_, SqliteError>(Draw::Bytes(randomness(length)))
        })? {
            Draw::Bytes(bytes) => Ok(bytes),
            _ => Ok(randomness(length)),
        }
    })?;
    // Not in triggers, views or defaults: other programs, which write the file too, do not have it.
    let direct = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    let (recorded, allocator) = (Arc::clone(draws), Arc::clone(allocator));
    let heard = Arc::clone(heard);
    connection.create_scalar_function("next_id", 1, direct, move |context| {
        let table: String = context.get(0)?;
        let is_key = |draw: &Draw| matches!(draw, Draw::Key(_));
        let reserve = || {
            let key = allocator.reserve_rowid(&heard, &table);
            key.map(Draw::Key)
                .map_err(|error| SqliteError::UserFunctionError(Box::new(error)))
        };
        match recorded.draw(is_key, reserve)? {
            Draw::Key(key) => Ok(key),
            _ => Err(SqliteError::InvalidQuery),
        }
    })
}

fn random() -> i64 {
    let bytes = randomness(size_of::<i64>());
    bytes.try_into().map(i64::from_ne_bytes).unwrap_or_default()
}

/// How many bytes `randomblob` is to give: one at least, as SQLite has it.
fn length(context: &Context<'_>) -> rusqlite::Result<usize> {
    let length = context.get::<Option<i64>>(0)?.unwrap_or(1).max(1);
    if length > MOST_BYTES {
        return Err(SqliteError::UserFunctionError(
            "string or blob too big".into(),
        ));
    }
    Ok(usize::try_from(length).unwrap_or(1))
}
