//! The one error type: what happened, where, and what to do.
//!
//! An [`Error`] is one word wide. Its [`ErrorKind`] is what an application matches on; its text names entity,
//! column, key or statement, never values of rows.

use std::{borrow::Cow, fmt, time::Duration};

use crate::value::{Value, ValueError};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error with which the application itself ended a transaction.
pub type ApplicationError = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong; `kind()` and the questions on it say what to do about it.
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    table: Option<Cow<'static, str>>,
    column: Option<Cow<'static, str>>,
    key: Vec<Value>,
    statement: Option<Cow<'static, str>>,
    code: Option<i32>,
    waited: Option<Duration>,
    conflicts: Vec<Conflict>,
    source: Option<ApplicationError>,
}

/// The kinds of [`Error`]: each says when it is met and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process held the write lock for longer than `busy_timeout`, or commits so fast, or hangs in such a moment,
    /// that no snapshot could be taken. Try again, or let it finish.
    Busy,
    /// A transaction read before another one committed, and then wanted to write. Run it again from its start.
    BusySnapshot,
    /// A shared cache is in use, or a statement of the same connection is in the way; waiting does not help.
    Locked,
    /// The cursor of a feed does not stand where the batch begins: another consumer of the same name was faster, or it was
    /// rewound. Take the next batch.
    CursorMoved,
    /// The cursor of a feed is further behind than deletions are kept. Begin with all rows again: `feed.rewind(Start::Snapshot)`.
    CursorExpired,
    /// The file is not the one that the cursor of a feed was in: a backup was restored. `feed.accept_epoch` goes on from there,
    /// `feed.rewind` from elsewhere.
    EpochChanged,
    /// The wait for the writer outlasted `queue_timeout`; the message names the holder and its age.
    QueueTimeout,
    /// A read connection, or a place for a session, did not become free within `queue_timeout`; the message tells the
    /// state of the pool.
    PoolTimeout,
    /// A snapshot, a stream or a query was open for longer than a reader may be (`wal_policy`), and was ended. Read less at
    /// a time, or raise the limit.
    ReaderTooOld,
    /// A session outgrew a limit: its age, its statements, or the memory that it needs; the message names the option. It
    /// can only be rolled back. Do the work in smaller pieces, in `db.write`, or raise the limit.
    SessionLimit,
    /// The statements of a session took longer than `commit_hold` to be validated, with the writer held. Nothing was
    /// written. Try again, in `db.write` if it stays so.
    CommitTimeout,
    /// The disk is full (or `max_page_count` is reached). Nothing was written; make room and try again.
    Full,
    /// The database, its folder or the transaction can only be read.
    ReadOnly,
    /// The file cannot be opened; the message shows the absolute path and which part of it is missing or in the way.
    CannotOpen,
    /// The file was removed, renamed or replaced while it was open. Nothing more is read or written through this
    /// database: close it, and open the file that is meant now. What was acknowledged before is in the old file.
    FileMoved,
    /// SQLite found the file damaged. Stop writing, and restore a backup.
    Corrupt,
    /// The file is no SQLite database, or it is encrypted.
    NotADatabase,
    /// The operating system failed to read or write; the extended code says which call.
    Io,
    /// SQLite could not get memory.
    OutOfMemory,
    /// A text, blob or statement is larger than SQLite allows, or an import than its limit.
    TooBig,
    /// The statement was stopped: its future was dropped, or a limit was reached.
    Interrupted,
    /// A row with this key, or with these unique values, exists already.
    Unique,
    /// A reference points at no row, or a row that is referred to was to be deleted.
    ForeignKey,
    /// A column that may not be NULL would have been.
    NotNull,
    /// A CHECK of the table refused the row.
    Check,
    /// Another constraint: a trigger's RAISE, or a value of the wrong type in a STRICT table.
    Constraint,
    /// The row was changed or deleted since it was read. `conflicts()` has the original, current and database values;
    /// `client_wins`, `store_wins` and `merge` of the context resolve it. Of a session it says that something it saw
    /// is not so any more: `conflicts()` is empty, and the work is to be run again from its start.
    Conflict,
    /// A line of an import cannot be read: the message says why, and its number; `column()` is its column, where known. Mend it, or
    /// let bad lines be left out.
    BadLine,
    /// A value that SQLite cannot keep exactly; the message names table and column. Nothing was written.
    Value,
    /// A stored value that does not fit the field; the message names table, column and key.
    Decode,
    /// A query that asked for exactly one row found none.
    NotFound,
    /// A query that asked for at most one row found more.
    MoreThanOne,
    /// The statement does not fit the database: a syntax error, a missing table or column, a wrong number of arguments.
    Statement,
    /// Something that only the library does here (BEGIN, ATTACH, a pragma), or a backup over a file that is there; the
    /// message says what to use instead.
    Refused,
    /// A write inside of a write on the same task, which would wait for itself. Use the transaction at hand.
    Nested,
    /// An entity with this key is tracked by the context already.
    AlreadyTracked,
    /// A save with this token was committed before, and is not repeated. `Database::was_saved` tells when.
    AlreadySaved,
    /// Entities that do not go together: a reference to a table that is missing, two entities for one table, a cycle.
    Model,
    /// An option is out of range, or differs from those with which the file is open in this process.
    Options,
    /// The SQLite that is linked has the WAL-reset bug; 3.51.3 is the least that is accepted.
    SqliteVersion,
    /// The database was closed.
    Closed,
    /// The library itself failed while it held the writer. Open the database anew, and report it.
    Poisoned,
    /// The transaction was ended by SQLite or by a dropped query; roll back and run it again.
    TransactionEnded,
    /// COMMIT failed in a way that does not tell whether it took place; look before trying again. A save that was given
    /// a token (`Context::save_changes_with`) can be looked for with `Database::was_saved`, or be saved again with it.
    OutcomeUnknown,
    /// The closure of a transaction returned an error of the application; it was rolled back.
    Application,
}

