//! What raw statements may not do inside of a transaction of ours, and what to use instead.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use libsqlite3_sys as sqlite;

/// Judges the statements of a connection that applications send raw SQL to.
#[derive(Debug, Default)]
pub(in crate::engine) struct Authorizer {
    ours: AtomicBool,
    denied: Mutex<Option<&'static str>>,
    /// Whether a statement was prepared that makes, drops or alters something.
    defined: AtomicBool,
    /// What statements do, while that is asked for.
    access: Mutex<Option<Access>>,
    /// Whether they belong to a session: what they do is done again on another state of the database.
    in_session: bool,
}

/// What a statement does, with its views, triggers and foreign keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine) struct Access {
    pub(in crate::engine) reads: BTreeSet<Box<str>>,
    pub(in crate::engine) writes: BTreeSet<Box<str>>,
    /// The columns that it sets, each with its table.
    pub(in crate::engine) updates: BTreeSet<(Box<str>, Box<str>)>,
    /// It calls a function that answers from the connection's state.
    pub(in crate::engine) asks_connection: bool,
    /// It makes, drops or alters something.
    pub(in crate::engine) changes_schema: bool,
    /// It asks about, or sets, something other than tables.
    pub(in crate::engine) is_pragma: bool,
}

/// What a statement is about to do, in SQLite's terms.
#[derive(Debug)]
pub(in crate::engine) struct Action<'a> {
    pub(in crate::engine) code: i32,
    pub(in crate::engine) first: Option<&'a str>,
    pub(in crate::engine) second: Option<&'a str>,
    pub(in crate::engine) database: Option<&'a str>,
}

/// Pragmas that take a value and only look, or whose effect ends with the transaction or is undone with it.
const PRAGMAS: &[&str] = &[
    "application_id",
    "defer_foreign_keys",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

impl Authorizer {
    /// Runs statements of our own, which may do anything.
    pub(in crate::engine) fn ours<T>(&self, run: impl FnOnce() -> T) -> T {
        let _before = Restore {
            ours: &self.ours,
            before: self.ours.swap(true, Ordering::Relaxed),
        };
        run()
    }

    /// Runs statements of somebody else, which are judged.
    pub(in crate::engine) fn theirs<T>(&self, run: impl FnOnce() -> T) -> T {
        let _before = Restore {
            ours: &self.ours,
            before: self.ours.swap(false, Ordering::Relaxed),
        };
        run()
    }

    /// Whether the last statement was denied.
    pub(in crate::engine) fn has_denied(&self) -> bool {
        lock(&self.denied).is_some()
    }

    /// Why the last statement was denied, if it was.
    pub(in crate::engine) fn take_denied(&self) -> Option<&'static str> {
        lock(&self.denied).take()
    }

    /// Whether a statement was prepared meanwhile that makes, drops or alters something.
    pub(in crate::engine) fn take_defined(&self) -> bool {
        self.defined.swap(false, Ordering::Relaxed)
    }

    /// Of the writer's connection, which runs the library's own statements, and what was allowed in sessions.
    pub(in crate::engine) fn of_writer() -> Self {
        Self {
            ours: AtomicBool::new(true),
            in_session: true,
            ..Self::default()
        }
    }

    /// Of a session's connection.
    pub(in crate::engine) fn of_session() -> Self {
        Self {
            in_session: true,
            ..Self::default()
        }
    }

    /// What the statements do that are prepared meanwhile.
    pub(in crate::engine) fn watching<T>(&self, prepare: impl FnOnce() -> T) -> (T, Access) {
        *lock(&self.access) = Some(Access::default());
        let prepared = prepare();
        let access = lock(&self.access).take();
        (prepared, access.unwrap_or_default())
    }

    /// Whether a statement may do this.
    pub(in crate::engine) fn allows(&self, action: &Action<'_>) -> bool {
        if let Some(access) = &mut *lock(&self.access) {
            access.note(action);
        }
        if action.defines() {
            self.defined.store(true, Ordering::Relaxed);
        }
        if self.ours.load(Ordering::Relaxed) {
            return true;
        }
        let in_session = (self.in_session).then(|| refusal_in_session(action));
        let Some(reason) = refusal(action).or(in_session.flatten()) else {
            return true;
        };
        *lock(&self.denied) = Some(reason);
        false
    }
}

/// Also when what runs panics, or runs more of ours.
struct Restore<'a> {
    ours: &'a AtomicBool,
    before: bool,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        self.ours.store(self.before, Ordering::Relaxed);
    }
}

impl Action<'_> {
    /// Whether it makes, drops or alters something.
    const fn defines(&self) -> bool {
        !matches!(
            self.code,
            sqlite::SQLITE_READ
                | sqlite::SQLITE_INSERT
                | sqlite::SQLITE_UPDATE
                | sqlite::SQLITE_DELETE
                | sqlite::SQLITE_PRAGMA
                | sqlite::SQLITE_FUNCTION
                | sqlite::SQLITE_SELECT
                | sqlite::SQLITE_RECURSIVE
                | sqlite::SQLITE_TRANSACTION
                | sqlite::SQLITE_SAVEPOINT
        )
    }
}

