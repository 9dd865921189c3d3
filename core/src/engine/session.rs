//! A session: a write transaction beside others, merged in commit order.

mod guard;
mod lent;
mod options;
mod private;
mod raw;
mod recorded;
mod recorded_reads;

pub use self::{guard::SessionGuard, options::ConcurrentOptions};

use std::sync::Arc;

use tracing::{Instrument as _, Span};

use self::private::{Private, PrivateSavepoint};
use crate::{
    engine::{
        Attachment, Submission,
        core::Core,
        isolation::Isolation,
        slot::Label,
        transaction::{self, Transaction},
    },
    error::{Error, ErrorKind, Result},
    observe::span,
    sql::{
        Batch, Executor, NewKey, Read, ReadTogether, Receipt, Refusal, Rows, Write, WriteExecutor,
        Written,
    },
};

/// A write transaction that runs beside others, on a snapshot of its own, and is validated when it commits.
///
/// It takes typed queries and raw sqlx queries as `&mut *s`, and a context ([`Session::context`](crate::context)). It
/// reads what it wrote; nobody else does before it is committed, and nothing of it is in the file before. All that it saw
/// is noted. To commit it, the writer does the same again on the present database: if anything would look different, the
/// session is in conflict, and nothing is written.
///
/// [`Database::concurrent`](crate::database::Database::concurrent) runs a closure in one, and again after a conflict;
/// [`Database::begin_concurrent`](crate::database::Database::begin_concurrent) gives one to hold. Dropped, it is undone.
///
/// ```
/// use anabranch::prelude::*;
///
/// # #[derive(Debug, Entity)]
/// # struct Seat { #[entity(id)] id: i64, guest: Option<String> }
/// # async fn is_paid(_guest: &str) -> bool { true }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Seat>().await?;
/// # let mut ctx = db.context();
/// # ctx.add(Seat { id: 0, guest: None });
/// # ctx.save_changes().await?;
/// let seat = db
///     .concurrent(async |s| {
///         let Some(free) = Seat::query().filter(Seat::GUEST.is_null()).first(&mut *s).await? else {
///             return Ok(None);
///         };
///         let paid = is_paid("Ada").await; // nobody waits for this but the session itself
///         sqlx::query("UPDATE seat SET guest = ? WHERE id = ?")
///             .bind(paid.then_some("Ada"))
///             .bind(free.id)
///             .execute(&mut *s)
///             .await?;
///         Ok(Some(free.id))
///     })
///     .await?;
/// assert_eq!(seat, Some(1));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Session {
    way: Way,
    attempt: u32,
}

/// How a session writes.
#[derive(Debug)]
enum Way {
    /// Beside others, on a snapshot; it is validated when it commits.
    Private(Box<Private>),
    /// In the writer's slot, alone: it cannot conflict.
    Exclusive(Box<Transaction>),
}

/// A session that is about to be committed.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each commit, and it is moved nowhere"
)]
pub(crate) enum Committing {
    /// It waits for the writer.
    Queued(Submission),
    /// It has the writer.
    Exclusive(Box<Transaction>),
    /// It wrote nothing.
    Nothing,
}

/// A savepoint that is open.
#[derive(Debug)]
enum Savepoint {
    Private(PrivateSavepoint),
    Exclusive(transaction::Savepoint),
}

