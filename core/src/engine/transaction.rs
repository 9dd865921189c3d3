//! An exclusive write transaction: holds the slot and a connection from BEGIN to COMMIT.
//!
//! | state | what is possible | next |
//! |---|---|---|
//! | open | everything | ended, done |
//! | ended: SQLite rolled it back (`ON CONFLICT ROLLBACK`, a full disk, an interrupt) | rolling back | done |
//! | done | nothing: the value is consumed or dropped | |
//!
//! Typed statements and sqlx's share one connection, in turn: before a typed one, sqlx's worker is made idle
//! (`ready`). A raw query that failed or was dropped may have ended the transaction; whatever comes next first asks
//! SQLite whether it is still open, so that nothing ever runs outside of it.
//!
//! Dropping needs no await: connection and lease go to a thread, which interrupts, waits for sqlx's worker, rolls
//! back, asks SQLite, and only then passes the slot on.

mod guard;
mod held;
mod raw;

pub use self::guard::TransactionGuard;
pub(in crate::engine) use self::held::turn;

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use self::held::Held;
use crate::{
    engine::{
        Attachment,
        apply::{Numbering, is_long},
        busy,
        connection::execute,
        core::Core,
        fate::{Fate, Fates, Witness},
        ffi::has_deferred_violations,
        hooks::Mark,
        reader, save_record,
        slot::Label,
        stamp::stamp,
        writer::{commit, in_savepoint},
    },
    error::{Error, ErrorKind, Result},
    sql::{Batch, Cost, Executor, Read, Receipt, Refusal, Rows},
};

/// An exclusive write transaction: nobody else writes the file while it is open.
///
/// It takes typed queries, a context ([`Transaction::context`](crate::context)), and raw sqlx queries as
/// `&mut *tx`. What raw SQL may not do here (BEGIN, COMMIT, ATTACH, temporary objects, pragmas that write) is
/// refused with what to use instead.
#[derive(Debug)]
pub struct Transaction {
    core: Arc<Core>,
    attachment: Option<Attachment>,
    held: Option<Held>,
    state: State,
    /// A raw query was begun and did not end well, or not yet.
    unfinished: bool,
    /// Savepoints that are open.
    depth: u32,
    /// Of the saves in it: they get the commit number.
    tokens: Vec<Arc<str>>,
    /// Who is told what becomes of it.
    fates: Fates,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

impl Transaction {
    /// Waits for the slot, and begins.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        attachment: Option<Attachment>,
        label: Label,
    ) -> Result<Self> {
        let held = Held::acquire(&core, label).await?;
        // The guard is armed before BEGIN: dropped from here on, it rolls back what there is.
        let mut transaction = Self {
            core,
            attachment,
            held: Some(held),
            state: State::Open,
            unfinished: false,
            depth: 0,
            tokens: Vec::new(),
            fates: Fates::default(),
        };
        transaction.begin_immediate().await?;
        Ok(transaction)
    }

    pub(crate) const fn attachment(&self) -> Option<&Attachment> {
        self.attachment.as_ref()
    }

    pub(in crate::engine) fn is_on(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Who will see what becomes of what was written so far.
    pub(crate) fn witness(&mut self) -> Witness {
        self.fates.witness()
    }

    async fn begin_immediate(&mut self) -> Result<()> {
        let core = Arc::clone(&self.core);
        let begin = move |connection: &Connection| {
            let begun = core
                .authorizer
                .ours(|| execute(connection, "BEGIN IMMEDIATE"));
            if begun.is_ok() {
                core.writer().begun_elsewhere(connection)?;
            }
            begun
        };
        match self.with(begin.clone()).await? {
            Err(error) if error.kind() == ErrorKind::Busy => {}
            begun => return begun,
        }
        // Another process writes. A thread waits for it.
        self.core.counters.busy.add(1);
        let timeout = self.core.options.busy_timeout;
        // Once nobody waits for this transaction any more, the slot is for the next.
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let wait = move |connection: &Connection| {
            busy::retrying(timeout, || match still.upgrade() {
                Some(_) => begin(connection),
                None => Err(gone()),
            })
        };
        let begun = self.on_thread(wait).await;
        drop(wanted);
        begun?
    }

    /// Applies a batch inside a savepoint: all of it or nothing, and the transaction goes on either way.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub(crate) async fn apply(&mut self, batch: &Batch) -> Result<Receipt, Refusal> {
        let core = Arc::clone(&self.core);
        self.ready().await?;
        let applied = if core.runs_inline() && !is_long(batch) {
            in_savepoint_of_ours(&core, self.connection()?, batch)
        } else {
            let batch = batch.clone();
            self.on_thread(move |connection| in_savepoint_of_ours(&core, connection, &batch))
                .await?
        };
        self.notice_end();
        if applied.is_ok() {
            self.tokens.extend(batch.token.clone());
        }
        applied
    }