impl ErrorKind {
    /// All kinds, for tables and tests.
    pub const ALL: &'static [Self] = &[
        Self::Busy,
        Self::BusySnapshot,
        Self::Locked,
        Self::CursorMoved,
        Self::CursorExpired,
        Self::EpochChanged,
        Self::QueueTimeout,
        Self::PoolTimeout,
        Self::ReaderTooOld,
        Self::SessionLimit,
        Self::CommitTimeout,
        Self::Full,
        Self::ReadOnly,
        Self::CannotOpen,
        Self::FileMoved,
        Self::Corrupt,
        Self::NotADatabase,
        Self::Io,
        Self::OutOfMemory,
        Self::TooBig,
        Self::Interrupted,
        Self::Unique,
        Self::ForeignKey,
        Self::NotNull,
        Self::Check,
        Self::Constraint,
        Self::Conflict,
        Self::BadLine,
        Self::Value,
        Self::Decode,
        Self::NotFound,
        Self::MoreThanOne,
        Self::Statement,
        Self::Refused,
        Self::Nested,
        Self::AlreadyTracked,
        Self::AlreadySaved,
        Self::Model,
        Self::Options,
        Self::SqliteVersion,
        Self::Closed,
        Self::Poisoned,
        Self::TransactionEnded,
        Self::OutcomeUnknown,
        Self::Application,
    ];
}

/// One entity that lost a race: what was read, what was to be saved, and what the database holds now.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// The entity's Rust name.
    pub entity: &'static str,
    /// Its table.
    pub table: &'static str,
    /// Its key, a value for each column of it.
    pub key: Vec<Value>,
    /// Whether the row was to be deleted.
    pub deletes: bool,
    /// The columns that were changed on both sides, to different values; what was not read counts as changed. Empty
    /// where the row as a whole is at odds: it was to be deleted, or it is gone.
    pub clashing: Vec<&'static str>,
    /// The columns' names, in the order of the values below.
    pub columns: Vec<&'static str>,
    /// The values as they were read; [`Value::Unread`] for a deferred column that was not.
    pub original: Vec<Value>,
    /// The values that were to be saved, and again `Unread`.
    pub current: Vec<Value>,
    /// The values in the database now; `None` when the row is gone.
    pub database: Option<Vec<Value>>,
}

