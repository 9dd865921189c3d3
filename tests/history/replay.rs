//! Units run again on plain SQLite, one after the other.

use std::{fmt, path::Path};

use anabranch::prelude::ErrorKind;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{
    operation::{Operation, Seen, kind_of},
    tables::{self, Dump},
    typed::{FIND, SET_VALUE, VALUE},
    unit::Entry,
};

/// A file of its own, on which the units are run.
pub(crate) struct Replay {
    connection: Connection,
    _folder: TempDir,
}

/// Something that is not as the client saw it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) operation: Operation,
    pub(crate) seen: Seen,
    pub(crate) replayed: Seen,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { sql, args, .. } = &self.operation;
        let (seen, replayed) = (&self.seen, &self.replayed);
        write!(
            f,
            "{sql} {args:?} showed {seen:?}, and on replay {replayed:?}"
        )
    }
}

impl Replay {
    /// Starts from the file as it was before the first unit.
    pub(crate) fn new(base: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("replay.db");
        std::fs::copy(base, &file).unwrap();
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
                 PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = ON",
            )
            .unwrap();
        connection.set_prepared_statement_cache_capacity(200);
        Self {
            connection,
            _folder: folder,
        }
    }

    /// Runs a unit and commits it; what it sees now, in the shape of what it saw, or the kind of error that COMMIT gives.
    pub(crate) fn apply(&self, entries: &[Entry]) -> Result<Vec<Entry>, ErrorKind> {
        self.execute("BEGIN");
        let entries = self.run(entries);
        if !self.is_open() {
            return Err(ErrorKind::TransactionEnded);
        }
        self.connection.execute_batch("COMMIT").map_err(|error| {
            self.execute("ROLLBACK");
            kind_of(&error)
        })?;
        Ok(entries)
    }

    /// What a unit would see here; nothing of it stays.
    pub(crate) fn look(&self, entries: &[Entry]) -> Vec<Entry> {
        self.execute("BEGIN");
        let entries = self.run(entries);
        if self.is_open() {
            self.execute("ROLLBACK");
        }
        entries
    }

    pub(crate) fn dump(&self) -> Dump {
        tables::dump(&self.connection)
    }

    /// Runs things until a trigger ends the transaction.
    fn run(&self, entries: &[Entry]) -> Vec<Entry> {
        let mut ran = Vec::new();
        for entry in entries {
            if !self.is_open() {
                break;
            }
            ran.push(match entry {
                Entry::Did { operation, .. } => Entry::Did {
                    operation: operation.clone(),
                    seen: operation.replay(&self.connection),
                },
                Entry::Savepoint { entries, kept } => {
                    self.execute("SAVEPOINT inside");
                    let entries = self.run(entries);
                    if self.is_open() && !kept {
                        self.execute("ROLLBACK TO inside");
                    }
                    if self.is_open() {
                        self.execute("RELEASE inside");
                    }
                    Entry::Savepoint {
                        entries,
                        kept: *kept,
                    }
                }
            });
        }
        ran
    }

    fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn execute(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }
}

/// The first that differs among all things, or among what holds where a snapshot session commits: what it wrote, and
/// what it read of a row that it then set to what came of it. Else an update of somebody else would be lost.
pub(crate) fn difference(saw: &[Entry], sees: &[Entry], of_snapshot: bool) -> Option<Difference> {
    let pairs = saw.iter().zip(sees).enumerate();
    let differs = pairs.into_iter().find_map(|(place, pair)| match pair {
        (Entry::Did { operation, .. }, _)
            if of_snapshot && !operation.writes && !is_counted_on(operation, &saw[place..]) =>
        {
            None
        }
        (Entry::Did { operation, seen }, Entry::Did { seen: replayed, .. }) => (seen != replayed)
            .then(|| Difference {
                operation: operation.clone(),
                seen: seen.clone(),
                replayed: replayed.clone(),
            }),
        (Entry::Savepoint { entries: saw, .. }, Entry::Savepoint { entries: sees, .. }) => {
            difference(saw, sees, of_snapshot)
        }
        _ => unreachable!("a replay has the shape of what it replays"),
    });
    differs.or_else(|| {
        let missing = saw.get(sees.len())?;
        let Entry::Did { operation, seen } = missing else {
            return None;
        };
        Some(Difference {
            operation: operation.clone(),
            seen: seen.clone(),
            replayed: Seen::Refused(ErrorKind::TransactionEnded, String::new()),
        })
    })
}

/// Whether the row that is read here is set later.
fn is_counted_on(read: &Operation, later: &[Entry]) -> bool {
    let is_set = |entry: &Entry| {
        matches!(entry, Entry::Did { operation, .. }
            if operation.sql == SET_VALUE && operation.args[1] == read.args[0])
    };
    [VALUE, FIND].contains(&read.sql) && later.iter().any(is_set)
}
