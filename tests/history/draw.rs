//! What a statement of a workload can be, and the SQL of those that are one statement.

use anabranch_tests::random::Random;

use crate::{
    operation::{
        Cell, Operation,
        Sees::{FirstRow, Rowid},
    },
    statements::{
        clash, computed, counted, deferred, docs, families, first_written, logged, pairs, raise,
        returning, schema, seats, stocks, upsert,
    },
};

/// What is drawn for a place in a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    KeyRead,
    /// Of a range, in the order of its keys; only the first is fetched.
    FirstRead,
    RangeRead,
    Count,
    ViewRead,
    KeyInsert,
    KeyUpdate,
    RangeUpdate,
    KeyDelete,
    AutomaticInsert,
    Upsert,
    Replace,
    /// An insert that may meet a taken unique value.
    Clash,
    Returning,
    /// A write of which only the first row is fetched, and often there is none.
    FirstWritten,
    /// The table without rowids.
    Pairs,
    /// Parents and children: cascades, references that point nowhere.
    Families,
    /// References that are looked at when the unit commits.
    Deferred,
    /// The table with triggers.
    Logged,
    /// The largest keys of the table that triggers fill.
    Counted,
    /// Triggers that refuse.
    Raise,
    /// Unique values, of which some take the whole transaction along.
    Seats,
    /// Rows that have commit numbers.
    Stocks,
    Computed,
    Docs,
    Schema,
    /// Reads a row, and writes what comes of it.
    ReadThenWrite,
    /// random() and the time.
    Noise,
    /// An insert, `last_insert_rowid()`, and another insert with what that said.
    LastRowid,
    /// A key by `next_id`, and an insert with it.
    NextId,
    /// The same by the SQL function.
    SqlNextId,
    TypedFind,
    TypedQuery,
    TypedInsert,
    TypedUpdate,
    TypedDelete,
    /// A savepoint that is rolled back.
    Undone,
    /// One that is kept.
    Kept,
}

/// Numbers for arguments.
#[derive(Debug)]
pub(crate) struct Chance<'a> {
    pub(crate) random: &'a mut Random,
    /// How many keys there are to choose from.
    pub(crate) keys: u64,
}

impl Chance<'_> {
    pub(crate) fn below(&mut self, end: u64) -> i64 {
        i64::try_from(self.random.below(end)).unwrap()
    }

    pub(crate) fn key(&mut self) -> i64 {
        1 + self.below(self.keys)
    }

    pub(crate) fn tag(&mut self) -> Option<String> {
        (!self.random.once_in(3)).then(|| format!("t{}", self.key()))
    }

    pub(crate) fn range(&mut self) -> Vec<Cell> {
        let low = self.key();
        let high = low + self.below(1 + self.keys / 3);
        vec![low.into(), high.into()]
    }
}

impl Draw {
    /// The statement, if it is one.
    pub(crate) fn operation(self, chance: &mut Chance<'_>) -> Option<Operation> {
        Some(match self {
            Self::KeyInsert => Operation::write(
                "INSERT INTO item (id, grp, val, tag) VALUES (?, ?, ?, ?)",
                vec![
                    chance.key().into(),
                    chance.below(5).into(),
                    chance.below(100).into(),
                    chance.tag().into(),
                ],
            ),
            Self::KeyUpdate => Operation::write(
                "UPDATE item SET val = val + ? WHERE id = ?",
                vec![(1 + chance.below(9)).into(), chance.key().into()],
            ),
            Self::RangeUpdate => Operation::write(
                "UPDATE item SET val = val + 1 WHERE id BETWEEN ? AND ?",
                chance.range(),
            ),
            Self::KeyDelete => {
                Operation::write("DELETE FROM item WHERE id = ?", vec![chance.key().into()])
            }
            Self::AutomaticInsert => Operation::write(
                "INSERT INTO item (grp, val) VALUES (?, ?)",
                vec![chance.below(5).into(), chance.below(100).into()],
            )
            .seeing(Rowid),
            Self::Upsert => upsert(chance),
            Self::Replace => Operation::write(
                "INSERT OR REPLACE INTO item (id, grp, val, tag) VALUES (?, ?, ?, ?)",
                vec![
                    chance.key().into(),
                    chance.below(5).into(),
                    chance.below(100).into(),
                    chance.tag().into(),
                ],
            ),
            Self::Clash => clash(chance),
            Self::Returning => returning(chance),
            Self::FirstWritten => first_written(chance),
            Self::Pairs => pairs(chance),
            Self::Families => families(chance),
            Self::Deferred => deferred(chance),
            Self::Logged => logged(chance),
            Self::Counted => counted(chance),
            Self::Raise => raise(chance),
            Self::Seats => seats(chance),
            Self::Stocks => stocks(chance),
            Self::Computed => computed(chance),
            Self::Docs => docs(chance),
            Self::Schema => schema(chance),
            _ => return self.read(chance),
        })
    }

    fn read(self, chance: &mut Chance<'_>) -> Option<Operation> {
        Some(match self {
            Self::KeyRead => Operation::read(
                "SELECT grp, val, tag FROM item WHERE id = ?",
                vec![chance.key().into()],
            ),
            Self::FirstRead => Operation::read(
                "SELECT id, val FROM item WHERE id >= ? ORDER BY id",
                vec![chance.key().into()],
            )
            .seeing(FirstRow),
            Self::RangeRead => Operation::read(
                "SELECT id, val FROM item WHERE id BETWEEN ? AND ? ORDER BY id",
                chance.range(),
            ),
            Self::Count => Operation::read(
                "SELECT count(*), sum(val) FROM item WHERE grp = ?",
                vec![chance.below(5).into()],
            ),
            Self::ViewRead => {
                Operation::read("SELECT grp, items, total FROM totals ORDER BY grp", vec![])
            }
            _ => return None,
        })
    }
}
