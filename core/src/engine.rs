//! SQLite: connections, the one writer, transactions. It knows statements, not entities.

mod submission;
mod transaction;

pub use self::{
    submission::{Outcome, Submission},
    transaction::Transaction,
};

use crate::{
    error::Result,
    sql::{Batch, Executor, Read, Rows},
};

/// One database file in this process; a cheap clone.
#[derive(Debug, Clone)]
pub struct Engine {}

impl Engine {
    /// Hands a batch to the writer.
    #[must_use]
    pub fn submit(&self, _batch: Batch) -> Submission {
        unimplemented!()
    }
}

impl<'c> Executor<'c> for &'c Engine {
    async fn read<T: Send + 'static>(self, _read: Read<T>) -> Result<Vec<T>> {
        unimplemented!()
    }

    fn stream<T: Send + 'static>(self, _read: Read<T>) -> Rows<'c, T> {
        unimplemented!()
    }
}
