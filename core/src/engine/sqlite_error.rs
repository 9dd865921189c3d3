//! SQLite's result codes as kinds of our error.

use std::borrow::Cow;

use libsqlite3_sys as sqlite;

use crate::error::{Error, ErrorKind, counted};

/// The kind for an extended result code.
pub(in crate::engine) fn kind(code: i32) -> ErrorKind {
    match code {
        sqlite::SQLITE_BUSY_SNAPSHOT => return ErrorKind::BusySnapshot,
        sqlite::SQLITE_CONSTRAINT_UNIQUE
        | sqlite::SQLITE_CONSTRAINT_PRIMARYKEY
        | sqlite::SQLITE_CONSTRAINT_ROWID => return ErrorKind::Unique,
        sqlite::SQLITE_CONSTRAINT_FOREIGNKEY => return ErrorKind::ForeignKey,
        sqlite::SQLITE_CONSTRAINT_NOTNULL => return ErrorKind::NotNull,
        sqlite::SQLITE_CONSTRAINT_CHECK => return ErrorKind::Check,
        sqlite::SQLITE_IOERR_NOMEM => return ErrorKind::OutOfMemory,
        _ => {}
    }
    match code & 0xff {
        sqlite::SQLITE_BUSY => ErrorKind::Busy,
        sqlite::SQLITE_LOCKED => ErrorKind::Locked,
        sqlite::SQLITE_FULL => ErrorKind::Full,
        sqlite::SQLITE_READONLY => ErrorKind::ReadOnly,
        sqlite::SQLITE_CANTOPEN => ErrorKind::CannotOpen,
        sqlite::SQLITE_CORRUPT => ErrorKind::Corrupt,
        sqlite::SQLITE_NOTADB => ErrorKind::NotADatabase,
        sqlite::SQLITE_IOERR => ErrorKind::Io,
        sqlite::SQLITE_NOMEM => ErrorKind::OutOfMemory,
        sqlite::SQLITE_TOOBIG => ErrorKind::TooBig,
        sqlite::SQLITE_INTERRUPT => ErrorKind::Interrupted,
        sqlite::SQLITE_CONSTRAINT => ErrorKind::Constraint,
        sqlite::SQLITE_AUTH => ErrorKind::Refused,
        // Like BUSY, it passes.
        _ if is_unrest(code) => ErrorKind::Busy,
        _ => ErrorKind::Statement,
    }
}

/// What the kind means for whoever reads the message.
fn advice(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Busy => "another process holds the write lock",
        ErrorKind::BusySnapshot => {
            "another commit came between this transaction's read and its write; run it again from its start"
        }
        ErrorKind::ForeignKey => {
            "a reference points at no row, or other rows still refer to the one that is deleted"
        }
        ErrorKind::Full => "the disk is full: nothing was written; make room and try again",
        ErrorKind::ReadOnly => "the database can only be read",
        ErrorKind::Corrupt => "the file is damaged: stop writing, and restore a backup",
        ErrorKind::CannotOpen => {
            "the file cannot be opened: its folder has to exist and be writable, for the -wal and -shm beside it"
        }
        ErrorKind::NotADatabase => "the file is no SQLite database, or it is encrypted",
        ErrorKind::Io => {
            "the operating system could not read or write the file or its -wal and -shm"
        }
        _ => return None,
    })
}

/// SQLite's "locking protocol": each time it had looked at the log something changed before it had its lock, or somebody
/// holds the lock of writers with the header half written. Nobody has to be at fault, and nothing was done.
pub(in crate::engine) fn is_unrest(code: i32) -> bool {
    code & 0xff == sqlite::SQLITE_PROTOCOL
}

