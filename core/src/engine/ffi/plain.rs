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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rusqlite::Connection;

    use crate::engine::{
        ffi::{Hooks, PlainConnection},
        hooks::{StampedBy, Watch},
    };

    #[test]
    fn rows_of_triggers_are_told_and_rows_without_a_rowid_are_not() {
        let watch = Arc::new(Watch::default());
        for table in ["plain", "trail", "bare"] {
            let by = StampedBy {
                column: "seq".into(),
                rowid: "id".into(),
            };
            watch.stamp(table, by);
        }
        let hooks = Hooks {
            watch: Some(Arc::clone(&watch)),
            ..Hooks::default()
        };
        let connection = PlainConnection::new(Connection::open_in_memory().unwrap(), hooks);
        let statements = "CREATE TABLE plain (id INTEGER PRIMARY KEY);
            CREATE TABLE trail (id INTEGER PRIMARY KEY);
            CREATE TABLE bare (id INTEGER PRIMARY KEY) WITHOUT ROWID;
            CREATE TRIGGER follow AFTER INSERT ON plain BEGIN INSERT INTO trail VALUES (7); END;
            INSERT INTO plain VALUES (1);
            INSERT INTO bare VALUES (2)";
        connection.execute_batch(statements).unwrap();
        let touched = watch.take_touched();
        let touched: Vec<_> = touched
            .iter()
            .map(|rows| (&*rows.table, &rows.rowids[..]))
            .collect();
        assert_eq!(touched, [("plain", &[1][..]), ("trail", &[7])]);
    }
}