impl Access {
    fn note(&mut self, action: &Action<'_>) {
        let first = action.first.unwrap_or_default();
        match action.code {
            sqlite::SQLITE_READ => drop(self.reads.insert(first.into())),
            sqlite::SQLITE_INSERT | sqlite::SQLITE_UPDATE | sqlite::SQLITE_DELETE => {
                self.writes.insert(first.into());
                if action.code == sqlite::SQLITE_UPDATE {
                    let column = action.second.unwrap_or_default();
                    self.updates.insert((first.into(), column.into()));
                }
            }
            sqlite::SQLITE_PRAGMA => self.is_pragma = true,
            sqlite::SQLITE_FUNCTION => {
                let name = action.second.unwrap_or_default();
                self.asks_connection |= name.eq_ignore_ascii_case("last_insert_rowid");
            }
            _ => self.changes_schema |= action.defines(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an exclusive transaction may do, and a session may not.
fn refusal_in_session(action: &Action<'_>) -> Option<&'static str> {
    let is_in = |list: &[&str], name: Option<&str>| {
        list.iter()
            .any(|known| name.is_some_and(|name| known.eq_ignore_ascii_case(name)))
    };
    match action.code {
        // FTS5 asks whether what it keeps in memory is of the present, and names the database when it does. An application
        // that writes it so is compared, and told another number.
        sqlite::SQLITE_PRAGMA
            if is_in(&["data_version"], action.first) && action.database == Some("main") =>
        {
            None
        }
        sqlite::SQLITE_PRAGMA if !is_in(SESSION_PRAGMAS, action.first) => Some(
            "what this pragma answers may differ between a session and the present database: ask in db.write, or outside \
             of the session",
        ),
        sqlite::SQLITE_FUNCTION if is_in(COUNTING_FUNCTIONS, action.second) => Some(
            "this function counts what the connection did before: take the rows affected from the statement's result",
        ),
        _ => None,
    }
}

/// Pragmas that answer from the schema and the rows alone, or belong to the transaction.
const SESSION_PRAGMAS: &[&str] = &[
    "application_id",
    "collation_list",
    "defer_foreign_keys",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "foreign_keys",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "page_size",
    "quick_check",
    "schema_version",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Functions whose answer rests on what other transactions did on the same connection.
const COUNTING_FUNCTIONS: &[&str] = &["changes", "total_changes"];

fn refusal(action: &Action<'_>) -> Option<&'static str> {
    // `CREATE TABLE temp.t` is an ordinary CREATE TABLE to SQLite, in the database of that name.
    // A pragma that names it makes that database.
    let is_creating = CREATES.contains(&action.code) || action.code == sqlite::SQLITE_PRAGMA;
    if action.database == Some("temp") && is_creating {
        return Some(TEMPORARY);
    }
    match action.code {
        sqlite::SQLITE_TRANSACTION => Some(
            "BEGIN, COMMIT and ROLLBACK belong to the transaction at hand: return from the closure to end it, \
             or use commit() and rollback()",
        ),
        sqlite::SQLITE_SAVEPOINT => Some(
            "savepoints in raw SQL would end those of the library: use savepoint() of the transaction or session instead",
        ),
        sqlite::SQLITE_ATTACH | sqlite::SQLITE_DETACH => Some(
            "ATTACH and DETACH do not work inside of a transaction: open the other file as a Database of its own",
        ),
        sqlite::SQLITE_CREATE_TEMP_INDEX
        | sqlite::SQLITE_CREATE_TEMP_TABLE
        | sqlite::SQLITE_CREATE_TEMP_TRIGGER
        | sqlite::SQLITE_CREATE_TEMP_VIEW
        | sqlite::SQLITE_DROP_TEMP_INDEX
        | sqlite::SQLITE_DROP_TEMP_TABLE
        | sqlite::SQLITE_DROP_TEMP_TRIGGER
        | sqlite::SQLITE_DROP_TEMP_VIEW => Some(TEMPORARY),
        sqlite::SQLITE_PRAGMA => {
            let name = action.first.unwrap_or_default();
            let is_in = |list: &[&str]| list.iter().any(|known| known.eq_ignore_ascii_case(name));
            let reads = action.second.is_none() && !is_in(ACTS_WITHOUT_VALUE);
            (!reads && !is_in(PRAGMAS)).then_some(
                "this pragma would change the writer's connection for everybody: set it with the options at open, \
                 or use checkpoint() or vacuum() of the database",
            )
        }
        _ => None,
    }
}

const TEMPORARY: &str = "temporary objects would stay behind on the writer's connection: use a common table \
     expression (WITH), or an ordinary table";

const CREATES: &[i32] = &[
    sqlite::SQLITE_CREATE_INDEX,
    sqlite::SQLITE_CREATE_TABLE,
    sqlite::SQLITE_CREATE_TRIGGER,
    sqlite::SQLITE_CREATE_VIEW,
    sqlite::SQLITE_CREATE_VTABLE,
];

/// Pragmas that do something even without a value.
const ACTS_WITHOUT_VALUE: &[&str] = &[
    "incremental_vacuum",
    "optimize",
    "shrink_memory",
    "wal_checkpoint",
];

#[cfg(test)]
mod tests {
    use libsqlite3_sys as sqlite;

    use crate::engine::hooks::{Action, Authorizer};

    fn pragma<'a>(name: &'a str, value: Option<&'a str>) -> Action<'a> {
        Action {
            code: sqlite::SQLITE_PRAGMA,
            first: Some(name),
            second: value,
            database: None,
        }
    }

    #[test]
    fn pragmas_that_write_are_denied_with_a_reason() {
        let authorizer = Authorizer::default();
        assert!(!authorizer.allows(&pragma("synchronous", Some("OFF"))));
        assert!(authorizer.take_denied().is_some());
        assert!(!authorizer.allows(&pragma("wal_checkpoint", None)));
    }

    #[test]
    fn pragmas_that_read_are_allowed() {
        let authorizer = Authorizer::default();
        assert!(authorizer.allows(&pragma("synchronous", None)));
        assert!(authorizer.allows(&pragma("table_info", Some("orders"))));
        assert!(authorizer.take_denied().is_none());
    }

    #[test]
    fn our_own_statements_are_not_judged() {
        let authorizer = Authorizer::default();
        assert!(authorizer.ours(|| authorizer.allows(&pragma("synchronous", Some("OFF")))));
    }
}