/// Our error for SQLite's code and message.
pub(in crate::engine) fn from_code(code: i32, message: &str) -> Error {
    if message == "malformed JSON" {
        return Error::new(
            ErrorKind::Decode,
            "a row holds text that is not JSON where the statement looks into JSON; find it with NOT json_valid(column)",
        )
        .with_code(code);
    }
    let kind = match kind(code) {
        // RESTRICT is a trigger within SQLite, with a trigger's code and the words of a foreign key.
        ErrorKind::Constraint if message == "FOREIGN KEY constraint failed" => {
            ErrorKind::ForeignKey
        }
        kind => kind,
    };
    let text = match advice(kind) {
        Some(_) if is_unrest(code) => Cow::Borrowed(
            "no snapshot could be taken: other processes commit without a pause, or one hangs in the middle of a commit; run it again",
        ),
        Some(advice) => Cow::Borrowed(advice),
        None if message.starts_with("no such table") => Cow::Owned(format!(
            "{message}: was it made, with create_tables? A struct for rows of a query has none: it is asked by `as_table`"
        )),
        None => Cow::Owned(message.to_owned()),
    };
    let error = Error::new(kind, text).with_code(code);
    // "UNIQUE constraint failed: orders.item, orders.day" names the columns.
    match message.split_once("constraint failed: ") {
        Some((_, columns)) if matches!(kind, ErrorKind::Unique | ErrorKind::NotNull) => {
            with_columns(error, columns)
        }
        _ => error,
    }
}

fn with_columns(error: Error, columns: &str) -> Error {
    let mut table = None;
    let mut names = Vec::new();
    for column in columns.split(", ") {
        let Some((owner, name)) = column.split_once('.') else {
            return error;
        };
        table = Some(owner.to_owned());
        names.push(name);
    }
    match table {
        Some(table) => error.with_table(table).with_column(names.join(", ")),
        None => error,
    }
}

/// Our error for rusqlite's.
pub(in crate::engine) fn from_rusqlite(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(failure, ref message) => {
            let text = message.clone().unwrap_or_else(|| failure.to_string());
            with_cause(from_code(failure.extended_code, &text), error)
        }
        rusqlite::Error::SqlInputError {
            error: failure,
            ref msg,
            ..
        } => with_cause(from_code(failure.extended_code, msg), error),
        rusqlite::Error::InvalidParameterCount(given, expected) => Error::new(
            ErrorKind::Statement,
            format!(
                "the statement takes {}, {given} were given",
                counted(expected, "argument")
            ),
        ),
        other => Error::new(ErrorKind::Statement, other.to_string()),
    }
}

/// The kind of our error for rusqlite's.
pub(in crate::engine) fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    match error {
        rusqlite::Error::SqliteFailure(failure, _)
        | rusqlite::Error::SqlInputError { error: failure, .. } => kind(failure.extended_code),
        _ => ErrorKind::Statement,
    }
}

/// The same for sqlx's.
pub(in crate::engine) fn kind_of_sqlx(error: &sqlx::Error) -> ErrorKind {
    match error {
        sqlx::Error::Configuration(ours) => {
            (ours.downcast_ref::<Error>()).map_or(ErrorKind::Statement, Error::kind)
        }
        sqlx::Error::Database(database) => {
            let code = database.code().and_then(|code| code.parse().ok());
            code.map_or(ErrorKind::Statement, kind)
        }
        _ => ErrorKind::Statement,
    }
}

/// Keeps the cause where it says more than our message, which else is SQLite's own.
fn with_cause(error: Error, cause: rusqlite::Error) -> Error {
    if advice(error.kind()).is_some() {
        error.with_source(cause)
    } else {
        error
    }
}

