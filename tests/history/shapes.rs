//! The table of all shapes.

use anabranch_tests::Mode;

use crate::{
    draw::Draw::{self, *},
    shape::{Shape, Task, shape},
};

pub(crate) const SESSIONS: &[(u64, Task)] =
    &[(6, Task::Session), (3, Task::Concurrent), (1, Task::Read)];
const SNAPSHOTS: &[(u64, Task)] = &[
    (5, Task::SnapshotSession),
    (3, Task::SnapshotConcurrent),
    (2, Task::Session),
    (1, Task::Read),
];
const MIXED: &[(u64, Task)] = &[
    (4, Task::Session),
    (2, Task::SnapshotSession),
    (3, Task::Concurrent),
    (2, Task::Write),
    (3, Task::Save),
    (2, Task::Context),
    (1, Task::SnapshotContext),
    (1, Task::Read),
    (1, Task::Checkpoint),
];
const CONTEXTS: &[(u64, Task)] = &[
    (4, Task::Context),
    (2, Task::SnapshotContext),
    (2, Task::Save),
    (1, Task::Session),
    (1, Task::Read),
];
const CHECKPOINTS: &[(u64, Task)] = &[
    (4, Task::Session),
    (2, Task::Concurrent),
    (2, Task::Save),
    (4, Task::Checkpoint),
];
const PEERS: &[(u64, Task)] = &[
    (4, Task::Session),
    (1, Task::SnapshotSession),
    (3, Task::Concurrent),
    (2, Task::Save),
    (2, Task::Context),
    (1, Task::Write),
    (1, Task::Read),
    (4, Task::Peer),
];

const BASIC: &[(u64, Draw)] = &[
    (3, KeyRead),
    (2, RangeRead),
    (1, Count),
    (2, ReadThenWrite),
    (2, KeyUpdate),
    (1, RangeUpdate),
    (1, KeyInsert),
    (1, KeyDelete),
    (1, Undone),
];
const ALL: &[(u64, Draw)] = &[
    (3, KeyRead),
    (1, FirstRead),
    (1, RangeRead),
    (1, Count),
    (1, ViewRead),
    (1, TypedFind),
    (1, TypedQuery),
    (1, TypedInsert),
    (1, TypedUpdate),
    (1, TypedDelete),
    (1, NextId),
    (1, SqlNextId),
    (1, AutomaticInsert),
    (1, KeyInsert),
    (2, KeyUpdate),
    (1, RangeUpdate),
    (2, ReadThenWrite),
    (1, KeyDelete),
    (1, Upsert),
    (1, Replace),
    (1, Clash),
    (1, Returning),
    (1, FirstWritten),
    (1, LastRowid),
    (1, Counted),
    (1, Stocks),
    (1, Pairs),
    (1, Families),
    (1, Deferred),
    (1, Logged),
    (1, Computed),
    (1, Noise),
    (1, Docs),
    (1, Undone),
    (1, Kept),
];

/// All shapes.
pub(crate) const SHAPES: &[Shape] = &[
    shape(
        "key reads and writes",
        &[(3, KeyRead), (2, KeyUpdate), (2, ReadThenWrite)],
    ),
    shape("one hot row", &[(1, KeyRead), (3, ReadThenWrite)]).keys(1),
    shape(
        "ranges and phantoms",
        &[
            (3, RangeRead),
            (2, Count),
            (1, ViewRead),
            (2, KeyInsert),
            (1, KeyDelete),
            (1, RangeUpdate),
        ],
    ),
    shape(
        "first rows",
        &[
            (4, FirstRead),
            (2, KeyInsert),
            (2, KeyDelete),
            (1, KeyUpdate),
        ],
    ),
    shape(
        "typed",
        &[
            (2, TypedFind),
            (2, TypedQuery),
            (3, TypedInsert),
            (3, TypedUpdate),
            (2, TypedDelete),
        ],
    ),
    shape(
        "keys asked for",
        &[(3, NextId), (3, SqlNextId), (2, TypedInsert), (1, Count)],
    ),
    shape(
        "automatic rowids",
        &[
            (3, AutomaticInsert),
            (1, TypedInsert),
            (1, KeyDelete),
            (1, KeyRead),
        ],
    ),
    shape(
        "upserts and replaces",
        &[
            (3, Upsert),
            (2, Replace),
            (2, Clash),
            (1, KeyDelete),
            (1, KeyRead),
        ],
    ),
    shape(
        "unique values that clash",
        &[(4, Clash), (2, TypedInsert), (1, KeyDelete), (1, KeyRead)],
    ),
    shape(
        "savepoints",
        &[
            (3, Undone),
            (2, Kept),
            (2, KeyUpdate),
            (1, KeyRead),
            (1, KeyInsert),
        ],
    ),
    shape(
        "returning",
        &[(4, Returning), (1, KeyDelete), (1, KeyInsert), (1, KeyRead)],
    ),
    shape(
        "first rows of writes",
        &[(4, FirstWritten), (1, KeyInsert), (1, KeyRead)],
    ),
    shape(
        "the last rowid",
        &[(3, LastRowid), (1, AutomaticInsert), (1, KeyDelete)],
    )
    .units(MIXED),
    shape("counted keys", &[(2, Counted), (2, Logged), (1, KeyRead)]).units(MIXED),
    shape(
        "values that take all along",
        &[(4, Seats), (1, KeyRead), (2, KeyUpdate)],
    )
    .units(MIXED),
    shape("numbered rows", &[(3, Stocks), (1, KeyUpdate)]).units(SNAPSHOTS),
    shape("without rowids", &[(4, Pairs), (1, KeyRead)]),
    shape("families", &[(4, Families), (2, Deferred)]),
    shape("triggers", &[(4, Logged), (1, Raise), (1, KeyRead)]),
    shape("generated columns", &[(4, Computed), (1, KeyRead)]),
    shape(
        "chance and time",
        &[(3, Noise), (2, KeyUpdate), (1, KeyRead)],
    ),
    shape("full text", &[(3, Docs), (1, KeyUpdate)]),
    shape(
        "indexes come and go",
        &[(1, Schema), (3, KeyUpdate), (2, RangeRead), (1, KeyRead)],
    ),
    shape("snapshots", BASIC).units(SNAPSHOTS),
    shape("snapshots of everything", ALL)
        .units(SNAPSHOTS)
        .keys(30),
    shape("saves and transactions between", BASIC).units(MIXED),
    shape("everything", ALL).units(MIXED).keys(30),
    shape("everything, long", ALL)
        .units(MIXED)
        .keys(60)
        .statements(25),
    shape("contexts", BASIC).units(CONTEXTS),
    shape("checkpoints", BASIC).units(CHECKPOINTS),
    shape("another process", BASIC).units(PEERS),
    shape("everything beside another process", ALL)
        .units(PEERS)
        .keys(30),
    shape("threaded", ALL).units(MIXED).mode(Mode::Threaded),
    shape("full", ALL).units(MIXED).mode(Mode::Full),
    shape("full beside another process", BASIC)
        .units(PEERS)
        .mode(Mode::Full),
];

/// The shape of this name.
pub(crate) fn named(name: &str) -> &'static Shape {
    let found = SHAPES.iter().find(|shape| shape.name == name);
    found.unwrap_or_else(|| panic!("no shape has the name `{name}`"))
}
