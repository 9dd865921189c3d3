//! A connection that sqlx and typed statements use in turn.

use std::{
    mem::ManuallyDrop,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::{Either, select},
};
use libsqlite3_sys as sqlite;
use rusqlite::Connection;
use sqlx::{ConnectOptions, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::engine::{ffi::Hooks, timer};

/// How long a statement that was interrupted may take to end.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(2);

/// A sqlx connection whose handle rusqlite drives too, while sqlx's worker is idle.
///
/// `settled` says that it is: nothing was sent to the worker since the last `ping`. `lock_handle` would be the
/// public barrier, but in 0.9.0 it can hang when called back to back, so it is called once, at connect.
pub(in crate::engine) struct MixedConnection {
    view: ManuallyDrop<Connection>,
    sqlx: ManuallyDrop<SqliteConnection>,
    handle: Handle,
    settled: bool,
    /// The version of the schema on which sqlx prepared the statements that it keeps, if it is one.
    schema: Option<i64>,
    /// `view` and `sqlx` are gone.
    is_closed: bool,
    /// Dropped after the connection, as the fields' order has it (invariant 2).
    _hooks: Hooks,
}

/// The raw handle.
#[derive(Clone, Copy)]
struct Handle(*mut sqlite::sqlite3);

// SAFETY: a `sqlite3*` is bound to no thread; invariants 1 and 5 keep it to one at a time.
unsafe impl Send for Handle {}

impl std::fmt::Debug for MixedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MixedConnection")
            .field("settled", &self.settled)
            .finish_non_exhaustive()
    }
}

impl MixedConnection {
    /// Connects, and registers the listeners.
    pub(in crate::engine) async fn connect(
        options: &SqliteConnectOptions,
        hooks: Hooks,
    ) -> Result<Self, sqlx::Error> {
        let mut sqlx = options.connect().await?;
        let handle = Handle(sqlx.lock_handle().await?.as_raw_handle().as_ptr());
        // `lock_handle` let the worker go; a ping shows that it is back, and idle.
        sqlx.ping().await?;
        // SAFETY: invariants 5 and 6: the worker is idle, and `Drop` drops the view first.
        let view = unsafe { Connection::from_handle(handle.0) }
            .map_err(|error| sqlx::Error::Configuration(Box::new(error)))?;
        // SAFETY: invariants 1 and 5: the worker is idle; invariant 2: `hooks` is kept beside it.
        unsafe { hooks.install(handle.0) };
        Ok(Self {
            view: ManuallyDrop::new(view),
            sqlx: ManuallyDrop::new(sqlx),
            handle,
            settled: true,
            schema: None,
            is_closed: false,
            _hooks: hooks,
        })
    }

    /// The connection for typed statements, if sqlx's worker is known to be idle.
    pub(in crate::engine) fn view(&mut self) -> Option<&Connection> {
        self.settled.then_some(&*self.view)
    }

    /// The connection for sqlx's queries. From now on it is not settled.
    pub(in crate::engine) fn sqlx(&mut self) -> &mut SqliteConnection {
        self.settled = false;
        &mut self.sqlx
    }

    /// Makes sqlx forget the statements that it keeps, unless they were prepared on this version of the schema.
    ///
    /// Cancel safe: dropped, they are forgotten the next time.
    pub(in crate::engine) async fn forget_outdated(
        &mut self,
        schema: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        if schema.is_none() || self.schema != schema {
            self.schema = None;
            self.sqlx().clear_cached_statements().await?;
            self.schema = schema;
        }
        Ok(())
    }

    /// Waits until sqlx's worker is idle.
    ///
    /// Cancel safe: it stays unsettled when dropped.
    pub(in crate::engine) async fn settle(&mut self) -> Result<(), sqlx::Error> {
        if !self.settled {
            self.sqlx.ping().await?;
            self.settled = true;
        }
        Ok(())
    }

    /// The same, and stops the statement that sqlx's worker may be running.
    ///
    /// It is interrupted again and again: to SQLite an interrupt means nothing if no statement runs, and one that was
    /// sent to the worker just before may begin after it, and then run for as long as it likes, with the slot held. A
    /// worker that is idle, or as good as that, is not interrupted: while a full-text table has a reader open, until the
    /// transaction ends, SQLite does not forget an interrupt, and not even a ROLLBACK would run.
    ///
    /// Cancel safe: it stays unsettled when dropped.
    pub(in crate::engine) async fn stop(&mut self) -> Result<(), sqlx::Error> {
        if self.settled {
            return Ok(());
        }
        let handle = self.handle;
        let mut idle = pin!(self.sqlx.ping());
        // A worker that died answers at once, and there is nothing to interrupt.
        if let Some(pinged) = idle.as_mut().now_or_never() {
            pinged?;
            self.settled = true;
            return Ok(());
        }
        loop {
            let again = pin!(timer::sleep_until(Instant::now() + INTERRUPT_AGAIN));
            if let Either::Left((pinged, _)) = select(idle.as_mut(), again).await {
                pinged?;
                break;
            }
            // SAFETY: invariant 1: the connection is open, and interrupting is allowed from anywhere.
            unsafe { sqlite::sqlite3_interrupt(handle.0) };
        }
        self.settled = true;
        Ok(())
    }

    /// Closes the file, and returns when that is done; a connection that is dropped is closed at some time later.
    pub(in crate::engine) async fn close(mut self) -> Result<(), sqlx::Error> {
        self.settle().await?;
        match self.take_sqlx() {
            Some(sqlx) => sqlx.close().await,
            None => Ok(()),
        }
    }

    /// Takes sqlx's connection out, with nothing of ours left on it, if its worker is idle.
    fn take_sqlx(&mut self) -> Option<SqliteConnection> {
        if self.is_closed || !self.settled {
            return None;
        }
        self.is_closed = true;
        self.settled = false;
        // SAFETY: invariants 1 and 5: the worker is idle.
        unsafe { Hooks::remove(self.handle.0) };
        // SAFETY: invariant 6: dropped once, as `is_closed` has it, before `sqlx`, with its cached statements.
        unsafe { ManuallyDrop::drop(&mut self.view) };
        // SAFETY: taken once, as `is_closed` has it; the handle has no statements of ours left.
        Some(unsafe { ManuallyDrop::take(&mut self.sqlx) })
    }
}

impl Drop for MixedConnection {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        if let Some(sqlx) = self.take_sqlx() {
            drop(sqlx);
        } else {
            // The worker may still run a statement, so the view cannot be touched (invariant 5), and with its
            // statements left sqlx could not close. The engine settles a connection before it lets go of it; what
            // is leaked here is one connection of a process whose worker thread died.
            tracing::error!("a connection was dropped while its worker was busy; it is not closed");
            let hooks = std::mem::take(&mut self._hooks);
            std::mem::forget(hooks);
        }
    }
}