impl From<sqlx::Error> for Error {
    /// Classifies what a raw query met, so that `?` works inside of `db.write`.
    fn from(error: sqlx::Error) -> Self {
        let error = match error {
            // Ours, from a transaction that could not run the query: its kind says what to do.
            sqlx::Error::Configuration(ours) => match ours.downcast::<Self>() {
                Ok(ours) => return *ours,
                Err(other) => sqlx::Error::Configuration(other),
            },
            error => error,
        };
        match &error {
            sqlx::Error::Database(database) => {
                let code = database
                    .code()
                    .and_then(|code| code.parse::<i32>().ok())
                    .unwrap_or(sqlite::SQLITE_ERROR);
                let message = database.message().to_owned();
                if kind(code) == ErrorKind::Refused {
                    return Self::new(ErrorKind::Refused, message)
                        .with_code(code)
                        .with_source(error);
                }
                from_code(code, &message).with_source(error)
            }
            sqlx::Error::RowNotFound => {
                Self::new(ErrorKind::NotFound, "the query returned no row").with_source(error)
            }
            sqlx::Error::Decode(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::TypeNotFound { .. } => {
                Self::new(ErrorKind::Decode, error.to_string()).with_source(error)
            }
            sqlx::Error::Encode(_) => {
                Self::new(ErrorKind::Value, error.to_string()).with_source(error)
            }
            sqlx::Error::Io(_) => Self::new(ErrorKind::Io, error.to_string()).with_source(error),
            sqlx::Error::WorkerCrashed => {
                Self::new(ErrorKind::Poisoned, error.to_string()).with_source(error)
            }
            _ => Self::new(ErrorKind::Statement, error.to_string()).with_source(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use libsqlite3_sys as sqlite;

    use crate::{
        engine::sqlite_error::{from_code, kind},
        error::ErrorKind,
    };

    #[test]
    fn each_code_that_an_application_can_act_on_has_its_kind() {
        for (code, expected) in [
            (sqlite::SQLITE_BUSY, ErrorKind::Busy),
            (sqlite::SQLITE_BUSY_RECOVERY, ErrorKind::Busy),
            (sqlite::SQLITE_BUSY_SNAPSHOT, ErrorKind::BusySnapshot),
            (sqlite::SQLITE_BUSY_TIMEOUT, ErrorKind::Busy),
            (sqlite::SQLITE_LOCKED, ErrorKind::Locked),
            (sqlite::SQLITE_LOCKED_SHAREDCACHE, ErrorKind::Locked),
            (sqlite::SQLITE_FULL, ErrorKind::Full),
            (sqlite::SQLITE_READONLY, ErrorKind::ReadOnly),
            (sqlite::SQLITE_READONLY_DIRECTORY, ErrorKind::ReadOnly),
            (sqlite::SQLITE_READONLY_DBMOVED, ErrorKind::ReadOnly),
            (sqlite::SQLITE_CANTOPEN, ErrorKind::CannotOpen),
            (sqlite::SQLITE_CANTOPEN_ISDIR, ErrorKind::CannotOpen),
            (sqlite::SQLITE_CORRUPT, ErrorKind::Corrupt),
            (sqlite::SQLITE_CORRUPT_INDEX, ErrorKind::Corrupt),
            (sqlite::SQLITE_NOTADB, ErrorKind::NotADatabase),
            (sqlite::SQLITE_IOERR, ErrorKind::Io),
            (sqlite::SQLITE_IOERR_FSYNC, ErrorKind::Io),
            (sqlite::SQLITE_IOERR_SHMMAP, ErrorKind::Io),
            (sqlite::SQLITE_NOMEM, ErrorKind::OutOfMemory),
            (sqlite::SQLITE_TOOBIG, ErrorKind::TooBig),
            (sqlite::SQLITE_INTERRUPT, ErrorKind::Interrupted),
            (sqlite::SQLITE_CONSTRAINT_UNIQUE, ErrorKind::Unique),
            (sqlite::SQLITE_CONSTRAINT_PRIMARYKEY, ErrorKind::Unique),
            (sqlite::SQLITE_CONSTRAINT_FOREIGNKEY, ErrorKind::ForeignKey),
            (sqlite::SQLITE_CONSTRAINT_NOTNULL, ErrorKind::NotNull),
            (sqlite::SQLITE_CONSTRAINT_CHECK, ErrorKind::Check),
            (sqlite::SQLITE_CONSTRAINT_TRIGGER, ErrorKind::Constraint),
            (sqlite::SQLITE_CONSTRAINT_DATATYPE, ErrorKind::Constraint),
            (sqlite::SQLITE_AUTH, ErrorKind::Refused),
            (sqlite::SQLITE_PROTOCOL, ErrorKind::Busy),
            (sqlite::SQLITE_ERROR, ErrorKind::Statement),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }

    #[test]
    fn a_log_that_never_rests_is_told_in_words_that_help() {
        let error = from_code(sqlite::SQLITE_PROTOCOL, "locking protocol");
        assert!(error.is_retryable());
        let text = error.to_string();
        assert!(text.contains("no snapshot could be taken"), "{text}");
        assert!(!text.contains("protocol"), "{text}");
        let busy = from_code(sqlite::SQLITE_BUSY, "database is locked").to_string();
        assert!(busy.contains("write lock"), "{busy}");
    }

    #[test]
    fn a_constraint_names_its_columns() {
        let error = from_code(
            sqlite::SQLITE_CONSTRAINT_UNIQUE,
            "UNIQUE constraint failed: orders.item, orders.day",
        );
        assert_eq!(error.table(), Some("orders"));
        assert_eq!(error.column(), Some("item, day"));
    }
}
