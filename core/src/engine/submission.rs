//! A batch on its way through the writer.

use crate::sql::{Receipt, Refusal};

/// A batch that was handed to the writer, and the place where its answer will lie.
#[derive(Debug)]
pub struct Submission {}

/// What became of a batch.
#[derive(Debug)]
pub enum Outcome {
    /// It was committed.
    Committed(Receipt),
    /// It was not applied.
    Refused(Refusal),
    /// The wait for it was given up while it was still queued: nothing ran.
    Withdrawn,
}

impl Submission {
    /// Waits for the answer; to be called until it answered once.
    ///
    /// # Cancel safety
    ///
    /// Dropped while the batch is queued: it is taken out of the queue, and the next call says `Withdrawn`. Dropped
    /// while it runs: it ends as it ends, and the next call says how.
    pub async fn outcome(&mut self) -> Outcome {
        unimplemented!()
    }

    /// The answer, if it is there already.
    pub fn try_outcome(&mut self) -> Option<Outcome> {
        unimplemented!()
    }
}
