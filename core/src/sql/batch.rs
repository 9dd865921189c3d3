//! What one save asks of the writer, and what it gets back.

use std::sync::Arc;

use crate::{
    error::{Error, ErrorKind},
    sql::{Cost, Statement},
    value::Value,
};

/// The statements of one save, to be applied together or not at all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    /// In the order in which they run.
    pub steps: Vec<Step>,
    /// The integer keys that the writer gives, by position: [`Arg::Key`] refers to them.
    pub keys: Vec<NewKey>,
    /// The table of which rows come without their key, and its column for it: SQLite gives it, or the batch is refused.
    pub unkeyed: Option<(&'static str, &'static str)>,
    /// Whether foreign keys are looked at only once all steps have run.
    pub defer_foreign_keys: bool,
    /// Recorded with what the steps do; a batch whose token is recorded already is not applied.
    pub token: Option<Arc<str>>,
}

/// A key that the writer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewKey {
    /// The table.
    pub table: &'static str,
    /// Its column for the key.
    pub column: &'static str,
    /// Keys that the same batch brings along: it is larger than these.
    pub above: i64,
}

/// One statement of a [`Batch`].
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The text, with placeholders `?1`, `?2`, ...
    pub text: Arc<str>,
    /// The arguments, in the order of their numbers.
    pub args: Vec<Arg>,
    /// What has to come of it.
    pub expect: Expect,
    /// Whether it returns the rows that it changed, as RETURNING says, or those that it selects.
    pub returns: bool,
}

/// An argument of a [`Step`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arg {
    /// A value.
    Value(Value),
    /// The integer key that the writer gave for this position in [`Batch::keys`].
    Key(usize),
}

/// What has to come of a [`Step`], else the whole batch is undone.
#[derive(Debug, Clone)]
pub(crate) enum Expect {
    /// A row is inserted.
    Inserted {
        /// The table.
        table: &'static str,
    },
    /// Exactly one row is changed; if not, `probe` reads what the database holds instead.
    OneRow {
        /// The table.
        table: &'static str,
        /// Selects the row in question, all columns.
        probe: Statement,
        /// The position of the version among these, and the version that the row should have.
        version: Option<(usize, i64)>,
    },
    /// One row is deleted, or it is gone already, since a step before this one took it along. If `probe` still finds
    /// it, it is another than was expected.
    Gone {
        /// Selects the row in question, all columns.
        probe: Statement,
    },
    /// Any number of rows is changed, or none; who asked is told how many.
    Any {
        /// The table, if it is known.
        table: Option<&'static str>,
        /// Whether they can only be a few, so that it may run on a task.
        cost: Cost,
    },
}

/// What the writer did with a [`Batch`], told only after its COMMIT.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Receipt {
    /// The integer keys, one for each position in [`Batch::keys`].
    pub keys: Vec<i64>,
    /// The commit number, if any stamped table was touched.
    pub commit_seq: Option<i64>,
    /// The rows that steps returned, each with its position in [`Batch::steps`], in order.
    pub computed: Vec<(usize, Vec<Value>)>,
    /// How many rows each step changed of which [`Expect::Any`] is expected, with its position in [`Batch::steps`].
    pub changed: Vec<(usize, u64)>,
    /// The first rows of a [`Chunk`](crate::sql::Chunk) that were passed over.
    pub passed_over: Vec<usize>,
}

/// A step that did not change exactly one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mismatch {
    /// The position in [`Batch::steps`].
    pub step: usize,
    /// The row that is there now.
    pub found: Option<Vec<Value>>,
}

/// Why a [`Batch`] was not applied.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Some steps did not change exactly one row.
    Mismatches(Vec<Mismatch>),
    /// A step failed.
    Step {
        /// The position in [`Batch::steps`].
        step: usize,
        /// Why.
        error: Error,
    },
    /// The batch as a whole failed: at its end, at COMMIT, or before it began.
    Whole(Error),
}

impl Refusal {
    /// The error, but for a lost race.
    pub(crate) const fn error(&self) -> Option<&Error> {
        match self {
            Self::Whole(error) | Self::Step { error, .. } => Some(error),
            Self::Mismatches(_) => None,
        }
    }

    /// The error of who has no entities to name.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Whole(error) | Self::Step { error, .. } => error,
            Self::Mismatches(_) => Error::new(
                ErrorKind::Conflict,
                "a row that was to be written is another by now: nothing was written",
            ),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Whole(error)
    }
}
