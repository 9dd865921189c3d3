//! Copying the pages of a snapshot.

use std::{path::Path, sync::Arc};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    engine::{
        backup::{part::Part, target::Target},
        busy,
        ffi::{Hooks, PlainConnection},
        hooks::Progress,
        long_read::LongRead,
        sqlite_error::from_rusqlite,
        stamp::forget_epoch,
        vacuum::refuse_to_lose_tables,
    },
    error::{Error, ErrorKind, Result},
};

/// So many bytes are copied between two looks at whether it goes on.
const STEP: u64 = 1024 * 1024;

/// How large a database is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) pages: u64,
    pub(super) bytes: u64,
}

/// The size of what a connection sees.
pub(super) fn size(connection: &Connection) -> Result<Size> {
    let ask = |name| -> Result<u64> {
        let number: i64 = connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(from_rusqlite)?;
        Ok(number.unsigned_abs())
    };
    let pages = ask("page_count")?;
    let bytes = pages.saturating_mul(ask("page_size")?);
    Ok(Size { pages, bytes })
}

/// Copies all pages, and leaves a database without a log: one file, which can be opened where nobody may write.
pub(super) fn pages(
    read: &LongRead,
    part: &Part,
    mut tell: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut copy = open(part.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Nobody else has it, and whatever happens to it before it is complete, it is removed.
    let alone =
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;";
    copy.execute_batch(alone).map_err(from_rusqlite)?;
    let Size { pages, bytes } = size(read.connection())?;
    let step = i32::try_from(STEP * pages.max(1) / bytes.max(1))
        .unwrap_or(1)
        .max(1);
    let backup = Backup::new(read.connection(), &mut copy).map_err(from_rusqlite)?;
    let timeout = read.core().options.busy_timeout;
    loop {
        read.go_on()?;
        let is_done = busy::retrying(timeout, || match backup.step(step) {
            Ok(StepResult::Done) => Ok(true),
            Ok(StepResult::More) => Ok(false),
            Ok(_) => Err(Error::new(ErrorKind::Busy, "the database is locked")),
            Err(error) => Err(from_rusqlite(error)),
        })?;
        let progress = backup.progress();
        let done = progress.pagecount.saturating_sub(progress.remaining);
        tell(u64::try_from(done).unwrap_or_default())?;
        if is_done {
            break;
        }
    }
    drop(backup);
    copy.execute_batch("PRAGMA journal_mode = DELETE;")
        .map_err(from_rusqlite)?;
    forget_epoch(&copy).map_err(from_rusqlite)?;
    copy.close().map_err(|(_, error)| from_rusqlite(error))
}

/// Writes the copy anew, without its free pages.
pub(super) fn compact(
    part: &Part,
    target: &Target,
    database: &Path,
    progress: &Arc<Progress>,
) -> Result<Part> {
    let compacted = Part::new(target, database)?;
    let copy = listening(part.path(), progress)?;
    refuse_to_lose_tables(&copy)?;
    // A link may lead to a folder whose name is not UTF-8.
    let to = ValueRef::Text(compacted.path().as_os_str().as_encoded_bytes());
    copy.execute("VACUUM main INTO ?1", [ToSqlOutput::Borrowed(to)])
        .map_err(from_rusqlite)?;
    Ok(compacted)
}

/// A connection that reads a copy, and stops when the work is stopped.
pub(super) fn listening(path: &Path, progress: &Arc<Progress>) -> Result<PlainConnection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let hooks = Hooks {
        progress: Some(Arc::clone(progress)),
        ..Hooks::default()
    };
    Ok(PlainConnection::new(connection, hooks))
}

fn open(path: &Path, how: OpenFlags) -> Result<Connection> {
    let flags = how | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    Connection::open_with_flags(path, flags).map_err(from_rusqlite)
}
