//! What happened: units, what each did and saw, and how each ended.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering::SeqCst},
    },
};

use crate::{
    operation::{Operation, Seen},
    tables::Dump,
};

/// One thing that a client did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Did {
        operation: Operation,
        seen: Seen,
    },
    /// What was done in a savepoint, and whether it was kept. What was undone was seen all the same.
    Savepoint {
        entries: Vec<Self>,
        kept: bool,
    },
}

/// What kind of unit it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A session: all that it saw holds where it committed.
    Serializable,
    /// A session: what it wrote holds where it committed, what it read where it began.
    Snapshot,
    /// `db.write`.
    Write,
    /// A save of a context.
    Save,
    /// A read on the database itself.
    Read,
    /// A transaction of another process.
    Peer,
}

/// How a unit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Acknowledged, with this commit number if the client was told.
    Committed(Option<i64>),
    /// Something that it saw was not so any more.
    Conflict,
    /// Rolled back, dropped, or refused.
    Undone,
    /// Dropped while it was committed.
    Unknown,
}

/// A unit as the client saw it. The times are ticks of the history's clock.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// Its number, and the key of its row in `event`.
    pub(crate) id: i64,
    pub(crate) kind: Kind,
    pub(crate) entries: Vec<Entry>,
    /// When it was asked for its snapshot, and when it had it; `None` for what has none of its own.
    pub(crate) snapshot: Option<(u64, u64)>,
    /// When its commit was asked for.
    pub(crate) submitted: u64,
    /// When its end was known.
    pub(crate) ended: u64,
    pub(crate) outcome: Outcome,
}

/// Everything that happened on one database.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) units: Vec<Unit>,
    /// Commit numbers, and the units that have them.
    pub(crate) order: BTreeMap<i64, i64>,
    /// What was there in the end.
    pub(crate) dump: Dump,
}

/// Collects units from all tasks.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    clock: AtomicU64,
    ids: AtomicI64,
    units: Mutex<Vec<Unit>>,
}

impl Recorder {
    /// The time, which nobody else is told.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// The number of a new unit.
    pub(crate) fn next_id(&self) -> i64 {
        self.ids.fetch_add(1, SeqCst) + 1
    }

    pub(crate) fn ended(&self, unit: Unit) {
        self.units.lock().unwrap().push(unit);
    }

    pub(crate) fn into_units(self) -> Vec<Unit> {
        let mut units = self.units.into_inner().unwrap();
        units.sort_by_key(|unit| unit.id);
        units
    }
}
