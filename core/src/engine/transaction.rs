//! An exclusive write transaction: holds the slot and a connection from BEGIN to COMMIT.
//!
//! What it shares with sessions, the turns that typed statements and sqlx's take on the connection, is an
//! [`Exchange`](crate::engine::exchange).
//!
//! Dropping needs no await: connection and lease go to a thread, which interrupts, waits for sqlx's worker, rolls
//! back, asks SQLite, and only then passes the slot on.

mod guard;
mod held;
mod raw;

pub use self::guard::TransactionGuard;
pub(in crate::engine) use self::{
    held::turn,
    raw::{explain, refuse_nul, to_sqlx},
};

use std::{sync::Arc, time::Instant};

use rusqlite::Connection;
use tracing::{Instrument as _, Span};

use self::held::Held;
use crate::{
    engine::{
        Attachment,
        apply::{Keys, as_undone, is_long},
        busy,
        connection::execute,
        core::Core,
        exchange::{Exchange, gone, half_done},
        fate::{Fate, Fates, Witness},
        ffi::has_deferred_violations,
        hooks::Mark,
        key::next_key,
        reads::InTransaction,
        slot::Label,
        sqlite_error::from_rusqlite,
        streaming,
        unit::{apply_once, in_savepoint, number},
        writer::commit,
    },
    error::{Error, ErrorKind, Result},
    observe::span,
    sql::{
        Batch, Cost, Executor, NewKey, Read, ReadTogether, Receipt, Refusal, Rows, Write,
        WriteExecutor, Written,
    },
};

/// An exclusive write transaction: nobody else writes the file while it is open.
///
/// It takes typed queries, a context ([`Transaction::context`](crate::context)), and raw sqlx queries as
/// `&mut *tx`. What raw SQL may not do here (BEGIN, COMMIT, ATTACH, temporary objects, pragmas that write) is
/// refused with what to use instead.
#[derive(Debug)]
pub struct Transaction {
    exchange: Exchange<Held>,
    attachment: Option<Attachment>,
    /// Savepoints that are open.
    depth: u32,
    /// Of the saves in it: they get the commit number.
    tokens: Vec<Arc<str>>,
    /// Who is told what becomes of it.
    fates: Fates,
}

/// A savepoint that is open, and what it is undone to.
#[derive(Debug)]
pub(in crate::engine) struct Savepoint {
    depth: u32,
    rows: Mark,
    tokens: usize,
    fates: usize,
}

