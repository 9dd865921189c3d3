//! Units run again on plain SQLite, one after the other.

use std::path::Path;

use anabranch::prelude::ErrorKind;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{
    operation::{Operation, Seen, kind_of},
    tables::{self, Dump},
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

/// The first that differs among all things, or among what wrote.
pub(crate) fn difference(saw: &[Entry], sees: &[Entry], only_writes: bool) -> Option<Difference> {
    let differs = (saw.iter().zip(sees)).find_map(|pair| match pair {
        (Entry::Did { operation, .. }, _) if only_writes && !operation.writes => None,
        (Entry::Did { operation, seen }, Entry::Did { seen: replayed, .. }) => (seen != replayed)
            .then(|| Difference {
                operation: operation.clone(),
                seen: seen.clone(),
                replayed: replayed.clone(),
            }),
        (Entry::Savepoint { entries: saw, .. }, Entry::Savepoint { entries: sees, .. }) => {
            difference(saw, sees, only_writes)
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
            replayed: Seen::Refused(ErrorKind::TransactionEnded),
        })
    })
}
