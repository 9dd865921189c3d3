//! Says what is in the way of reading a database.

use std::path::Path;

use anabranch::error::{Error, ErrorKind};
use rusqlite::ErrorCode;

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