impl Transaction {
    /// Waits for the slot, and begins.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        attachment: Option<Attachment>,
        label: Label,
    ) -> Result<Self> {
        let span = span::transaction(core.counters.told.namespace(), label);
        let began = Instant::now();
        let held = Held::acquire(&core, label).instrument(span.clone()).await?;
        span::set_wait(&span, began.elapsed());
        // The guard is armed before BEGIN: dropped from here on, it rolls back what there is.
        let authorizer = Arc::clone(&core.authorizer);
        let mut transaction = Self {
            exchange: Exchange::new(core, held, authorizer, label, span),
            attachment,
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
        Arc::ptr_eq(self.exchange.core(), core)
    }

    /// Who will see what becomes of what was written so far.
    pub(crate) fn witness(&mut self) -> Witness {
        self.fates.witness()
    }

    /// The name of its file.
    pub(crate) fn namespace(&self) -> &str {
        self.exchange.core().counters.told.namespace()
    }

    /// In which it is told of.
    pub(in crate::engine) const fn span(&self) -> &Span {
        self.exchange.told().1
    }

    fn told(&self) -> (Arc<Core>, Label) {
        (Arc::clone(self.exchange.core()), self.exchange.told().0)
    }

    async fn begin_immediate(&mut self) -> Result<()> {
        let core = Arc::clone(self.exchange.core());
        let begin = move |connection: &Connection| {
            let begun = core
                .authorizer
                .ours(|| execute(connection, "BEGIN IMMEDIATE"));
            if begun.is_ok() {
                core.writer().begun_elsewhere(&core, connection)?;
            }
            begun
        };
        match self.with(begin.clone()).await? {
            Err(error) if error.kind() == ErrorKind::Busy => {}
            begun => return begun,
        }
        // Another process writes. A thread waits for it.
        self.exchange.core().counters.busy.add(1);
        let timeout = self.exchange.core().options.busy_timeout;
        // Once nobody waits for this transaction any more, the slot is for the next.
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let wait = move |connection: &Connection| {
            busy::retrying(timeout, || match still.upgrade() {
                Some(_) => begin(connection),
                None => Err(gone()),
            })
        };
        let begun = self.exchange.on_thread(wait).await;
        drop(wanted);
        begun?
    }

    /// Applies a batch inside a savepoint: all of it or nothing, and the transaction goes on either way.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub(crate) async fn apply(&mut self, batch: &Batch) -> Result<Receipt, Refusal> {
        let (core, label) = self.told();
        self.ready().await?;
        let applied = if core.runs_inline() && !is_long(batch) {
            let span = self.span().clone();
            let _entered = span.enter();
            in_savepoint_of_ours(&core, label, self.exchange.connection()?, batch)
        } else {
            let batch = batch.clone();
            self.exchange
                .on_thread(move |connection| in_savepoint_of_ours(&core, label, connection, &batch))
                .await?
        };
        self.notice_end();
        if applied.is_ok() {
            self.tokens.extend(batch.token.clone());
        }
        applied
    }

    /// A key that nobody else is given.
    pub(in crate::engine) async fn next_key(&mut self, key: NewKey) -> Result<i64> {
        let core = Arc::clone(self.exchange.core());
        self.with(move |connection| {
            core.authorizer
                .ours(|| next_key(connection, &core.watch, key))
        })
        .await?
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

    pub(in crate::engine) async fn begin_savepoint(&mut self) -> Result<Savepoint> {
        let savepoint = Savepoint {
            depth: self.depth,
            rows: self.exchange.core().watch.mark(),
            tokens: self.tokens.len(),
            fates: self.fates.mark(),
        };
        self.run_ours(format!("SAVEPOINT anabranch_{}", savepoint.depth))
            .await?;
        self.depth += 1;
        Ok(savepoint)
    }

    pub(in crate::engine) async fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        if self.depth != savepoint.depth + 1 {
            return Err(half_done());
        }
        self.run_ours(format!("RELEASE anabranch_{}", savepoint.depth))
            .await?;
        self.depth = savepoint.depth;
        Ok(())
    }

    /// Undoes what was done since; the caller has the error that says why.
    pub(in crate::engine) async fn undo(&mut self, savepoint: Savepoint) {
        self.fates.undone_since(savepoint.fates);
        let depth = savepoint.depth;
        let undo = format!("ROLLBACK TO anabranch_{depth}; RELEASE anabranch_{depth}");
        match self.run_ours(undo).await {
            Ok(()) => {
                self.exchange.core().watch.rewind(&savepoint.rows);
                self.tokens.truncate(savepoint.tokens);
                self.depth = depth;
            }
            // Mostly since the transaction is gone as a whole.
            Err(second) => tracing::debug!(second = %second.in_log(), "while undoing a savepoint"),
        }
    }

    /// Runs statements of the library's own.
    async fn run_ours(&mut self, sql: String) -> Result<()> {
        let core = Arc::clone(self.exchange.core());
        self.with(move |connection| {
            core.authorizer
                .ours(|| connection.execute_batch(&sql).map_err(from_rusqlite))
        })
        .await?
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
            return Err(half_done());
        }
        let core = Arc::clone(self.exchange.core());
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
                let number = number(connection, &core.watch, &tokens)?;
                let changes = core.writer().changes_elsewhere(&core);
                let committed = commit(&core, connection, changes);
                fates.ended(match &committed {
                    Ok(()) => Fate::Committed(number),
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Fate::Unknown,
                    Err(_) => Fate::RolledBack,
                });
                committed.map(|()| number)
            })
        };
        let committed = if waits {
            self.exchange.on_thread(end).await?
        } else {
            self.with(end).await?
        };
        if let Err(error) = &committed {
            span::set_error(self.span(), error.kind());
        }
        let number = committed?;
        self.span().record("anabranch.outcome", "committed");
        self.exchange.core().counters.transactions.add(1);
        self.exchange.core().writer().committed_elsewhere();
        if let Some(held) = self.exchange.take() {
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
        self.exchange.settle().await?;
        let core = Arc::clone(self.exchange.core());
        let undone = move |connection: &Connection| {
            if connection.is_autocommit() {
                return Ok(());
            }
            core.authorizer.ours(|| execute(connection, "ROLLBACK"))
        };
        let undone = if self.exchange.core().runs_inline() {
            undone(self.exchange.connection()?)
        } else {
            self.exchange.on_thread(undone).await?
        };
        undone?;
        self.exchange.core().watch.rewind(&Mark::default());
        self.exchange.core().counters.rolled_back.add(1);
        self.span().record("anabranch.outcome", "rolled_back");
        if let Some(held) = self.exchange.take() {
            held.give_back();
        }
        Ok(())
    }

    /// Waits until the connection can be used for typed work, and makes sure that the transaction is open.
    async fn ready(&mut self) -> Result<()> {
        let ready = self.exchange.ready().await;
        self.tell_end();
        ready
    }

    /// Runs typed work: on this task, or on a thread.
    async fn with<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> R + Send + 'static,
    ) -> Result<R> {
        self.ready().await?;
        self.exchange.with(work).await
    }

    /// Runs what only reads: on this task if it costs little, else on a thread.
    async fn reading<R: Send + 'static>(
        &mut self,
        cost: Cost,
        work: impl FnOnce(&Connection) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let read = if cost == Cost::Small {
            self.with(work).await?
        } else {
            self.ready().await?;
            self.exchange.on_thread(work).await?
        };
        if read.is_err() {
            self.notice_end();
        }
        read
    }

    /// Looks whether a statement ended the transaction.
    fn notice_end(&mut self) {
        self.exchange.notice_end();
        self.tell_end();
    }

    /// If SQLite ended the transaction, whoever wrote in it is told.
    fn tell_end(&mut self) {
        if self.exchange.has_ended() {
            self.fates.ended(Fate::RolledBack);
        }
    }
}

