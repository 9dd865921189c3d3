//! A session: a write transaction beside others, merged in commit order.

mod guard;
mod options;
mod raw;

pub use self::{
    guard::SessionGuard,
    options::{ConcurrentOptions, Isolation},
};

use std::sync::Arc;

use crate::{
    engine::{
        Attachment,
        core::Core,
        slot::Label,
        transaction::{self, Transaction},
    },
    error::Result,
    sql::{Batch, Executor, NewKey, Read, Receipt, Refusal, Rows},
};

/// A write transaction that runs beside others.
///
/// It takes typed queries and raw sqlx queries as `&mut *s`, and a context ([`Session::context`](crate::context)).
#[derive(Debug)]
pub struct Session {
    way: Way,
}

/// How a session writes.
#[derive(Debug)]
enum Way {
    /// In the writer's slot, alone: it cannot conflict.
    Exclusive(Transaction),
}

/// A savepoint that is open.
#[derive(Debug)]
enum Savepoint {
    Exclusive(transaction::Savepoint),
}

impl Session {
    /// Begins a session.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        attachment: Option<Attachment>,
        _isolation: Isolation,
        label: Label,
    ) -> Result<Self> {
        Self::begin_exclusive(core, attachment, label).await
    }

    /// Begins one in the writer's slot.
    pub(in crate::engine) async fn begin_exclusive(
        core: Arc<Core>,
        attachment: Option<Attachment>,
        label: Label,
    ) -> Result<Self> {
        let transaction = Transaction::begin(core, attachment, label).await?;
        Ok(Self {
            way: Way::Exclusive(transaction),
        })
    }

    /// Whether this run holds the writer, so that nobody else writes meanwhile and it cannot conflict: the last
    /// attempt of `db.concurrent`, or one on a system where sessions cannot run side by side.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        match &self.way {
            Way::Exclusive(_) => true,
        }
    }

    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        match &self.way {
            Way::Exclusive(transaction) => transaction.attachment(),
        }
    }

    /// Applies a batch inside a savepoint: all of it or nothing, and the session goes on either way.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub(crate) async fn apply(&mut self, batch: Batch) -> Result<Receipt, Refusal> {
        match &mut self.way {
            Way::Exclusive(transaction) => transaction.apply(&batch).await,
        }
    }

    /// A key that nobody else is given.
    pub(crate) async fn next_key(&mut self, key: NewKey) -> Result<i64> {
        match &mut self.way {
            Way::Exclusive(transaction) => transaction.next_key(key).await,
        }
    }

    /// Runs `body`; when it fails, what it did is undone, and the session goes on.
    ///
    /// What was read in it was seen all the same, and counts when the session is validated.
    ///
    /// # Errors
    ///
    /// The body's error, or that of the savepoint.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the session can only be rolled back: what the body did so far is not told from what was
    /// done before it.
    pub async fn savepoint<T>(
        &mut self,
        body: impl AsyncFnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let savepoint = match &mut self.way {
            Way::Exclusive(transaction) => {
                Savepoint::Exclusive(transaction.begin_savepoint().await?)
            }
        };
        let outcome = body(self).await;
        match (&mut self.way, savepoint) {
            (Way::Exclusive(transaction), Savepoint::Exclusive(savepoint)) => match outcome {
                Ok(value) => {
                    transaction.release(savepoint).await?;
                    Ok(value)
                }
                Err(error) => {
                    transaction.undo(savepoint).await;
                    Err(error)
                }
            },
        }
    }

    pub(in crate::engine) async fn commit(self) -> Result<Option<i64>> {
        match self.way {
            Way::Exclusive(transaction) => transaction.commit().await,
        }
    }

    pub(in crate::engine) async fn rollback(self) -> Result<()> {
        match self.way {
            Way::Exclusive(transaction) => transaction.rollback().await,
        }
    }
}

impl<'c> Executor<'c> for &'c mut Session {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        match &mut self.way {
            Way::Exclusive(transaction) => transaction.read(read).await,
        }
    }

    /// Reads all items first: the connection has to be free for what the application does between two of them.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        match &mut self.way {
            Way::Exclusive(transaction) => transaction.stream(read),
        }
    }
}
