//! The write-ahead log of a database, seen from outside.
//!
//! ```
//! use anabranch_migrations::log::Watch;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.db");
//! let connection = rusqlite::Connection::open(&path)?;
//! connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
//! let log = Watch::new(&path)?.look()?;
//! assert!(log.bytes > 0 && log.waiting() > Some(0));
//! # Ok(()) }
//! ```

use std::{fmt, fs, path::Path};

use anabranch::error::Result;
use serde::Serialize;

use crate::{
    entities::open::failed,
    look::{self, Look, beside},
};

/// What there is of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Log {
    /// Whether the database has one: whether it is in mode WAL.
    pub is_wal: bool,
    /// How long its file is. It does not become shorter before it is truncated; 0 if there is none.
    pub bytes: u64,
    /// The frames (pages) in it, where that is known.
    pub frames: Option<u64>,
    /// How many of them are in the database file too.
    pub moved: Option<u64>,
}

impl Log {
    /// The frames that are in the log alone.
    #[must_use]
    pub fn waiting(&self) -> Option<u64> {
        Some(self.frames?.saturating_sub(self.moved?))
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_wal {
            return f.write_str("no log: the database is in rollback mode");
        }
        write!(f, "{} bytes", self.bytes)?;
        match (self.frames, self.waiting()) {
            (Some(frames), Some(waiting)) => {
                let plural = if frames == 1 { "" } else { "s" };
                write!(
                    f,
                    ", {frames} frame{plural}, {waiting} of them not in the file yet"
                )
            }
            _ => Ok(()),
        }
    }
}

/// Looks at a log, as often as one likes, and changes nothing.
#[derive(Debug)]
pub struct Watch {
    look: Look,
}

impl Watch {
    /// Opens the database to look at it.
    ///
    /// # Errors
    ///
    /// `CannotOpen`, `NotADatabase`, `Corrupt`, `Busy` or `Io` for what is in the way.
    pub fn new(path: &Path) -> Result<Self> {
        look::open(path).map(|look| Self { look })
    }

    /// Whether the database is in mode WAL.
    #[must_use]
    pub const fn is_wal(&self) -> bool {
        self.look.is_wal
    }

    /// What there is now.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn look(&self) -> Result<Log> {
        of(&self.look)
    }
}

/// The log of a database that is looked at.
pub(crate) fn of(look: &Look) -> Result<Log> {
    let bytes = fs::metadata(beside(&look.path, "-wal")).map_or(0, |found| found.len());
    // A checkpoint that does nothing: it only says what there is.
    let asked = look
        .connection
        .query_row("PRAGMA main.wal_checkpoint(NOOP)", [], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
    let (frames, moved) = asked.map_err(|error| failed(&look.path, &error))?;
    Ok(Log {
        is_wal: look.is_wal,
        bytes,
        frames: u64::try_from(frames).ok(),
        moved: u64::try_from(moved).ok(),
    })
}