fn in_savepoint_of_ours(
    core: &Core,
    label: Label,
    connection: &Connection,
    batch: &Batch,
) -> Result<Receipt, Refusal> {
    core.authorizer.ours(|| {
        in_savepoint(connection, &core.watch, || {
            let retention = core.options.save_token_retention;
            let narrator = core.narrator(label, true);
            apply_once(
                narrator,
                connection,
                Keys::Writer(&core.watch),
                batch,
                retention,
            )
        })
        .map_err(|refusal| as_undone(connection, batch, refusal))
    })
}

impl<'c> Executor<'c> for &'c mut Transaction {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        let authorizer = Arc::clone(self.exchange.authorizer());
        let (core, label) = self.told();
        self.reading(read.cost, move |connection| {
            let narrator = core.narrator(label, true);
            streaming::collect(narrator, connection, &authorizer, &read)
        })
        .await
    }

    async fn read_together<T: Send + 'static>(self, reads: ReadTogether<T>) -> Result<T> {
        let authorizer = Arc::clone(self.exchange.authorizer());
        let (core, label) = self.told();
        self.reading(reads.cost, move |connection| {
            (reads.work)(&mut InTransaction {
                narrator: core.narrator(label, true),
                connection,
                authorizer: &authorizer,
                run: None,
            })
        })
        .await
    }

    /// A thread has the connection meanwhile; what comes next waits until it is back.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        streaming::items(async move {
            self.ready().await?;
            let pages = self.exchange.stream(read).await?;
            Ok((pages, ()))
        })
    }
}

impl<'c> WriteExecutor<'c> for &'c mut Transaction {
    async fn write(self, write: Write) -> Result<Written> {
        let receipt = self
            .apply(&write.batch)
            .await
            .map_err(Refusal::into_error)?;
        Ok(Written { receipt })
    }
}