impl Session {
    /// Begins a session.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        attachment: Option<Attachment>,
        isolation: Isolation,
        label: Label,
    ) -> Result<Self> {
        match Private::begin(&core, attachment.clone(), isolation, label).await? {
            Some(private) => Ok(Self {
                way: Way::Private(Box::new(private)),
                attempt: 1,
            }),
            None => Self::begin_exclusive(core, attachment, label).await,
        }
    }

    /// Begins one in the writer's slot.
    pub(in crate::engine) async fn begin_exclusive(
        core: Arc<Core>,
        attachment: Option<Attachment>,
        label: Label,
    ) -> Result<Self> {
        let transaction = Transaction::begin(core, attachment, label).await?;
        Ok(Self {
            way: Way::Exclusive(Box::new(transaction)),
            attempt: 1,
        })
    }

    /// Whether this run holds the writer, so that nobody else writes meanwhile and it cannot conflict: the last
    /// attempt of `db.concurrent`, or one on a system where sessions cannot run side by side.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        matches!(self.way, Way::Exclusive(_))
    }

    /// Which run of the closure this is, counted from 1: `db.concurrent` runs it again after a conflict.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(in crate::engine) fn set_attempt(&mut self, attempt: u32) {
        self.attempt = attempt;
        self.span().record("anabranch.attempt", attempt);
    }

    /// The name of its file.
    pub(crate) fn namespace(&self) -> &str {
        match &self.way {
            Way::Private(private) => private.exchange.core().counters.told.namespace(),
            Way::Exclusive(transaction) => transaction.namespace(),
        }
    }

    /// In which it is told of.
    pub(in crate::engine) const fn span(&self) -> &Span {
        match &self.way {
            Way::Private(private) => private.exchange.told().1,
            Way::Exclusive(transaction) => transaction.span(),
        }
    }

    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        match &self.way {
            Way::Private(private) => private.attachment.as_ref(),
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
            Way::Private(private) => private.apply(batch).await,
            Way::Exclusive(transaction) => transaction.apply(&batch).await,
        }
    }

    /// A key that nobody else is given.
    pub(crate) async fn next_key(&mut self, key: NewKey) -> Result<i64> {
        match &mut self.way {
            Way::Private(private) => private.next_key(key).await,
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
        let savepoint = self.begin_savepoint().await?;
        match body(self).await {
            Ok(value) => {
                self.release(savepoint).await?;
                Ok(value)
            }
            Err(error) => {
                self.undo(savepoint).await;
                Err(error)
            }
        }
    }

    async fn begin_savepoint(&mut self) -> Result<Savepoint> {
        Ok(match &mut self.way {
            Way::Private(private) => Savepoint::Private(private.begin_savepoint().await?),
            Way::Exclusive(transaction) => {
                Savepoint::Exclusive(transaction.begin_savepoint().await?)
            }
        })
    }

    async fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        match (&mut self.way, savepoint) {
            (Way::Private(private), Savepoint::Private(savepoint)) => {
                private.release(savepoint).await
            }
            (Way::Exclusive(transaction), Savepoint::Exclusive(savepoint)) => {
                transaction.release(savepoint).await
            }
            _ => Err(exchanged()),
        }
    }

    async fn undo(&mut self, savepoint: Savepoint) {
        match (&mut self.way, savepoint) {
            (Way::Private(private), Savepoint::Private(savepoint)) => {
                private.undo(savepoint).await;
            }
            (Way::Exclusive(transaction), Savepoint::Exclusive(savepoint)) => {
                transaction.undo(savepoint).await;
            }
            _ => {}
        }
    }

    pub(in crate::engine) async fn commit(self) -> Result<Option<i64>> {
        let span = self.span().clone();
        let committed = self.commit_told().instrument(span.clone()).await;
        match &committed {
            Ok(_) => drop(span.record("anabranch.outcome", "committed")),
            Err(error) => span::set_error(&span, error.kind()),
        }
        committed
    }

    async fn commit_told(self) -> Result<Option<i64>> {
        match self.submit().await? {
            Committing::Queued(mut submission) => {
                let receipt = submission.outcome().await.into_receipt()?;
                Ok(receipt.commit_seq)
            }
            Committing::Exclusive(transaction) => transaction.commit().await,
            Committing::Nothing => Ok(None),
        }
    }

    /// Ends the session but for what its commit waits for.
    pub(crate) async fn submit(self) -> Result<Committing> {
        Ok(match self.way {
            Way::Private(private) => match private.submit().await? {
                Some(submission) => Committing::Queued(submission),
                None => Committing::Nothing,
            },
            Way::Exclusive(transaction) => Committing::Exclusive(transaction),
        })
    }

    pub(in crate::engine) async fn rollback(self) -> Result<()> {
        self.span().record("anabranch.outcome", "rolled_back");
        match self.way {
            Way::Private(private) => private.rollback().await,
            Way::Exclusive(transaction) => transaction.rollback().await,
        }
    }
}

/// Another session was put in place of this one meanwhile.
fn exchanged() -> Error {
    Error::new(
        ErrorKind::Refused,
        "the session is not the one in which the savepoint began",
    )
}

impl<'c> Executor<'c> for &'c mut Session {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        match &mut self.way {
            Way::Private(private) => private.read(read).await,
            Way::Exclusive(transaction) => transaction.read(read).await,
        }
    }

    async fn read_together<T: Send + 'static>(self, reads: ReadTogether<T>) -> Result<T> {
        match &mut self.way {
            Way::Private(private) => private.read_together(reads).await,
            Way::Exclusive(transaction) => transaction.read_together(reads).await,
        }
    }

    /// A session that has the writer streams as a transaction does. Else all items are read first: what is seen of the rows is
    /// noted, and a row that the application had not asked for yet would count, or not, by chance.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        use futures_util::{StreamExt, TryStreamExt, stream};
        match &mut self.way {
            Way::Exclusive(transaction) => Executor::stream(&mut **transaction, read),
            Way::Private(private) => stream::once(async move { private.read(read).await })
                .map_ok(|items| stream::iter(items.into_iter().map(Ok)))
                .try_flatten()
                .boxed(),
        }
    }
}

impl<'c> WriteExecutor<'c> for &'c mut Session {
    async fn write(self, write: Write) -> Result<Written> {
        let receipt = self.apply(write.batch).await.map_err(Refusal::into_error)?;
        Ok(Written { receipt })
    }
}
