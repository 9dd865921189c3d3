//! A connection that only typed statements use.

use std::ops::Deref;

use rusqlite::Connection;

use crate::engine::ffi::Hooks;

/// A rusqlite connection with its listeners.
#[derive(Debug)]
pub(in crate::engine) struct PlainConnection {
    connection: Connection,
    /// Dropped after the connection, as the fields' order has it (invariant 2).
    _hooks: Hooks,
}

impl PlainConnection {
    /// Takes a connection over and registers its listeners.
    pub(in crate::engine) fn new(connection: Connection, hooks: Hooks) -> Self {
        // SAFETY: invariant 1: the connection is owned here; invariant 2: `hooks` is kept beside it.
        unsafe { hooks.install(connection.handle()) };
        Self {
            connection,
            _hooks: hooks,
        }
    }
}

impl Deref for PlainConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
