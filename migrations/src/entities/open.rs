//! Says what is in the way of reading a database.

use std::path::{Path, PathBuf};

use anabranch::error::{Error, ErrorKind, Result};
use rusqlite::{ErrorCode, ffi::SQLITE_READONLY_ROLLBACK};

/// The absolute path of a file that is there, links resolved. SQLite would wait for ever for who writes to a pipe.
pub(crate) fn existing(path: &Path) -> Result<PathBuf> {
    let refused = |what: &str| {
        let text = format!("{} {what}", shown(path));
        Err(Error::new(ErrorKind::CannotOpen, text))
    };
    let found = path
        .canonicalize()
        .and_then(|path| Ok((path.metadata()?, path)));
    match found {
        Ok((found, resolved)) if found.is_file() => Ok(resolved),
        Ok((found, _)) if found.is_dir() => refused("is a folder: name the database file in it"),
        Ok(_) => refused("is a device, a pipe, or a socket, and a database is a file"),
        Err(error) => refused(&format!("cannot be opened: {error}")),
    }
}

/// The error of SQLite as ours.
pub(crate) fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let absolute = shown(path);
    let code = error.sqlite_error_code();
    let (kind, advice) = match code {
        _ if error.sqlite_error().map(|error| error.extended_code)
            == Some(SQLITE_READONLY_ROLLBACK) =>
        {
            (
                ErrorKind::CannotOpen,
                "a program died while it wrote, and left half of that in the file and the rest in the -journal beside it: \
             whoever may write opens it first, which undoes it; or copy both to a folder of yours, and open the copy",
            )
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => (
            ErrorKind::CannotOpen,
            "whoever looks has to be allowed to read it; in WAL mode a reader also needs the -wal and -shm beside it, or may make them; after a crash somebody who may write has to open it first: copy the file with what is beside it to a folder of yours, and name the copy",
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
