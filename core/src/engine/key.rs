//! Integer keys: the next of a table, for the writer inside of its transaction, and for sessions beside it.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::{
    engine::{ffi::PlainConnection, hooks::Watch, rowid::rowid, sqlite_error::from_rusqlite},
    error::{Error, ErrorKind, Result},
    sql::{Identifier, NewKey},
};

/// Gives keys to sessions: what one was given, no other session and no save of this process is.
///
/// A session sees the table as it was when it began, so the largest key is read through a connection of the allocator's
/// own.
#[derive(Debug)]
pub(in crate::engine) struct Allocator {
    /// The writer's.
    watch: Arc<Watch>,
    /// Sees what is committed.
    head: Mutex<Option<PlainConnection>>,
}

impl Allocator {
    pub(in crate::engine) fn new(watch: Arc<Watch>, head: PlainConnection) -> Self {
        Self {
            watch,
            head: Mutex::new(Some(head)),
        }
    }

    /// Lends the allocator's connection, which reads what is committed.
    pub(in crate::engine) fn with_head<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        match &*head {
            Some(head) => work(head),
            None => Err(Error::new(ErrorKind::Closed, "the database was closed")),
        }
    }

    /// Closes the allocator's connection.
    pub(in crate::engine) fn close(&self) {
        drop(
            self.head
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// A key for a session with this connection, larger than those that it sees, its own among them.
    pub(in crate::engine) fn reserve(
        &self,
        session: &Connection,
        heard: &Watch,
        key: NewKey,
    ) -> Result<i64> {
        let NewKey { table, column, .. } = key;
        let named = |error| from_rusqlite(error).with_table(table);
        let highest = || {
            self.with_head(|head| {
                // The session may have made the table itself.
                highest(head, &self.watch, table, column)
                    .or_else(|_| highest(session, &self.watch, table, column))
                    .map_err(named)
            })
        };
        // The session may see rows that another process committed, of which the writer has not heard yet.
        heard.forget_unheard_keys();
        let own = heard.largest_key(table, || {
            self::highest(session, heard, table, column).map_err(named)
        })?;
        let above = key.above.max(own);
        let next = self.watch.reserve_key(table, above, highest)?;
        next.ok_or_else(|| exhausted(table.to_owned()))
    }

    /// The same by the table's name alone, for the SQL function.
    pub(in crate::engine) fn reserve_rowid(&self, heard: &Watch, table: &str) -> Result<i64> {
        let named = |error| from_rusqlite(error).with_table(table.to_owned());
        // Read each time: no less than the session sees, for whoever committed it.
        let committed = self.with_head(|head| {
            let column = rowid(head, table).map_err(named)?.ok_or_else(|| {
                Error::new(
                    ErrorKind::Statement,
                    "next_id: there is no such table, or it has no integer key",
                )
                .with_table(table.to_owned())
            })?;
            highest(head, &self.watch, table, &column).map_err(named)
        })?;
        let above = heard.heard(table).max(committed);
        let next = self
            .watch
            .reserve_key(table, above, || Ok::<_, Error>(committed))?;
        next.ok_or_else(|| exhausted(table.to_owned()))
    }
}

/// The next integer key of a table, for who writes now.
pub(in crate::engine) fn next_key(
    connection: &Connection,
    watch: &Watch,
    key: NewKey,
) -> Result<i64> {
    next_keys(connection, watch, key, 1)
}

/// The first of so many that follow one another, at least one.
pub(in crate::engine) fn next_keys(
    connection: &Connection,
    watch: &Watch,
    key: NewKey,
    count: i64,
) -> Result<i64> {
    let NewKey {
        table,
        column,
        above,
    } = key;
    let highest = || {
        highest(connection, watch, table, column)
            .map_err(|error| from_rusqlite(error).with_table(table))
    };
    let next = watch.next_keys(table, above, count, highest)?;
    next.ok_or_else(|| exhausted(table))
}

fn exhausted(table: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(
        ErrorKind::Full,
        "the table has a row with the largest key there is: no further key can be given",
    )
    .with_table(table)
}

/// The largest key of a table.
fn highest(
    connection: &Connection,
    watch: &Watch,
    table: &str,
    column: &str,
) -> rusqlite::Result<i64> {
    if watch.is_rowid(table).is_none() {
        let rowid = rowid(connection, table)?;
        let is_rowid = rowid.is_some_and(|rowid| rowid.eq_ignore_ascii_case(column));
        watch.set_is_rowid(table, is_rowid);
    }
    let highest: i64 = connection
        .prepare_cached(&format!(
            "SELECT coalesce(max({}), 0) FROM {}",
            Identifier(column),
            Identifier(table)
        ))?
        .query_row([], |row| row.get(0))?;
    Ok(highest.max(highest_ever(connection, table)?))
}

/// The largest key that a table with AUTOINCREMENT ever had.
fn highest_ever(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    // SQLite makes its table of them with the first such table.
    let Ok(mut statement) = connection.prepare_cached(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1 COLLATE NOCASE",
    ) else {
        return Ok(0);
    };
    statement.query_row([table], |row| row.get(0))
}
