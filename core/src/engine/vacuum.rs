//! Rebuilding the file without its free pages.
//!
//! SQLite writes a copy to a temporary file, and then all of it to the log, which is as long as the database until it
//! is truncated. A disk that fills up on the way undoes it, but meanwhile stops everybody who writes to that disk; so the
//! room is looked at first.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OptionalExtension, config::DbConfig};

use crate::{
    engine::{
        busy,
        checkpoint::{Checkpoint, truncate_log},
        connection::execute,
        core::Core,
        history,
        options::TempStore,
        room,
        sqlite_error::from_rusqlite,
        writer::Writer,
    },
    error::{Error, ErrorKind, Result},
};

/// What [`Database::vacuum`](crate::database::Database::vacuum) did.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let report = db.vacuum().await?;
/// println!("{} bytes given back", report.bytes_before.saturating_sub(report.bytes_after));
/// assert!(report.checkpoint.is_complete());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VacuumReport {
    /// The size of the database before.
    pub bytes_before: u64,
    /// Its size now. The file itself has it once the log is moved.
    pub bytes_after: u64,
    /// How the log was moved into the file afterwards. Where a reader was in the way it is as long as the database, until
    /// a later checkpoint.
    pub checkpoint: Checkpoint,
    /// From the turn of the writer to the end.
    pub elapsed: Duration,
}

/// How large a database is.
struct Size {
    bytes: u64,
    /// What is in use of it.
    used: u64,
}

/// With the slot held.
pub(in crate::engine) fn run(writer: &mut Writer, core: &Core) -> Result<VacuumReport> {
    let began = Instant::now();
    let connection = writer.connection();
    // What is in the log by now needs no room beside what comes.
    truncate_log(connection, core)?;
    let before = size(connection)?;
    refuse_to_lose_tables(connection)?;
    make_sure_of_room(&before, core)?;
    with_old_definitions(connection, || {
        busy::retrying(core.options.busy_timeout, || execute(connection, "VACUUM"))
    })?;
    // Rows may have other rowids.
    core.history.committed(history::Changes::Unknown);
    let after = size(connection)?;
    Ok(VacuumReport {
        bytes_before: before.bytes,
        bytes_after: after.bytes,
        checkpoint: truncate_log(connection, core)?,
        elapsed: began.elapsed(),
    })
}

/// VACUUM runs only definitions that begin with CREATE, as SQLite writes them, and passes over others without a word: tables
/// whose definition was edited by hand would be gone.
pub(in crate::engine) fn refuse_to_lose_tables(connection: &Connection) -> Result<()> {
    let lost =
        "SELECT name FROM main.sqlite_schema WHERE rootpage > 0 AND substr(sql, 1, 3) <> 'CRE'";
    let found = connection.query_row(lost, [], |row| {
        Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned())
    });
    match found.optional().map_err(from_rusqlite)? {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "the definition of {name} was edited by hand and does not begin with CREATE in capitals, and VACUUM would leave \
                 it out, with all rows: correct it in sqlite_schema first"
            ),
        )),
    }
}

/// VACUUM makes all tables and indexes anew, also those in which another program wrote texts in double quotes.
fn with_old_definitions<T>(connection: &Connection, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let allow = |allowed| {
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, allowed)
            .map_err(from_rusqlite)
    };
    allow(true)?;
    let outcome = run();
    allow(false)?;
    outcome
}

fn size(connection: &Connection) -> Result<Size> {
    let ask = |name| -> Result<u64> {
        let number: i64 = connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(from_rusqlite)?;
        Ok(number.unsigned_abs())
    };
    let (pages, free) = (ask("page_count")?, ask("freelist_count")?);
    let page_size = ask("page_size")?;
    Ok(Size {
        bytes: pages.saturating_mul(page_size),
        used: pages.saturating_sub(free).saturating_mul(page_size),
    })
}

/// Room for the log, and for the temporary file where it is not in memory.
fn make_sure_of_room(size: &Size, core: &Core) -> Result<()> {
    let path = &core.location.path;
    let folder = path.parent().unwrap_or(path);
    // A frame has a head of 24 bytes, and a page 512 at least.
    let log = size.used.saturating_add(size.used / 20);
    let copy = match core.options.temp_store {
        TempStore::Memory => None,
        TempStore::Default | TempStore::File => temporary_folder(),
    };
    match copy {
        Some(copy) if is_on_the_same_disk(&copy, folder) => {
            room::make_sure_of(log.saturating_add(size.used), folder, "VACUUM")
        }
        Some(copy) => {
            room::make_sure_of(size.used, &copy, "the temporary file of VACUUM")?;
            room::make_sure_of(log, folder, "VACUUM")
        }
        None => room::make_sure_of(log, folder, "VACUUM"),
    }
}

/// Where SQLite makes temporary files.
fn temporary_folder() -> Option<PathBuf> {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].map(|name| env::var_os(name).map(PathBuf::from));
    let usual = ["/var/tmp", "/usr/tmp", "/tmp"].map(|path| Some(PathBuf::from(path)));
    named
        .into_iter()
        .chain(usual)
        .flatten()
        .find(|folder| folder.is_dir())
}

#[cfg(unix)]
fn is_on_the_same_disk(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path| fs::metadata(path).map(|found| found.dev()).ok();
    device(one) == device(other)
}

#[cfg(not(unix))]
fn is_on_the_same_disk(_one: &Path, _other: &Path) -> bool {
    false
}
