//! What every unit of a transaction is made of, a save's or a session's: a savepoint, batches, a commit number.

use std::{sync::Arc, time::Duration};

use rusqlite::Connection;

use crate::{
    engine::{
        apply::{Keys, apply},
        connection::execute,
        hooks::{Mark, Watch},
        narrator::Narrator,
        save_record, stamp,
    },
    error::Result,
    sql::{Batch, Receipt, Refusal},
};

/// A savepoint around a unit.
#[derive(Debug)]
pub(in crate::engine) struct Savepoint(Mark);

impl Savepoint {
    pub(in crate::engine) fn begin(connection: &Connection, watch: &Watch) -> Result<Self> {
        let mark = watch.mark();
        execute(connection, "SAVEPOINT anabranch_save")?;
        Ok(Self(mark))
    }

    /// Keeps what the unit did, or undoes it if it failed.
    pub(in crate::engine) fn end<T>(
        self,
        connection: &Connection,
        watch: &Watch,
        answer: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if answer.is_err() {
            watch.rewind(&self.0);
            if connection.is_autocommit() {
                return answer;
            }
        }
        let undone = match answer {
            Ok(_) => Ok(()),
            Err(_) => execute(connection, "ROLLBACK TO anabranch_save"),
        };
        let Err(error) = undone.and_then(|()| execute(connection, "RELEASE anabranch_save")) else {
            return answer;
        };
        // What the unit did can neither be kept nor undone alone: the whole transaction goes, and the caller sees that.
        tracing::error!(error = %error.in_log(), "a savepoint could not be ended");
        drop(execute(connection, "ROLLBACK"));
        answer.and(Err(Refusal::Whole(error)))
    }
}

/// Runs a unit in a savepoint of the open transaction, and undoes it on an error.
pub(in crate::engine) fn in_savepoint<T>(
    connection: &Connection,
    watch: &Watch,
    run: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let savepoint = Savepoint::begin(connection, watch)?;
    savepoint.end(connection, watch, run())
}

/// Applies a batch and records its token, if it has one.
pub(in crate::engine) fn apply_once(
    narrator: Narrator<'_>,
    connection: &Connection,
    keys: Keys<'_>,
    batch: &Batch,
    retention: Duration,
) -> Result<Receipt, Refusal> {
    if let Some(token) = &batch.token {
        // First: whoever saves the same again is told so, and not of a row that exists already.
        save_record::insert(connection, token, retention)?;
    }
    apply(narrator, connection, keys, batch)
}

/// Stamps what was touched, and tells the tokens their number.
pub(in crate::engine) fn number(
    connection: &Connection,
    watch: &Watch,
    tokens: &[Arc<str>],
) -> Result<Option<i64>> {
    let number = stamp::stamp(connection, watch)?;
    if let Some(number) = number {
        for token in tokens {
            save_record::set_number(connection, token, number)?;
        }
    }
    Ok(number)
}