impl Error {
    /// An error of this kind; the message is lower case, without a full stop, and holds no values of rows.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                message: message.into(),
                table: None,
                column: None,
                key: Vec::new(),
                statement: None,
                code: None,
                waited: None,
                conflicts: Vec::new(),
                source: None,
            }),
        }
    }

    /// Ends a transaction with an error of the application's own: kind [`ErrorKind::Application`].
    #[must_use]
    pub fn application(error: impl Into<ApplicationError>) -> Self {
        Self::new(
            ErrorKind::Application,
            "the application ended the transaction with an error",
        )
        .with_source(error)
    }

    /// A lost race over these entities.
    #[must_use]
    pub fn conflict(conflicts: Vec<Conflict>) -> Self {
        let message = match &conflicts[..] {
            [one] if one.database.is_none() => {
                format!(
                    "{} was deleted by another save, or by a cascade: conflicts() has the values that were to be saved; the context's client_wins inserts it again, store_wins forgets it",
                    one.entity
                )
            }
            [one] => format!(
                "{} was changed by another save: conflicts() has the original, current and database values; resolve it with the context's client_wins, store_wins or merge, and save again",
                one.entity
            ),
            more => format!(
                "{} entities were changed by other saves: see conflicts(), and resolve them with the context's client_wins, store_wins or merge",
                more.len()
            ),
        };
        Self::of_conflicts(conflicts, message)
    }

    /// A merge found these entities at odds.
    #[must_use]
    pub(crate) fn unmerged(conflicts: Vec<Conflict>) -> Self {
        let columns: Vec<_> = (conflicts.iter())
            .flat_map(|conflict| conflict.clashing.iter().copied())
            .collect();
        let message = "changed here and by another save, to different values: decide with merge_with, or take one side with client_wins or store_wins";
        match (&columns[..], &conflicts[..]) {
            ([], _) => Self::of_conflicts(
                conflicts,
                "changed on one side and deleted on the other: decide with merge_with, or take one side with client_wins or store_wins",
            ),
            (columns, [_]) => {
                let columns = columns.join(", ");
                Self::of_conflicts(conflicts, message).with_column(columns)
            }
            _ => Self::of_conflicts(conflicts, message),
        }
    }

    /// A row that was to be changed by its key, and version, is not there.
    #[must_use]
    pub(crate) fn missing(entity: &'static str, table: &'static str, key: Vec<Value>) -> Self {
        let conflict = Conflict {
            entity,
            table,
            key,
            deletes: false,
            clashing: Vec::new(),
            columns: Vec::new(),
            original: Vec::new(),
            current: Vec::new(),
            database: None,
        };
        let message = if matches!(conflict.key[..], [Value::Integer(0)]) {
            "its key is not set, so no row has it: a row is found by its key"
        } else {
            "no row has its key (Error::key), or the row was changed since it was read: read it again"
        };
        Self::of_conflicts(vec![conflict], message)
    }

    fn of_conflicts(conflicts: Vec<Conflict>, message: impl Into<Cow<'static, str>>) -> Self {
        let first = conflicts.first();
        let table = first.map(|conflict| conflict.table);
        let key = first.map(|conflict| conflict.key.clone());
        let mut error = Self::new(ErrorKind::Conflict, message);
        error.inner.table = table.map(Cow::Borrowed);
        error.inner.key = key.unwrap_or_default();
        error.inner.conflicts = conflicts;
        error
    }

    /// A value that cannot be stored.
    #[must_use]
    pub fn value(table: &'static str, column: &'static str, error: &ValueError) -> Self {
        Self::new(ErrorKind::Value, error.to_string())
            .with_table(table)
            .with_column(column)
    }

    /// The same error for another caller of a group that failed as a whole.
    #[must_use]
    pub(crate) fn copy(&self) -> Self {
        let inner = &self.inner;
        Self {
            inner: Box::new(Inner {
                kind: inner.kind,
                message: inner.message.clone(),
                table: inner.table.clone(),
                column: inner.column.clone(),
                key: inner.key.clone(),
                statement: inner.statement.clone(),
                code: inner.code,
                waited: inner.waited,
                conflicts: inner.conflicts.clone(),
                source: None,
            }),
        }
    }

    /// The same error, with more said before and after its message.
    #[must_use]
    pub(crate) fn between(mut self, before: &str, after: &str) -> Self {
        self.inner.message = format!("{before}{}{after}", self.inner.message).into();
        self
    }

    /// Names the table.
    #[must_use]
    pub fn with_table(mut self, table: impl Into<Cow<'static, str>>) -> Self {
        self.inner.table = Some(table.into());
        self
    }

    /// Names the column.
    #[must_use]
    pub fn with_column(mut self, column: impl Into<Cow<'static, str>>) -> Self {
        self.inner.column = Some(column.into());
        self
    }

    /// Names the key, a value for each column of it.
    #[must_use]
    pub fn with_key(mut self, key: Vec<Value>) -> Self {
        self.inner.key = key;
        self
    }

    /// Shows the statement (its text, which holds placeholders, not values).
    #[must_use]
    pub fn with_statement(mut self, statement: impl Into<Cow<'static, str>>) -> Self {
        self.inner.statement.get_or_insert(statement.into());
        self
    }

    /// Keeps SQLite's extended result code.
    #[must_use]
    pub fn with_code(mut self, code: i32) -> Self {
        self.inner.code = Some(code);
        self
    }

    /// Tells how long the caller waited.
    #[must_use]
    pub fn with_waited(mut self, waited: Duration) -> Self {
        self.inner.waited = Some(waited);
        self
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<ApplicationError>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The table, where known.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.inner.table.as_deref()
    }

    /// The column, where known; several are separated by a comma.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        self.inner.column.as_deref()
    }

    /// The key of the row, a value for each column of it; empty where it is not known. It is in no message.
    #[must_use]
    pub fn key(&self) -> &[Value] {
        &self.inner.key
    }

    /// The text of the statement, where known.
    #[must_use]
    pub fn statement(&self) -> Option<&str> {
        self.inner.statement.as_deref()
    }

    /// SQLite's extended result code, where SQLite refused.
    #[must_use]
    pub fn sqlite_code(&self) -> Option<i32> {
        self.inner.code
    }

    /// How long the caller had waited, where it waited.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        self.inner.waited
    }

    /// The entities that lost a race; empty for other kinds.
    #[must_use]
    pub fn conflicts(&self) -> &[Conflict] {
        &self.inner.conflicts
    }

    /// Whether this is a lost race, to be resolved and saved again.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    /// Whether the same piece of work may succeed later, unchanged: run it again from its start.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Busy
                | ErrorKind::BusySnapshot
                | ErrorKind::QueueTimeout
                | ErrorKind::PoolTimeout
                | ErrorKind::CommitTimeout
                | ErrorKind::Full
                | ErrorKind::TransactionEnded
        ) || self.is_lost_session()
    }

    /// Whether a session lost its race: there is nothing to resolve, it is run again.
    pub(crate) fn is_lost_session(&self) -> bool {
        self.is_conflict() && self.conflicts().is_empty()
    }

    /// Whether a constraint of the database refused the data.
    #[must_use]
    pub fn is_constraint(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Unique
                | ErrorKind::ForeignKey
                | ErrorKind::NotNull
                | ErrorKind::Check
                | ErrorKind::Constraint
        )
    }

    /// The application's own error, if it is one and of this type.
    ///
    /// # Errors
    ///
    /// The error itself, when it is another.
    pub fn into_application<E: std::error::Error + 'static>(mut self) -> Result<E, Self> {
        if self.kind() != ErrorKind::Application {
            return Err(self);
        }
        let source = self.inner.source.take();
        match source.map(|source| source.downcast::<E>()) {
            Some(Ok(error)) => Ok(*error),
            Some(Err(source)) => {
                self.inner.source = Some(source);
                Err(self)
            }
            None => Err(self),
        }
    }
}

