//! A transaction that is open on one connection, which typed statements and sqlx's use in turn.
//!
//! | state | what is possible | next |
//! |---|---|---|
//! | open | everything | ended, done |
//! | ended: SQLite rolled it back (`ON CONFLICT ROLLBACK`, a full disk, an interrupt) | rolling back | done |
//! | done | nothing: the value is consumed or dropped | |
//!
//! Before a typed statement sqlx's worker is made idle ([`Exchange::ready`]). A raw query that failed or was dropped may
//! have ended the transaction; whatever comes next first asks SQLite whether it is still open, so that nothing ever
//! runs outside of it.

use std::sync::Arc;

use rusqlite::Connection;
use sqlx::SqliteConnection;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::{
    engine::{
        core::Core, ffi::MixedConnection, hooks::Authorizer, slot::Label,
        sqlite_error::from_rusqlite, streaming,
    },
    error::{Error, ErrorKind, Result},
    sql::Read,
};

/// What has a connection with an open transaction, and undoes that when it is dropped.
pub(in crate::engine) trait Holds: Send + 'static {
    fn connection(&mut self) -> Option<&mut MixedConnection>;
}

/// See the module's page.
#[derive(Debug)]
pub(in crate::engine) struct Exchange<H> {
    core: Arc<Core>,
    held: Option<H>,
    /// Where it comes back from the thread of a stream.
    returning: Option<oneshot::Receiver<H>>,
    state: State,
    /// A raw query was begun and did not end well, or not yet.
    unfinished: bool,
    /// It told of an error: sqlx's worker is done with it.
    failed: bool,
    authorizer: Arc<Authorizer>,
    /// What it is called in warnings.
    label: Label,
    /// In which its statements are told of.
    span: Span,
    /// It was looked whether sqlx knows statements of another schema.
    is_schema_known: bool,
    /// The schema may be changed in the transaction.
    defines: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

/// What a raw query uses of the connection.
pub(in crate::engine) struct Raw<'c> {
    pub(in crate::engine) connection: &'c mut SqliteConnection,
    /// To be set to false once the query has ended well.
    pub(in crate::engine) unfinished: &'c mut bool,
    /// To be set to true if it told of an error.
    pub(in crate::engine) failed: &'c mut bool,
    pub(in crate::engine) authorizer: Arc<Authorizer>,
}

impl<H: Holds> Exchange<H> {
    pub(in crate::engine) fn new(
        core: Arc<Core>,
        held: H,
        authorizer: Arc<Authorizer>,
        label: Label,
        span: Span,
    ) -> Self {
        // By whoever had the connection before; the schema's version tells what became of it.
        authorizer.take_defined();
        Self {
            core,
            held: Some(held),
            returning: None,
            state: State::Open,
            unfinished: false,
            failed: false,
            authorizer,
            label,
            span,
            is_schema_known: false,
            defines: false,
        }
    }

    pub(in crate::engine) const fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(in crate::engine) const fn authorizer(&self) -> &Arc<Authorizer> {
        &self.authorizer
    }

    /// What it is called, and in which span its statements are told of.
    pub(in crate::engine) const fn told(&self) -> (Label, &Span) {
        (self.label, &self.span)
    }

    /// Takes out what has the connection.
    pub(in crate::engine) fn take(&mut self) -> Option<H> {
        self.held.take()
    }

    /// What has the connection, while it is not with a thread.
    pub(in crate::engine) fn held(&mut self) -> Result<&mut H> {
        self.held.as_mut().ok_or_else(gone)
    }

