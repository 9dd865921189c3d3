//! Opens a database only to read it, and says what is in the way.

use std::{path::Path, time::Duration};

use anabranch::error::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// How long another process may lock the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection inside of a transaction that cannot write.
pub(crate) fn read_only(path: &Path) -> Result<Connection> {
    let absolute = shown(path);
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(Error::new(
                ErrorKind::CannotOpen,
                format!("{absolute} is a folder: name the database file in it"),
            ));
        }
        Ok(_) => {}
        Err(error) => {
            return Err(Error::new(
                ErrorKind::CannotOpen,
                format!("{absolute} cannot be opened: {error}"),
            ));
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // What views and triggers of a foreign file call must not matter.
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.execute_batch("BEGIN; SELECT count(*) FROM main.sqlite_schema;")?;
        Ok(connection)
    });
    opened.map_err(|error| failed(path, &error))
}

/// The error of SQLite as ours.
pub(crate) fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let absolute = shown(path);
    let code = error.sqlite_error_code();
    let (kind, advice) = match code {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => (
            ErrorKind::CannotOpen,
            "in WAL mode a reader needs the -wal and -shm beside it, or may make them; after a crash somebody who may write has to open it first: copy the file with what is beside it to a folder of yours, and name the copy",
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::NotADatabase,
            "it is no SQLite database, or it is encrypted",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Corrupt,
            "the file is damaged: restore a backup, or read what is left with the sqlite3 shell's .recover",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Busy,
            "another process locks it: try again when it has finished",
        ),
        Some(ErrorCode::SystemIoFailure) => (
            ErrorKind::Io,
            "the operating system could not read it, or what is beside it",
        ),
        _ => (
            ErrorKind::Statement,
            "SQLite cannot make sense of its definitions",
        ),
    };
    Error::new(
        kind,
        format!("{absolute} cannot be read ({error}): {advice}"),
    )
}

fn shown(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.display().to_string()
}