/// So many of something, for messages.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.inner;
        // An error of the application's own speaks for itself.
        if inner.kind == ErrorKind::Application
            && let Some(error) = &inner.source
        {
            // But for where it was, if that is known.
            if let Some(table) = &inner.table {
                write!(f, "{table}: {}: ", inner.message)?;
            }
            return write!(f, "{error}");
        }
        match (&inner.table, &inner.column) {
            (Some(table), Some(column)) => write!(f, "{table}.{column}: ")?,
            (Some(name), None) | (None, Some(name)) => write!(f, "{name}: ")?,
            (None, None) => {}
        }
        f.write_str(&inner.message)?;
        if let Some(waited) = inner.waited {
            write!(f, " (waited {waited:.1?})")?;
        }
        if let Some(code) = inner.code {
            write!(f, " (SQLite code {code})")?;
        }
        if let Some(statement) = &inner.statement {
            write!(f, " in: {statement}")?;
        }
        Ok(())
    }
}

impl Error {
    /// What events of the library say of it: what is known to hold no value. Texts that are put together may quote SQL of the
    /// application, and what an error of the application says is its own affair.
    pub(crate) const fn in_log(&self) -> InLog<'_> {
        InLog(&self.inner)
    }
}

/// An error without anything that might be a value.
#[derive(Debug)]
pub(crate) struct InLog<'a>(&'a Inner);

impl fmt::Display for InLog<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.0;
        write!(f, "{:?}", inner.kind)?;
        for name in [&inner.table, &inner.column].into_iter().flatten() {
            write!(f, " {name}")?;
        }
        if let Cow::Borrowed(message) = inner.message {
            write!(f, ": {message}")?;
        }
        if let Some(waited) = inner.waited {
            write!(f, " (waited {waited:.1?})")?;
        }
        match inner.code {
            Some(code) => write!(f, " (SQLite code {code})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            write!(f, ", caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.inner.source.as_deref()? as &(dyn std::error::Error + 'static);
        if self.kind() == ErrorKind::Application {
            return source.source();
        }
        Some(source)
    }
}

impl From<ApplicationError> for Error {
    fn from(error: ApplicationError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::application(error),
        }
    }
}