    /// Runs `body`; when it fails, what it did is undone, and the transaction goes on.
    ///
    /// # Errors
    ///
    /// The body's error, or that of the savepoint.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the transaction can only be rolled back: what the body did so far is not told
    /// from what was done before it.
    pub async fn savepoint<T>(
        &mut self,
        body: impl AsyncFnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let core = Arc::clone(&self.core);
        let name = self.depth;
        let run = |sql: String| {
            let core = Arc::clone(&core);
            move |connection: &Connection| {
                core.authorizer.ours(|| {
                    connection
                        .execute_batch(&sql)
                        .map_err(crate::engine::sqlite_error::from_rusqlite)
                })
            }
        };
        let (mark, tokens, fates) = (core.watch.mark(), self.tokens.len(), self.fates.mark());
        self.with(run(format!("SAVEPOINT anabranch_{name}")))
            .await??;
        self.depth += 1;
        let release = format!("RELEASE anabranch_{name}");
        match body(self).await {
            Ok(value) => {
                self.with(run(release)).await??;
                self.depth = name;
                Ok(value)
            }
            Err(first) => {
                self.fates.undone_since(fates);
                let undo = format!("ROLLBACK TO anabranch_{name}; {release}");
                match self.with(run(undo)).await.flatten() {
                    Ok(()) => {
                        core.watch.rewind(&mark);
                        self.tokens.truncate(tokens);
                        self.depth = name;
                    }
                    // Mostly since the transaction is gone as a whole; the first error says why.
                    Err(second) => tracing::debug!(%second, "while undoing a savepoint"),
                }
                Err(first)
            }
        }
    }

    /// Ends the transaction and keeps what it did; returns the commit number if a stamped table was touched.
    ///
    /// # Errors
    ///
    /// Kind `ForeignKey` when a deferred reference points at no row, `Full`, `Io` and so on when SQLite cannot
    /// commit; the transaction is rolled back then. Kind `OutcomeUnknown` when an I/O error leaves it open whether
    /// the commit took place.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it commits or it does not; the writer is fine either way.
    pub(crate) async fn commit(mut self) -> Result<Option<i64>> {
        self.ready().await?;
        if self.depth > 0 {
            return Err(Error::new(
                ErrorKind::TransactionEnded,
                "a savepoint was dropped before its end: the transaction was rolled back",
            ));
        }
        let core = Arc::clone(&self.core);
        let waits = core.commit_waits_for_disk();
        let tokens = std::mem::take(&mut self.tokens);
        let mut fates = std::mem::take(&mut self.fates);
        // From here on the commit takes place or does not, whether or not anybody waits for it.
        fates.committing();
        let end = move |connection: &Connection| -> Result<Option<i64>> {
            if has_deferred_violations(connection) {
                return Err(Error::new(
                    ErrorKind::ForeignKey,
                    "at the end of the transaction a reference points at no row: it was rolled back",
                ));
            }
            core.look(connection)?;
            core.authorizer.ours(|| {
                let number = stamp(connection, &core.watch)?;
                if let Some(number) = number {
                    for token in &tokens {
                        save_record::set_number(connection, token, number)?;
                    }
                }
                let committed = commit(&core, connection);
                fates.ended(match &committed {
                    Ok(()) => Fate::Committed(number),
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Fate::Unknown,
                    Err(_) => Fate::RolledBack,
                });
                committed.map(|()| number)
            })
        };
        let committed = if waits {
            self.on_thread(end).await?
        } else {
            self.with(end).await?
        };
        let number = committed?;
        self.core.counters.transactions.add(1);
        self.core.writer().committed_elsewhere();
        if let Some(held) = self.held.take() {
            held.give_back();
        }
        Ok(number)
    }

