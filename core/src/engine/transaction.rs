//! An exclusive write transaction.

use crate::{
    error::Result,
    sql::{Batch, Executor, Read, Receipt, Refusal, Rows},
};

/// An exclusive write transaction.
#[derive(Debug)]
pub struct Transaction {}

impl Transaction {
    /// Applies a batch inside a savepoint: all of it or nothing, and the transaction goes on either way.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub async fn apply(&mut self, _batch: &Batch) -> Result<Receipt, Refusal> {
        unimplemented!()
    }
}

impl<'c> Executor<'c> for &'c mut Transaction {
    async fn read<T: Send + 'static>(self, _read: Read<T>) -> Result<Vec<T>> {
        unimplemented!()
    }

    fn stream<T: Send + 'static>(self, _read: Read<T>) -> Rows<'c, T> {
        unimplemented!()
    }
}
