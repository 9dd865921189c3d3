//! A transaction that its holder ends.

use std::ops::{Deref, DerefMut};

use crate::{engine::transaction::Transaction, error::Result};

/// An exclusive write transaction, rolled back when dropped. `&mut *tx` is the [`Transaction`] itself.
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct TransactionGuard(Transaction);

impl TransactionGuard {
    pub(crate) const fn new(transaction: Transaction) -> Self {
        Self(transaction)
    }

    /// Ends the transaction and keeps what it did; returns the commit number if a stamped table was touched.
    ///
    /// # Errors
    ///
    /// Kind `ForeignKey` when a deferred reference points at no row, `Full` or another when SQLite cannot commit:
    /// the transaction is rolled back then. Kind `OutcomeUnknown` when an I/O error leaves it open whether the
    /// commit took place; `TransactionEnded` when SQLite had rolled it back already.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it commits or it does not; the writer is fine either way.
    pub async fn commit(self) -> Result<Option<i64>> {
        self.0.commit().await
    }

    /// Ends the transaction and undoes what it did.
    ///
    /// # Errors
    ///
    /// When the connection cannot be used any more; what the transaction did is undone all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it is undone as well.
    pub async fn rollback(self) -> Result<()> {
        self.0.rollback().await
    }
}

impl Deref for TransactionGuard {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.0
    }
}

impl DerefMut for TransactionGuard {
    fn deref_mut(&mut self) -> &mut Transaction {
        &mut self.0
    }
}
