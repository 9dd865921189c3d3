//! The scripts: who does what, and who has to give way.

use self::Op::{
    Add, AddAll, Commit, Count, Delete, Insert, Read, ReadAll, ReadFrom, ReadValue, Replace,
    Rollback, Set,
};

/// One step of a transaction on rows of an id and a value. At the beginning they are (1, 10) and (2, 20).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// The row with this id.
    Read(i64),
    /// All rows.
    ReadAll,
    /// The rows with this value.
    ReadValue(i64),
    /// The rows with at least this value.
    ReadFrom(i64),
    /// How many rows there are.
    Count,
    /// Gives a row a value, whatever it had.
    Set(i64, i64),
    /// Adds to a row.
    Add(i64, i64),
    /// Adds to all rows.
    AddAll(i64),
    /// Gives the rows with the first value the second.
    Replace(i64, i64),
    /// Removes the rows with this value.
    Delete(i64),
    /// Adds a row.
    Insert(i64, i64),
    Commit,
    Rollback,
}

/// Some transactions, step by step, and which of them conflict.
#[derive(Debug)]
pub(crate) struct Script {
    /// Adya's name, where it has one.
    pub(crate) name: &'static str,
    /// The transaction's number, from 1, and what it does.
    pub(crate) steps: &'static [(usize, Op)],
    /// Who conflicts when statements are what is compared: a blind write saw nothing that could differ.
    pub(crate) serializable: &'static [usize],
    /// Who conflicts when a context writes: it read before.
    pub(crate) serializable_typed: &'static [usize],
    /// Who conflicts when rows that were only read do not count, and rows that both wrote do.
    pub(crate) snapshot: &'static [usize],
    /// Whether it is a write skew or the read-only anomaly.
    pub(crate) is_allowed_by_snapshot: bool,
}

impl Script {
    /// How many take part.
    pub(crate) fn transactions(&self) -> usize {
        self.steps.iter().map(|step| step.0).max().unwrap_or(0)
    }
}

const PLAIN: Script = Script {
    name: "",
    steps: &[],
    serializable: &[],
    serializable_typed: &[],
    snapshot: &[],
    is_allowed_by_snapshot: false,
};

