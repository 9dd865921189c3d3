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
    pub(super) unchecked: Vec<String>,
}

/// All tables, and how many rows each has, where SQLite can tell.
pub(super) fn tables(connection: &Connection) -> Result<Vec<(String, Option<u64>)>> {
    let count = |name: String| {
        let sql = format!("SELECT count(*) FROM main.{}", Identifier(&name));
        match connection.query_row(&sql, [], |row| row.get::<_, i64>(0)) {
            Ok(rows) => Ok((name, Some(rows.unsigned_abs()))),
            Err(error) => match from_rusqlite(error) {
                // It is in a collation of another program, for one.
                error if error.kind() == ErrorKind::Statement => Ok((name, None)),
                error => Err(error),
            },
        }
    };
    integrity::tables(connection)?
        .into_iter()
        .map(count)
        .collect()
}

/// Reads a copy anew, and compares it with what was in the database. References that lead nowhere are no fault of the
/// copy.
pub(super) fn read_back(
    part: &Part,
    progress: &Arc<Progress>,
    expected: &[(String, Option<u64>)],
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
        unchecked: found.unchecked,
    })
}