    /// Runs typed work: on this task, or on a thread.
    pub(in crate::engine) async fn with<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> R + Send + 'static,
    ) -> Result<R> {
        self.ready().await?;
        if self.core.runs_inline() {
            let span = self.span.clone();
            let _entered = span.enter();
            return Ok(work(self.connection()?));
        }
        self.on_thread(work).await
    }

    /// Runs typed work on a thread, which has the connection meanwhile; if nobody waits for it any more, the thread
    /// ends the transaction.
    pub(in crate::engine) async fn on_thread<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> R + Send + 'static,
    ) -> Result<R> {
        let mut held = self.held.take().ok_or_else(gone)?;
        let (answer, answered) = oneshot::channel();
        let span = self.span.clone();
        self.core.threads.run(move || {
            let _entered = span.enter();
            let outcome = view(&mut held).map(work);
            // Not received: `held` is dropped with the answer, which undoes the transaction.
            drop(answer.send((held, outcome)));
        })?;
        let (held, outcome) = answered.await.map_err(|_| gone())?;
        self.held = Some(held);
        outcome
    }

    /// Has a thread send the rows of a read, which has the connection until the rows end, or nobody takes them any more.
    pub(in crate::engine) async fn stream<T: Send + 'static>(
        &mut self,
        read: Read<T>,
    ) -> Result<mpsc::Receiver<Result<Vec<T>>>> {
        self.ready().await?;
        let held = self.held.take().ok_or_else(gone)?;
        let authorizer = Arc::clone(&self.authorizer);
        let (core, label, span) = (Arc::clone(&self.core), self.label, self.span.clone());
        let (pages, returned) = streaming::start(&self.core, held, move |held, pages| {
            let _entered = span.enter();
            let narrator = core.narrator(label, true);
            streaming::produce(narrator, view(held)?, &authorizer, &read, |page| {
                pages.blocking_send(Ok(page)).is_ok()
            })
        })?;
        self.returning = Some(returned);
        Ok(pages)
    }

    /// Waits for the connection, if a stream had it.
    async fn take_back(&mut self) -> Result<()> {
        let Some(returning) = &mut self.returning else {
            return Ok(());
        };
        let returned = returning.await;
        self.returning = None;
        self.held = Some(returned.map_err(|_| gone())?);
        // As after a raw query that failed: there is nothing to stop, and it is to be asked whether the transaction ended.
        self.unfinished = true;
        self.failed = true;
        Ok(())
    }

    /// Waits until the connection can be used for typed work, and makes sure that the transaction is open.
    pub(in crate::engine) async fn ready(&mut self) -> Result<()> {
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

    /// Waits until sqlx's worker is idle; a query that nobody waits for is stopped. One that failed is not: there is
    /// nothing to stop, and while a full-text table has a reader open SQLite does not forget an interrupt.
    pub(in crate::engine) async fn settle(&mut self) -> Result<()> {
        self.take_back().await?;
        let connection = (self.held.as_mut().and_then(Holds::connection)).ok_or_else(gone)?;
        let settled = if self.unfinished && !self.failed {
            connection.stop().await
        } else {
            connection.settle().await
        };
        settled.map_err(Error::from)
    }

    /// Asks SQLite whether it ended the transaction by itself.
    pub(in crate::engine) fn look_for_end(&mut self) -> Result<()> {
        if self.connection()?.is_autocommit() {
            self.state = State::Ended;
            return Err(gone());
        }
        Ok(())
    }

    /// The same after a statement whose own error, if any, says more than that the transaction is gone.
    pub(in crate::engine) fn notice_end(&mut self) {
        if let Err(ended) = self.look_for_end() {
            tracing::debug!(ended = %ended.in_log(), "a statement ended its transaction");
        }
    }

    /// Whether it was found that SQLite ended the transaction.
    pub(in crate::engine) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// The connection for typed statements.
    pub(in crate::engine) fn connection(&mut self) -> Result<&Connection> {
        view(self.held.as_mut().ok_or_else(gone)?)
    }

    /// Makes sqlx forget the statements that it keeps, if definitions may have changed since: it knows the columns that
    /// they had then. Its worker would die of another number of columns.
    async fn forget_outdated(&mut self) -> Result<()> {
        self.defines |= self.authorizer.take_defined();
        if self.is_schema_known && !self.defines {
            return Ok(());
        }
        let mut version = None;
        if !self.defines {
            self.ready().await?;
            let connection = view(self.held.as_mut().ok_or_else(gone)?)?;
            version = Some(self.authorizer.ours(|| schema_version(connection))?);
        }
        let connection = (self.held.as_mut().and_then(Holds::connection)).ok_or_else(gone)?;
        connection.forget_outdated(version).await?;
        self.is_schema_known = true;
        Ok(())
    }

    /// Makes sure that the transaction is open, and lends what a raw query needs.
    pub(in crate::engine) async fn raw(&mut self) -> Result<Raw<'_>> {
        let is_streamed = self.returning.is_some();
        if is_streamed
            || self.unfinished
            || self.state != State::Open
            || self.core.whereabouts.is_moved()
        {
            self.ready().await?;
        }
        self.forget_outdated().await?;
        let authorizer = Arc::clone(&self.authorizer);
        authorizer.take_denied();
        let connection = (self.held.as_mut().and_then(Holds::connection)).ok_or_else(gone)?;
        // Until it has ended well: it may be dropped at any await, or fail and take the transaction along.
        self.unfinished = true;
        self.failed = false;
        Ok(Raw {
            connection: connection.sqlx(),
            unfinished: &mut self.unfinished,
            failed: &mut self.failed,
            authorizer,
        })
    }
}

/// The number that changes with every definition.
fn schema_version(connection: &Connection) -> Result<i64> {
    // A statement that runs reads the schema anew if it has changed. One that is only prepared does not, and sqlx would
    // note the columns of before.
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema)")
        .and_then(|mut statement| statement.query_row([], |_| Ok(())))
        .map_err(from_rusqlite)?;
    connection
        .prepare_cached("PRAGMA schema_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(from_rusqlite)
}

fn view(held: &mut impl Holds) -> Result<&Connection> {
    held.connection()
        .and_then(MixedConnection::view)
        .ok_or_else(gone)
}

/// A savepoint ends, or the transaction does, while one inside of it was dropped half-way.
pub(in crate::engine) fn half_done() -> Error {
    Error::new(
        ErrorKind::TransactionEnded,
        "a savepoint was dropped before its end, and what was done of it is not told apart: all was rolled back, or can only be",
    )
}

pub(in crate::engine) fn gone() -> Error {
    Error::new(
        ErrorKind::TransactionEnded,
        "the transaction was rolled back, by SQLite or since one of its queries was dropped: begin it anew",
    )
}
