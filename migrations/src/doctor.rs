//! Examines a database file: what it is, whether it is whole, and what could be better. Nothing of it is changed, and no file
//! appears beside it.
//!
//! ```
//! use anabranch_migrations::doctor::{Weight, examine};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.db");
//! # rusqlite::Connection::open(&path)?.execute_batch("CREATE TABLE note (text TEXT)")?;
//! let examined = examine(&path)?;
//! assert!(!examined.has_problems());
//! for finding in examined.findings {
//!     assert_eq!(finding.weight, Weight::Advice);
//!     println!("{finding}"); // note: all values fit their types: the table could be STRICT
//! }
//! # Ok(()) }
//! ```

mod facts;
mod findings;
mod tables;

use std::{fmt, path::Path};

use anabranch::error::Result;
use serde::Serialize;

pub use self::facts::Facts;
use crate::{entities::open::failed, look};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Examined {
    /// What the file is.
    pub facts: Facts,
    /// What is wrong, and what could be better.
    pub findings: Vec<Finding>,
}

impl Examined {
    /// Whether something is wrong.
    #[must_use]
    pub fn has_problems(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.weight == Weight::Problem)
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Weight {
    /// Something is wrong, or will go wrong.
    Problem,
    /// It could be better.
    Advice,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Check {
    /// SQLite's `integrity_check`.
    Integrity,
    /// What SQLite cannot check here: a table whose definition calls for a function or a collation of another program, or whose
    /// foreign key names no key of the other table.
    Unchecked,
    /// SQLite's `foreign_key_check`: a row refers to one that is not there.
    BrokenReference,
    /// Rows of a table with commit numbers that have none: a feed would not see them.
    Unstamped,
    /// The file has several names. A log is found by the name, so that whoever opens it by another one does not see it.
    HardLinks,
    /// It is on a file system of another machine, or may be.
    NetworkFileSystem,
    /// The log is long.
    LongLog,
    /// No index leads to the rows that refer to a row: deleting one reads the whole table.
    MissingIndex,
    /// A table is not STRICT, and could be.
    Strict,
    /// Much of the file is free pages.
    FreePages,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How much it matters.
    pub weight: Weight,
    /// What was looked at.
    pub check: Check,
    /// The table, if it is about one.
    pub table: Option<String>,
    /// What was found, and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "{}: {}", plain(table), plain(&self.message)),
            None => f.write_str(&plain(&self.message)),
        }
    }
}

/// A text on one line: what a name of a foreign file holds is not for the terminal.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Examines a file, on one state of it. It reads everything.
///
/// # Errors
///
/// `CannotOpen`, `NotADatabase`, `Busy` or `Io` for what is in the way of looking; `Corrupt` for a file that is too damaged for that.
pub fn examine(path: &Path) -> Result<Examined> {
    let look = look::open(path)?;
    let examine = || {
        look.connection.execute_batch("BEGIN")?;
        let facts = facts::of(&look)?;
        let findings = findings::of(&look, &facts)?;
        Ok(Examined { facts, findings })
    };
    let mut examined = examine().map_err(|error| failed(&look.path, &error))?;
    // Not inside of a transaction.
    look.connection
        .execute_batch("ROLLBACK")
        .map_err(|error| failed(&look.path, &error))?;
    if look.is_wal {
        let log = crate::log::of(&look)?;
        examined
            .findings
            .extend(findings::of_log(&log, examined.facts.page_size));
        examined.facts.log = Some(log);
    }
    Ok(examined)
}
