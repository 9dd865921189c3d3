//! Opens a database so that nothing of it changes: no page, no log, and no file that appears beside it.
//!
//! A reader of a write-ahead log makes the log and its index where they are not. So what is beside the file decides how
//! it is opened:
//!
//! | beside it | how |
//! |---|---|
//! | whatever, and the file is empty | as immutable: a database without anything |
//! | `-wal` and `-shm` | as any reader: somebody may have it open |
//! | `-wal` alone | with an index in memory, and without locks: nobody has it open, or one alone, who locks it |
//! | neither, mode WAL | as immutable: nobody has it open |
//! | neither, rollback mode | as any reader, which makes no file |

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anabranch::error::Result;
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use crate::entities::open::{existing, failed};

/// How long another process may lock the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that only looks.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) connection: Connection,
    /// Absolute, links resolved.
    pub(crate) path: PathBuf,
    pub(crate) is_wal: bool,
}

/// Opens a file to look at it.
pub(crate) fn open(path: &Path) -> Result<Look> {
    let resolved = existing(path)?;
    let (is_wal, opened) = connect(&resolved);
    Ok(Look {
        connection: opened.map_err(|error| failed(&resolved, &error))?,
        path: resolved,
        is_wal,
    })
}

fn connect(path: &Path) -> (bool, rusqlite::Result<Connection>) {
    // SQLite takes what is beside an empty file for left over, and would remove it.
    if path.metadata().is_ok_and(|found| found.len() == 0) {
        return (false, read(path, "immutable=1", false));
    }
    let has = |suffix| beside(path, suffix).exists();
    match (has("-wal"), has("-shm")) {
        (true, true) => (true, read(path, "mode=ro", false)),
        // Whoever has it for itself keeps the index in its memory, and a lock on the file.
        (true, false) if cfg!(unix) => match read(path, "mode=ro&readonly_shm=1", false) {
            Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                (true, read(path, "mode=ro&vfs=unix-none", true))
            }
            opened => (true, opened),
        },
        (true, false) => (true, read(path, "mode=ro", false)),
        // Without locks there is no write-ahead log: SQLite then says that it cannot open one.
        (false, _) => match read(path, "mode=ro&nolock=1", false) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                (true, read(path, "immutable=1", false))
            }
            // What else it says may come of another process that writes.
            _ => (false, read(path, "mode=ro", false)),
        },
    }
}

fn read(path: &Path, how: &str, alone: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{}?{how}", escaped(path)), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The last one to close a log would move it, and remove it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if alone {
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    // What views and triggers of a foreign file call must not matter.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.query_row("SELECT count(*) FROM main.sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// A path in a URI.
fn escaped(path: &Path) -> String {
    let mut escaped = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// A file beside the database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
