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
//! assert!(log.bytes > 0 && log.unmoved() > Some(0));
//! # Ok(()) }
//! ```

use std::{fmt, fs, path::Path};

use anabranch::error::Result;
use rusqlite::ErrorCode;
use serde::Serialize;

use crate::{
    entities::open::failed,
    look::{self, Look, beside},
};

/// What there is of a log.
///
/// ```
/// use anabranch_migrations::log::Watch;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// # let connection = rusqlite::Connection::open(&path)?;
/// # connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
/// println!("{}", Watch::new(&path)?.look()?); // 8272 bytes, 2 frames, 2 of them not in the file yet
/// # Ok(()) }
/// ```
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
    /// How many frames are not in the database file yet.
    ///
    /// ```
    /// use anabranch_migrations::log::Watch;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("app.db");
    /// # let connection = rusqlite::Connection::open(&path)?;
    /// # connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
    /// assert!(Watch::new(&path)?.look()?.unmoved() > Some(0));
    /// connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    /// assert_eq!(Watch::new(&path)?.look()?.unmoved(), Some(0));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn unmoved(&self) -> Option<u64> {
        Some(self.frames?.saturating_sub(self.moved?))
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_wal {
            return f.write_str("no log: the database is in rollback mode");
        }
        write!(f, "{} bytes", self.bytes)?;
        match (self.frames, self.unmoved()) {
            (Some(frames), Some(unmoved)) => {
                let plural = if frames == 1 { "" } else { "s" };
                write!(
                    f,
                    ", {frames} frame{plural}, {unmoved} of them not in the file yet"
                )
            }
            _ => Ok(()),
        }
    }
}

/// Looks at a log, as often as one likes, and changes nothing.
///
/// ```
/// use anabranch_migrations::log::Watch;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// # let connection = rusqlite::Connection::open(&path)?;
/// # connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
/// let watch = Watch::new(&path)?;
/// let before = watch.look()?;
/// connection.execute_batch("INSERT INTO note VALUES ('hello')")?;
/// assert!(watch.look()?.frames > before.frames);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Watch {
    look: Look,
}

impl Watch {
    /// Opens the database to look at it.
    ///
    /// ```
    /// use anabranch_migrations::log::Watch;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("app.db");
    /// # let connection = rusqlite::Connection::open(&path)?;
    /// # connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
    /// assert!(Watch::new(&path).is_ok());
    /// assert!(Watch::new(&folder.path().join("none.db")).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// `CannotOpen`, `NotADatabase`, `Corrupt`, `Busy` or `Io` for what is in the way.
    pub fn new(path: &Path) -> Result<Self> {
        look::open(path).map(|look| Self { look })
    }

    /// Whether the database is in mode WAL.
    ///
    /// ```
    /// use anabranch_migrations::log::Watch;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("app.db");
    /// # let connection = rusqlite::Connection::open(&path)?;
    /// # connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
    /// assert!(Watch::new(&path)?.is_wal());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_wal(&self) -> bool {
        self.look.is_wal
    }

    /// What there is now.
    ///
    /// ```
    /// use anabranch_migrations::log::Watch;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("app.db");
    /// # let connection = rusqlite::Connection::open(&path)?;
    /// # connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (text TEXT)")?;
    /// assert!(Watch::new(&path)?.look()?.bytes > 0);
    /// # Ok(()) }
    /// ```
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
    let (frames, moved) = match asked {
        // Even a checkpoint that does nothing has to be allowed to write to the log.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => (-1, -1),
        asked => asked.map_err(|error| failed(&look.path, &error))?,
    };
    Ok(Log {
        is_wal: look.is_wal,
        bytes,
        frames: u64::try_from(frames).ok(),
        moved: u64::try_from(moved).ok(),
    })
}
