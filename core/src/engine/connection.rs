//! Opening connections: the pragmas of each, in the right order, read back; and running statements on them.

use std::{cell::OnceCell, path::Path, time::Duration};

use rusqlite::{
    Connection, OpenFlags, ToSql,
    types::{ToSqlOutput, Value as OwnedValue, ValueRef as SqliteRef},
};

use crate::{
    engine::{
        busy,
        ffi::{Hooks, PlainConnection, WriterVfs, strict_strings},
        options::{AutoVacuum, Options, Synchronous, TempStore},
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
    value::{FindPlaces, Row, Value, ValueError, ValueRef},
};

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Role {
    Writer,
    Reader,
    Checkpointer,
}

/// How many statements a connection keeps prepared.
pub(in crate::engine) const STATEMENTS: usize = 256;

/// Opens a connection; one that writes to the file through the VFS of writers. It waits for other processes up to the busy timeout meanwhile, and not at all later on:
/// statements may run on a task that must not block.
pub(in crate::engine) fn open(
    path: &Path,
    options: &Options,
    role: Role,
    vfs: Option<&WriterVfs>,
    hooks: Hooks,
) -> Result<PlainConnection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    if role == Role::Writer && options.create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let named = |error: Error| error.with_statement(format!("open {}", path.display()));
    let connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.name()),
        None => Connection::open_with_flags(path, flags),
    }
    .map_err(|error| named(from_rusqlite(error)))?;
    configure(&connection, options, role).map_err(named)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(PlainConnection::new(connection, hooks))
}

fn configure(connection: &Connection, options: &Options, role: Role) -> Result<()> {
    // First of all, since every pragma after it may meet a lock.
    connection
        .busy_timeout(options.busy_timeout)
        .map_err(from_rusqlite)?;
    if !strict_strings(connection) {
        return Err(Error::new(
            ErrorKind::Options,
            "SQLite did not switch off double-quoted texts",
        ));
    }
    if role == Role::Writer {
        refuse_read_only(connection)?;
        prepare_file(connection, options)?;
    }
    for (name, value) in per_connection(options) {
        set(connection, name, &value)?;
    }
    set(connection, "query_only", bool_of(role == Role::Reader))?;
    connection
        .busy_timeout(Duration::ZERO)
        .map_err(from_rusqlite)
}

/// The pragmas of every connection. sqlx's connection gets the same.
pub(in crate::engine) fn per_connection(options: &Options) -> [(&'static str, String); 7] {
    let kib = (options.cache_size.0 / 1024).max(1);
    let temp_store = match options.temp_store {
        TempStore::Default => 0,
        TempStore::File => 1,
        TempStore::Memory => 2,
    };
    [
        ("foreign_keys", "1".to_owned()),
        (
            "synchronous",
            match options.synchronous {
                Synchronous::Off => "0",
                Synchronous::Normal => "1",
                Synchronous::Full => "2",
            }
            .to_owned(),
        ),
        ("cache_size", format!("-{kib}")),
        ("mmap_size", options.mmap_size.0.to_string()),
        ("temp_store", temp_store.to_string()),
        (
            "journal_size_limit",
            options.journal_size_limit.0.to_string(),
        ),
        // The writer's thread checkpoints; SQLite's own would do it inside of somebody's commit.
        ("wal_autocheckpoint", "0".to_owned()),
    ]
}

fn bool_of(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// Sets a pragma and reads it back: SQLite ignores what it cannot do without a word.
pub(in crate::engine) fn set(connection: &Connection, name: &str, value: &str) -> Result<()> {
    connection
        .pragma_update(None, name, value.parse::<i64>().unwrap_or_default())
        .map_err(from_rusqlite)?;
    read_back(connection, name, value)
}

/// Makes sure that a pragma has a value.
pub(in crate::engine) fn read_back(connection: &Connection, name: &str, value: &str) -> Result<()> {
    let mut found: Option<i64> = None;
    connection
        .pragma_query(None, name, |row| {
            found = Some(row.get(0)?);
            Ok(())
        })
        .map_err(from_rusqlite)?;
    // A build without memory mapping answers nothing, and maps nothing.
    let is_set = match found {
        Some(found) => found.to_string() == value || (name == "mmap_size" && found >= 0),
        None => name == "mmap_size",
    };
    if is_set {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Options,
        format!("PRAGMA {name} did not take effect"),
    ))
}

/// SQLite opens a file that it may only read without a word.
fn refuse_read_only(connection: &Connection) -> Result<()> {
    if connection.is_readonly("main").map_err(from_rusqlite)? {
        return Err(Error::new(
            ErrorKind::ReadOnly,
            "the database can only be read",
        ));
    }
    Ok(())
}

/// The properties of the file: those of an empty one first, since WAL writes its first page.
fn prepare_file(connection: &Connection, options: &Options) -> Result<()> {
    if let Some(size) = options.page_size {
        connection
            .pragma_update(None, "page_size", size)
            .map_err(from_rusqlite)?;
    }
    if options.auto_vacuum != AutoVacuum::None {
        let mode = if options.auto_vacuum == AutoVacuum::Full {
            1
        } else {
            2
        };
        connection
            .pragma_update(None, "auto_vacuum", mode)
            .map_err(from_rusqlite)?;
    }
    // Two processes that open a new file at once: the busy handler is not asked where waiting could deadlock, so one
    // of them is told BUSY at once. The other has it in WAL mode in a moment.
    let mode = busy::retrying(options.busy_timeout, || switch_to_wal(connection))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Options,
        format!(
            "the journal mode stayed \"{mode}\": write-ahead logging needs a file, \
             and a file system with shared memory (no in-memory database, no network share)"
        ),
    ))
}

