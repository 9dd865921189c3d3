//! What a session did and saw, in order: enough to do it again on the present database and to compare.

use std::{sync::Arc, time::Duration};

use crate::{
    engine::{history::Since, hooks::Draw, isolation::Isolation, seen::Seen},
    sql::{Arg, Batch, Mismatch, Receipt, Refusal, Step},
    value::Value,
};

/// See the module's page.
#[derive(Debug)]
pub(in crate::engine) struct Recording {
    pub(in crate::engine) isolation: Isolation,
    pub(in crate::engine) events: Vec<Event>,
    /// Of the saves that were not undone.
    pub(in crate::engine) tokens: Vec<Arc<str>>,
    /// The state of the database that the session saw.
    pub(in crate::engine) since: Since,
    /// The rows that it changed, by table; noted for `Isolation::Snapshot` alone.
    pub(in crate::engine) rows: Vec<(Box<str>, Vec<i64>)>,
    /// How long its statements took: what a replay will take, about.
    pub(in crate::engine) cost: Duration,
    /// Some statement may have written.
    pub(in crate::engine) writes: bool,
    /// How much memory its values take.
    pub(in crate::engine) bytes: u64,
}

/// More work than this is too long for a task: about what the writer does for one leader.
const LONG: Duration = Duration::from_millis(1);

impl Recording {
    /// How much it is, in statements; a slow one counts as many.
    pub(in crate::engine) fn size(&self) -> usize {
        let by_time = usize::try_from(self.cost.as_micros() / 4).unwrap_or(usize::MAX);
        self.events.len().max(by_time)
    }

    /// Whether a replay takes too long for a task.
    pub(in crate::engine) fn is_long(&self) -> bool {
        self.cost > LONG || self.events.len() > 64
    }
}

/// One thing that a session did.
#[derive(Debug)]
pub(in crate::engine) enum Event {
    /// A statement ran.
    Query(Query),
    /// A batch was applied, or refused.
    Batch(Box<Applied>),
    /// A savepoint began.
    Savepoint(u32),
    /// It ended, and what it did stays.
    Release(u32),
    /// It ended, and what it did was undone. What was read in it was seen.
    Undo(u32),
}

/// A statement, what it was given, and what was seen of it.
#[derive(Debug)]
pub(in crate::engine) struct Query {
    pub(in crate::engine) text: Arc<str>,
    pub(in crate::engine) args: Vec<Value>,
    pub(in crate::engine) given: Given,
    /// Whether SQLite says that it writes nothing.
    pub(in crate::engine) reads_only: bool,
    /// Whether the client saw the names of columns.
    pub(in crate::engine) is_raw: bool,
    pub(in crate::engine) seen: Seen,
    /// The table of an entity that was read by its key, which is what the arguments are then.
    pub(in crate::engine) entity: Option<&'static str>,
}

/// A batch, the keys that it was given, and what came of it.
#[derive(Debug)]
pub(in crate::engine) struct Applied {
    pub(in crate::engine) batch: Batch,
    pub(in crate::engine) keys: Vec<i64>,
    pub(in crate::engine) given: Given,
    pub(in crate::engine) outcome: AppliedOutcome,
    /// Which rowid was inserted last.
    pub(in crate::engine) rowid: i64,
}

/// What came of a batch.
#[derive(Debug, PartialEq)]
pub(in crate::engine) enum AppliedOutcome {
    /// It was applied; the keys were given to it, the rest was computed.
    Applied(Receipt),
    /// Steps met other rows than expected.
    Mismatched(Vec<Mismatch>),
    /// It failed at a step, or as a whole, with this error.
    Failed(Option<usize>, String),
}

/// What a statement was given that differs from run to run.
#[derive(Debug, Default)]
pub(in crate::engine) struct Given {
    /// The time, if it asked.
    pub(in crate::engine) time: Option<i64>,
    pub(in crate::engine) draws: Vec<Draw>,
}

impl Event {
    /// How much memory it takes, about.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        let values = |values: &mut dyn Iterator<Item = &Value>| -> usize {
            values
                .map(|value| match value {
                    Value::Text(text) => text.len(),
                    Value::Blob(bytes) => bytes.len(),
                    _ => 0,
                })
                .sum()
        };
        let bytes = size_of::<Self>()
            + match self {
                Self::Query(query) => {
                    query.text.len() + query.given.bytes() + values(&mut query.args.iter())
                }
                Self::Batch(applied) => {
                    let steps = &applied.batch.steps;
                    let args = steps.iter().flat_map(|step| &step.args);
                    let mut args = args.filter_map(|arg| match arg {
                        Arg::Value(value) => Some(value),
                        Arg::Key(_) => None,
                    });
                    let told = match &applied.outcome {
                        AppliedOutcome::Applied(receipt) => &receipt.computed[..],
                        _ => &[],
                    };
                    let told = told.iter().flat_map(|(_, row)| row);
                    steps.len() * size_of::<Step>()
                        + applied.given.bytes()
                        + told.clone().count() * size_of::<Value>()
                        + values(&mut args)
                        + values(&mut told.clone())
                }
                Self::Savepoint(_) | Self::Release(_) | Self::Undo(_) => 0,
            };
        bytes as u64
    }
}

impl Given {
    fn bytes(&self) -> usize {
        let bytes = |draw: &Draw| match draw {
            Draw::Bytes(bytes) => bytes.len(),
            Draw::Number(_) | Draw::Key(_) => size_of::<Draw>(),
        };
        self.draws.iter().map(bytes).sum()
    }
}

impl AppliedOutcome {
    pub(in crate::engine) fn of(answer: &Result<Receipt, Refusal>) -> Self {
        match answer {
            Ok(receipt) => Self::Applied(receipt.clone()),
            Err(Refusal::Mismatches(mismatches)) => Self::Mismatched(mismatches.clone()),
            Err(Refusal::Step { step, error }) => Self::Failed(Some(*step), error.to_string()),
            Err(Refusal::Whole(error)) => Self::Failed(None, error.to_string()),
        }
    }
}