pub(crate) const CATALOGUE: &[Script] = &[
    Script {
        name: "G0: dirty write",
        steps: &[
            (1, Set(1, 11)),
            (2, Set(1, 12)),
            (1, Set(2, 21)),
            (1, Commit),
            (2, Set(2, 22)),
            (2, Commit),
        ],
        serializable_typed: &[2],
        snapshot: &[2],
        ..PLAIN
    },
    Script {
        name: "G1a: aborted read",
        steps: &[
            (1, Set(1, 101)),
            (1, Insert(3, 30)),
            (2, ReadAll),
            (1, Rollback),
            (2, ReadAll),
            (2, Commit),
        ],
        ..PLAIN
    },
    Script {
        name: "G1a: aborted read, and a write that rests on it",
        steps: &[
            (1, Set(1, 101)),
            (2, Read(1)),
            (2, Add(2, 1)),
            (1, Rollback),
            (2, Commit),
        ],
        ..PLAIN
    },
    Script {
        name: "G1b: intermediate read",
        steps: &[
            (1, Set(1, 101)),
            (2, ReadAll),
            (1, Set(1, 11)),
            (1, Commit),
            (2, ReadAll),
            (2, Commit),
        ],
        ..PLAIN
    },
    Script {
        // Nobody sees what the other has not committed; under Snapshot each misses the other, which is write skew.
        name: "G1c: circular information flow",
        steps: &[
            (1, Set(1, 11)),
            (2, Set(2, 22)),
            (1, Read(2)),
            (2, Read(1)),
            (1, Commit),
            (2, Commit),
        ],
        serializable: &[2],
        serializable_typed: &[2],
        is_allowed_by_snapshot: true,
        ..PLAIN
    },
    Script {
        name: "OTV: observed transaction vanishes",
        steps: &[
            (1, Set(1, 11)),
            (1, Set(2, 19)),
            (2, Set(1, 12)),
            (1, Commit),
            (3, Read(1)),
            (2, Set(2, 18)),
            (3, Read(2)),
            (2, Commit),
            (3, Read(2)),
            (3, Read(1)),
            (3, Commit),
        ],
        serializable_typed: &[2],
        snapshot: &[2],
        ..PLAIN
    },
    Script {
        name: "PMP: predicate, many preceders",
        steps: &[
            (1, ReadValue(30)),
            (2, Insert(3, 30)),
            (2, Commit),
            (1, ReadFrom(30)),
            (1, Commit),
        ],
        ..PLAIN
    },
    Script {
        name: "PMP: with a write by what was found",
        steps: &[
            (1, AddAll(10)),
            (2, ReadValue(20)),
            (2, Delete(20)),
            (1, Commit),
            (2, Commit),
        ],
        serializable: &[2],
        serializable_typed: &[2],
        snapshot: &[2],
        ..PLAIN
    },
    Script {
        // As many rows were deleted in the session as on what is there by then, but others: an order explains that, and
        // a snapshot does not.
        name: "PMP: with a blind write",
        steps: &[(1, AddAll(10)), (2, Delete(20)), (1, Commit), (2, Commit)],
        serializable_typed: &[2],
        snapshot: &[2],
        ..PLAIN
    },
    Script {
        name: "P4: lost update",
        steps: &[
            (1, Read(1)),
            (2, Read(1)),
            (1, Set(1, 11)),
            (2, Set(1, 11)),
            (1, Commit),
            (2, Commit),
        ],
        serializable: &[2],
        serializable_typed: &[2],
        snapshot: &[2],
        ..PLAIN
    },
    Script {
        // Nothing is lost: the addition is done again on what is there.
        name: "P4: additions that nobody looked at",
        steps: &[(1, Add(1, 1)), (2, Add(1, 2)), (1, Commit), (2, Commit)],
        serializable_typed: &[2],
        snapshot: &[2],
        ..PLAIN
    },
    Script {
        name: "P4: lost update of a row that was deleted",
        steps: &[
            (1, Read(1)),
            (2, Delete(10)),
            (2, Commit),
            (1, Set(1, 11)),
            (1, Commit),
        ],
        serializable: &[1],
        serializable_typed: &[1],
        snapshot: &[1],
        ..PLAIN
    },
    Script {
        name: "G-single: read skew",
        steps: &[
            (1, Read(1)),
            (2, Read(1)),
            (2, Read(2)),
            (2, Set(1, 12)),
            (2, Set(2, 18)),
            (2, Commit),
            (1, Read(2)),
            (1, Commit),
        ],
        ..PLAIN
    },
    Script {
        name: "G-single: read skew by predicates",
        steps: &[
            (1, ReadFrom(10)),
            (2, Replace(10, 12)),
            (2, Commit),
            (1, ReadValue(12)),
            (1, Commit),
        ],
        ..PLAIN
    },
    Script {
        name: "G-single: read skew with a write",
        steps: &[
            (1, Read(1)),
            (2, ReadAll),
            (2, Set(1, 12)),
            (2, Set(2, 18)),
            (2, Commit),
            (1, Delete(20)),
            (1, Commit),
        ],
        serializable: &[1],
        serializable_typed: &[1],
        snapshot: &[1],
        ..PLAIN
    },
    Script {
        name: "G-single: read skew with a write that is undone",
        steps: &[
            (1, Read(1)),
            (2, ReadAll),
            (2, Set(1, 12)),
            (1, Delete(20)),
            (2, Set(2, 18)),
            (1, Rollback),
            (2, Commit),
        ],
        ..PLAIN
    },
    Script {
        name: "G2-item: write skew",
        steps: &[
            (1, Read(1)),
            (1, Read(2)),
            (2, Read(1)),
            (2, Read(2)),
            (1, Set(1, 11)),
            (2, Set(2, 21)),
            (1, Commit),
            (2, Commit),
        ],
        serializable: &[2],
        serializable_typed: &[2],
        is_allowed_by_snapshot: true,
        ..PLAIN
    },
    Script {
        name: "G2: anti-dependency cycle by predicates",
        steps: &[
            (1, ReadFrom(30)),
            (2, ReadFrom(30)),
            (1, Insert(3, 30)),
            (2, Insert(4, 42)),
            (1, Commit),
            (2, Commit),
        ],
        serializable: &[2],
        serializable_typed: &[2],
        is_allowed_by_snapshot: true,
        ..PLAIN
    },
    Script {
        name: "G2: anti-dependency cycle of three",
        steps: &[
            (1, Read(1)),
            (2, Read(2)),
            (3, ReadValue(30)),
            (1, Set(2, 21)),
            (2, Insert(3, 30)),
            (3, Set(1, 11)),
            (1, Commit),
            (2, Commit),
            (3, Commit),
        ],
        serializable: &[2],
        serializable_typed: &[2],
        is_allowed_by_snapshot: true,
        ..PLAIN
    },
    Script {
        name: "G2: two edges, closed by one who only reads",
        steps: &[
            (1, ReadAll),
            (2, Add(2, 5)),
            (2, Commit),
            (3, ReadAll),
            (3, Commit),
            (1, Set(1, 0)),
            (1, Commit),
        ],
        serializable: &[1],
        serializable_typed: &[1],
        is_allowed_by_snapshot: true,
        ..PLAIN
    },
    Script {
        // Fekete, O'Neil and O'Neil: a fee is due if both accounts together are overdrawn; the report says that the
        // deposit came first, the fee that it did not.
        name: "the read-only anomaly",
        steps: &[
            (1, Read(1)),
            (1, Read(2)),
            (2, Read(2)),
            (2, Set(2, 40)),
            (2, Commit),
            (3, Read(1)),
            (3, Read(2)),
            (3, Commit),
            (1, Set(1, -11)),
            (1, Commit),
        ],
        serializable: &[1],
        serializable_typed: &[1],
        is_allowed_by_snapshot: true,
        ..PLAIN
    },
    Script {
        name: "phantom: an insert into what was counted",
        steps: &[
            (1, Count),
            (2, Insert(3, 30)),
            (2, Commit),
            (1, Count),
            (1, Set(1, 2)),
            (1, Commit),
        ],
        serializable: &[1],
        serializable_typed: &[1],
        ..PLAIN
    },
    Script {
        name: "phantom: a range that somebody else's row left",
        steps: &[
            (1, ReadFrom(20)),
            (2, Replace(20, 5)),
            (2, Commit),
            (1, Insert(3, 1)),
            (1, Commit),
        ],
        serializable: &[1],
        serializable_typed: &[1],
        ..PLAIN
    },
];
