//! Whether a copy is what it should be.

use std::sync::Arc;

use rusqlite::Connection;

use crate::{
    engine::{
        backup::{
            copy::{Size, listening, size},
            part::Part,
        },
        hooks::Progress,
        integrity,
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
    sql::Identifier,
};

/// What was found in a copy that is whole.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) size: Size,
    pub(super) broken_references: u64,
}

/// All tables, and how many rows each has.
pub(super) fn tables(connection: &Connection) -> Result<Vec<(String, u64)>> {
    let names =
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name";
    let read = || {
        let mut statement = connection.prepare(names)?;
        let names = statement.query_map([], |row| row.get::<_, String>(0))?;
        let counted = names.map(|name| {
            let name = name?;
            let sql = format!("SELECT count(*) FROM main.{}", Identifier(&name));
            let rows: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            Ok((name, rows.unsigned_abs()))
        });
        counted.collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(from_rusqlite)
}

/// Reads a copy anew, and compares it with what was in the database. References that lead nowhere are no fault of the
/// copy.
pub(super) fn read_back(
    part: &Part,
    progress: &Arc<Progress>,
    expected: &[(String, u64)],
) -> Result<Verified> {
    let copy = listening(part.path(), progress)?;
    let found = integrity::check(&copy)?;
    if let [first, rest @ ..] = &found.messages[..] {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "the copy is damaged, and so the database probably is: {first} (and {} more); Database::integrity tells all",
                rest.len()
            ),
        ));
    }
    if tables(&copy)? != expected {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "the copy has other rows than the database: please report it",
        ));
    }
    Ok(Verified {
        size: size(&copy)?,
        broken_references: found.broken_references.len() as u64,
    })
}
