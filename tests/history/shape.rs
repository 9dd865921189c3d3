//! The shapes of workloads: which statements, which units, how many beside each other, in which mode.

use anabranch_tests::{Mode, random::Random};

use crate::{draw::Draw, shapes::SESSIONS};

/// One shape. Numbers before a thing say how often it is drawn, beside the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) mode: Mode,
    /// How many keys statements choose from: few make many conflicts.
    pub(crate) keys: u64,
    /// The most statements of a unit.
    pub(crate) statements: u64,
    pub(crate) draws: &'static [(u64, Draw)],
    pub(crate) units: &'static [(u64, Task)],
}

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// `begin_concurrent`, serializable.
    Session,
    /// `begin_concurrent`, with snapshot isolation.
    SnapshotSession,
    /// `db.concurrent`.
    Concurrent,
    /// `db.concurrent_with`, with snapshot isolation.
    SnapshotConcurrent,
    /// `db.write`.
    Write,
    /// Saves of contexts.
    Save,
    /// A context that reads one snapshot and saves as a serializable session.
    Context,
    /// The same with snapshot isolation.
    SnapshotContext,
    /// A read on the database itself.
    Read,
    /// `db.checkpoint`.
    Checkpoint,
    /// Another process writes.
    Peer,
}

pub(crate) const fn shape(name: &'static str, draws: &'static [(u64, Draw)]) -> Shape {
    Shape {
        name,
        mode: Mode::Inline,
        keys: 12,
        statements: 6,
        draws,
        units: SESSIONS,
    }
}

impl Shape {
    pub(crate) const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) const fn keys(mut self, keys: u64) -> Self {
        self.keys = keys;
        self
    }

    pub(crate) const fn statements(mut self, statements: u64) -> Self {
        self.statements = statements;
        self
    }

    pub(crate) const fn units(mut self, units: &'static [(u64, Task)]) -> Self {
        self.units = units;
        self
    }

    pub(crate) fn has(&self, task: Task) -> bool {
        self.units.iter().any(|(_, drawn)| *drawn == task)
    }

    pub(crate) fn draw(&self, random: &mut Random) -> Draw {
        weighted(self.draws, random)
    }

    pub(crate) fn task(&self, random: &mut Random) -> Task {
        weighted(self.units, random)
    }
}

fn weighted<T: Copy>(table: &[(u64, T)], random: &mut Random) -> T {
    let mut left = random.below(table.iter().map(|(weight, _)| weight).sum());
    for (weight, thing) in table {
        if left < *weight {
            return *thing;
        }
        left -= weight;
    }
    unreachable!("the number is below the sum")
}
