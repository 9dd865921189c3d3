//! A connection that sqlx and typed statements use in turn.

use std::mem::ManuallyDrop;

use libsqlite3_sys as sqlite;
use rusqlite::Connection;
use sqlx::{ConnectOptions, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::engine::ffi::Hooks;

/// A sqlx connection whose handle rusqlite drives too, while sqlx's worker is idle.
///
/// `settled` says that it is: nothing was sent to the worker since the last `ping`. `lock_handle` would be the
/// public barrier, but in 0.9.0 it can hang when called back to back, so it is called once, at connect.
pub(in crate::engine) struct MixedConnection {
    view: ManuallyDrop<Connection>,
    sqlx: ManuallyDrop<SqliteConnection>,
    handle: Handle,
    settled: bool,
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

    /// Stops the statement that sqlx's worker may be running.
    pub(in crate::engine) fn interrupt(&self) {
        // SAFETY: invariant 1: the connection is open, and interrupting is allowed from anywhere.
        unsafe { sqlite::sqlite3_interrupt(self.handle.0) };
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
}

impl Drop for MixedConnection {
    fn drop(&mut self) {
        if self.settled {
            // SAFETY: invariants 1 and 5: the worker is idle.
            unsafe { Hooks::remove(self.handle.0) };
            // SAFETY: invariant 6: dropped once, here, before `sqlx`, with its cached statements.
            unsafe { ManuallyDrop::drop(&mut self.view) };
            // SAFETY: dropped once, here; sqlx's worker closes the handle, which has no statements of ours left.
            unsafe { ManuallyDrop::drop(&mut self.sqlx) };
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