    /// Ends the transaction and undoes what it did.
    ///
    /// # Errors
    ///
    /// When the connection cannot be used any more; the transaction is undone all the same.
    pub(crate) async fn rollback(mut self) -> Result<()> {
        self.fates.ended(Fate::RolledBack);
        self.settle().await?;
        let core = Arc::clone(&self.core);
        let undone = move |connection: &Connection| {
            if connection.is_autocommit() {
                return Ok(());
            }
            core.authorizer.ours(|| execute(connection, "ROLLBACK"))
        };
        let undone = if self.core.runs_inline() {
            undone(self.connection()?)
        } else {
            self.on_thread(undone).await?
        };
        undone?;
        self.core.watch.rewind(&Mark::default());
        self.core.counters.rolled_back.add(1);
        if let Some(held) = self.held.take() {
            held.give_back();
        }
        Ok(())
    }

    /// Runs typed work: on this task, or on a thread.
    async fn with<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> R + Send + 'static,
    ) -> Result<R> {
        self.ready().await?;
        if self.core.runs_inline() {
            return Ok(work(self.connection()?));
        }
        self.on_thread(work).await
    }

    /// Runs typed work on a thread, which has the connection meanwhile; if nobody waits for it any more, the thread
    /// ends the transaction.
    async fn on_thread<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> R + Send + 'static,
    ) -> Result<R> {
        let mut held = self.held.take().ok_or_else(gone)?;
        let (answer, answered) = oneshot::channel();
        self.core.threads.run(move || {
            let outcome = held.view().map(work);
            // Not received: `held` is dropped with the answer, which undoes the transaction.
            drop(answer.send((held, outcome)));
        })?;
        let (held, outcome) = answered.await.map_err(|_| gone())?;
        self.held = Some(held);
        outcome
    }

    /// Waits until the connection can be used for typed work, and makes sure that the transaction is open.
    async fn ready(&mut self) -> Result<()> {
        if self.state == State::Ended {
            return Err(gone());
        }
        if self.core.whereabouts.is_moved() {
            return Err(self.core.moved());
        }
        self.settle().await?;
        if std::mem::take(&mut self.unfinished) {
            self.look_for_end()?;
        }
        Ok(())
    }

    /// Waits until sqlx's worker is idle; a query that nobody waits for is stopped.
    async fn settle(&mut self) -> Result<()> {
        let unfinished = self.unfinished;
        let held = self.held.as_mut().ok_or_else(gone)?;
        held.settle(unfinished).await
    }

    /// Asks SQLite whether it ended the transaction by itself.
    fn look_for_end(&mut self) -> Result<()> {
        if self.connection()?.is_autocommit() {
            self.state = State::Ended;
            self.fates.ended(Fate::RolledBack);
            return Err(gone());
        }
        Ok(())
    }

    /// The same after a statement whose own error, if any, says more than that the transaction is gone.
    fn notice_end(&mut self) {
        if let Err(ended) = self.look_for_end() {
            tracing::debug!(%ended, "a statement ended its transaction");
        }
    }

    fn connection(&mut self) -> Result<&Connection> {
        self.held.as_mut().ok_or_else(gone)?.view()
    }
}

fn in_savepoint_of_ours(
    core: &Core,
    connection: &Connection,
    batch: &Batch,
) -> Result<Receipt, Refusal> {
    core.authorizer
        .ours(|| in_savepoint(core, connection, batch, Numbering::Later))
}

fn gone() -> Error {
    Error::new(
        ErrorKind::TransactionEnded,
        "the transaction was rolled back, by SQLite or since one of its queries was dropped: begin it anew",
    )
}

impl<'c> Executor<'c> for &'c mut Transaction {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        let is_small = read.cost == Cost::Small;
        let collect = move |connection: &Connection| reader::collect(connection, &read);
        let items = if is_small {
            self.with(collect).await?
        } else {
            self.ready().await?;
            self.on_thread(collect).await?
        };
        if items.is_err() {
            self.notice_end();
        }
        items
    }

    /// Reads all items first: the connection has to be free for what the application does between two of them.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        use futures_util::{StreamExt, TryStreamExt, stream};
        stream::once(async move { Executor::read(self, read).await })
            .map_ok(|items| stream::iter(items.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }
}