fn switch_to_wal(connection: &Connection) -> Result<String> {
    let mode = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, String>(0))
            .map_err(from_rusqlite)
    };
    // Asking takes no lock; switching does, even where nothing is left to switch.
    let present = mode("PRAGMA journal_mode")?;
    if present == "wal" {
        return Ok(present);
    }
    mode("PRAGMA journal_mode = WAL")
}

/// A value on its way to SQLite, borrowed.
pub(in crate::engine) struct Bound<'a>(pub(in crate::engine) &'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Owned(OwnedValue::Null),
            Value::Integer(value) => ToSqlOutput::Owned(OwnedValue::Integer(*value)),
            Value::Real(value) => ToSqlOutput::Owned(OwnedValue::Real(*value)),
            Value::Text(value) => ToSqlOutput::Borrowed(SqliteRef::Text(value.as_bytes())),
            Value::Blob(value) => ToSqlOutput::Borrowed(SqliteRef::Blob(value)),
            Value::Unread => {
                let message = "a column that was not read has no value";
                return Err(rusqlite::Error::ToSqlConversionFailure(message.into()));
            }
        })
    }
}

/// A row that SQLite is at.
pub(in crate::engine) struct PresentRow<'a, 'b> {
    pub(in crate::engine) row: &'a rusqlite::Row<'b>,
    /// Where columns are that are looked for by name; of the whole statement.
    pub(in crate::engine) places: &'a OnceCell<Vec<usize>>,
}

impl Row for PresentRow<'_, '_> {
    fn width(&self) -> usize {
        self.row.as_ref().column_count()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        match self.row.get_ref(index) {
            Ok(SqliteRef::Integer(value)) => ValueRef::Integer(value),
            Ok(SqliteRef::Real(value)) => ValueRef::Real(value),
            Ok(SqliteRef::Text(value)) => ValueRef::Text(value),
            Ok(SqliteRef::Blob(value)) => ValueRef::Blob(value),
            Ok(SqliteRef::Null) | Err(_) => ValueRef::Null,
        }
    }

    fn places(&self, find: FindPlaces<'_>) -> Result<&[usize], ValueError> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let found = find(&self.row.as_ref().column_names())?;
        Ok(self.places.get_or_init(|| found))
    }
}

/// Binds the arguments, no more and no fewer than the statement takes: SQLite would read NULL for a missing one.
pub(in crate::engine) fn bind<'a>(
    statement: &mut rusqlite::CachedStatement<'_>,
    args: impl ExactSizeIterator<Item = &'a Value>,
) -> Result<()> {
    let (given, expected) = (args.len(), statement.parameter_count());
    if given != expected {
        return Err(from_rusqlite(rusqlite::Error::InvalidParameterCount(
            given, expected,
        )));
    }
    for (index, value) in args.enumerate() {
        statement
            .raw_bind_parameter(index + 1, Bound(value))
            .map_err(from_rusqlite)?;
    }
    Ok(())
}

/// Runs a statement without arguments and results, kept prepared.
pub(in crate::engine) fn execute(connection: &Connection, sql: &'static str) -> Result<()> {
    let run = || connection.prepare_cached(sql)?.raw_execute();
    match run() {
        Ok(_) => Ok(()),
        Err(error) => Err(from_rusqlite(error).with_statement(sql)),
    }
}
