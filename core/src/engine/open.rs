//! Opening a file: what the path leads to, whether the process has it open already, and the connections.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;

use crate::{
    engine::{
        checkpoint::Checkpointer,
        connection::{Role, open},
        core::Core,
        ffi::{Hooks, PlainConnection},
        gate::InlineGate,
        hooks::{Authorizer, Progress, WalSize, Watch},
        options::{Execution, Location, Options, Synchronous},
        pace::Pace,
        pool::{Pool, Reader},
        slot::Slot,
        sqlite_error::from_rusqlite,
        threads::Threads,
        writer::Writer,
    },
    error::{Error, ErrorKind, Result},
    observe::Counters,
};

/// The least version without the WAL-reset bug, which can lose commits when two connections write and checkpoint
/// at the same time.
const LEAST_VERSION: i32 = 3_051_003;

/// A file, however its path is spelled.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = PathBuf;

/// The files that are open in this process.
static OPEN: Mutex<Vec<(FileId, Weak<Core>)>> = Mutex::new(Vec::new());
/// The paths that are being opened, and the bell for whoever waits for one of them.
static OPENING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static OPENED: Condvar = Condvar::new();

/// Opens a file, or joins the engine that has it open. Blocks.
pub(in crate::engine) fn open_file(path: &Path, options: &Options) -> Result<Arc<Core>> {
    options.check()?;
    check_version(rusqlite::version_number())?;
    let path = check_path(path, options)?;
    // One at a time: two that open one new file must end up with one engine. Other files do not wait for it.
    let opening = Opening::of(&path);
    if path.exists()
        && let Some(core) = find(&path)?
    {
        return joined(core, options);
    }
    let location = Location {
        path,
        _temporary: None,
    };
    let core = start(location, options.clone())?;
    // By a hard link it may have been opened meanwhile.
    if let Some(other) = find(&core.location.path)? {
        return joined(other, options);
    }
    let id = file_id(&core.location.path)?;
    open_files().push((id, Arc::downgrade(&core)));
    drop(opening);
    Ok(core)
}

/// The engine that has the file open, if it is what was asked for.
fn joined(core: Arc<Core>, options: &Options) -> Result<Arc<Core>> {
    if core.options == *options {
        return Ok(core);
    }
    Err(Error::new(
        ErrorKind::Options,
        format!(
            "the file is open in this process with another {}: open it once, and clone the handle",
            core.options.differences(options).join(", ")
        ),
    ))
}

fn open_files() -> MutexGuard<'static, Vec<(FileId, Weak<Core>)>> {
    let mut files = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    files.retain(|(_, core)| core.strong_count() > 0);
    files
}

/// A path that is being opened; whoever opens it too waits until that is over.
struct Opening(PathBuf);

impl Opening {
    fn of(path: &Path) -> Self {
        // Of a file that does not exist yet the folder at least has one spelling.
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let spelled = match (path.canonicalize(), folder, path.file_name()) {
            (Ok(path), _, _) => path,
            (Err(_), Some(folder), Some(name)) => folder.join(name),
            _ => path.to_owned(),
        };
        let mut opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        while opening.contains(&spelled) {
            opening = OPENED.wait(opening).unwrap_or_else(PoisonError::into_inner);
        }
        opening.push(spelled.clone());
        Self(spelled)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        opening.retain(|path| *path != self.0);
        OPENED.notify_all();
    }
}

/// Opens a file of its own that is removed when it is closed. Blocks.
pub(in crate::engine) fn open_temporary(options: Options) -> Result<Arc<Core>> {
    options.check()?;
    check_version(rusqlite::version_number())?;
    let folder = tempfile::Builder::new()
        .prefix("anabranch-")
        .tempdir()
        .map_err(|error| {
            Error::new(ErrorKind::CannotOpen, "no temporary folder could be made")
                .with_source(error)
        })?;
    let path = folder.path().join("temporary.db");
    let core = start(
        Location {
            path,
            _temporary: Some(Arc::new(folder)),
        },
        options,
    )?;
    let mut files = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    files.push((file_id(&core.location.path)?, Arc::downgrade(&core)));
    Ok(core)
}

fn find(path: &Path) -> Result<Option<Arc<Core>>> {
    let id = file_id(path)?;
    Ok(open_files()
        .iter()
        .filter(|(known, _)| *known == id)
        .filter_map(|(_, core)| core.upgrade())
        .find(|core| !core.closing.load(Ordering::Acquire) && !core.slot.has_ended()))
}

fn check_version(linked: i32) -> Result<()> {
    if linked >= LEAST_VERSION {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::SqliteVersion,
        format!(
            "SQLite {}.{}.{} is linked, which can lose commits when several connections write (the WAL-reset bug): \
             3.51.3 is the least",
            linked / 1_000_000,
            linked / 1000 % 1000,
            linked % 1000
        ),
    ))
}

/// The absolute path; an error shows which part of it is missing.
fn check_path(path: &Path, options: &Options) -> Result<PathBuf> {
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(Error::new(
            ErrorKind::Options,
            "a database in memory, or one named by a URI, has no file whose readers and writer could share a log: \
             give a path, or use Database::temporary()",
        ));
    }
    let cannot = |message: String| Error::new(ErrorKind::CannotOpen, message);
    if path.to_str().is_none_or(|text| text.contains('\0')) {
        return Err(cannot(format!(
            "{}: the path is not UTF-8, or contains a NUL",
            path.display()
        )));
    }
    let absolute = std::path::absolute(path).map_err(|error| {
        cannot(format!("{}: no absolute path", path.display())).with_source(error)
    })?;
    let shown = absolute.display();
    if absolute.is_dir() {
        return Err(cannot(format!("{shown} is a folder")));
    }
    let folder = absolute.parent().unwrap_or(&absolute);
    if !folder.is_dir() {
        let missing = folder
            .ancestors()
            .take_while(|part| !part.exists())
            .last()
            .unwrap_or(folder);
        let what = if missing.exists() {
            "is no folder"
        } else {
            "does not exist"
        };
        return Err(cannot(format!(
            "{shown}: the folder {} {what}",
            missing.display()
        )));
    }
    if !options.create && !absolute.exists() {
        return Err(cannot(format!(
            "{shown}: the file does not exist, and the option create is off"
        )));
    }
    Ok(absolute)
}

#[cfg(unix)]
fn file_id(path: &Path) -> Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    // A `stat`, which leaves SQLite's locks alone; opening and closing the file would drop them.
    let metadata = std::fs::metadata(path).map_err(|error| {
        Error::new(
            ErrorKind::CannotOpen,
            format!("{}: cannot be looked at", path.display()),
        )
        .with_source(error)
    })?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Result<FileId> {
    path.canonicalize().map_err(|error| {
        Error::new(
            ErrorKind::CannotOpen,
            format!("{}: cannot be looked at", path.display()),
        )
        .with_source(error)
    })
}

fn start(mut location: Location, options: Options) -> Result<Arc<Core>> {
    let watch = Arc::new(Watch::default());
    let wal_size = Arc::new(WalSize::new(options.wal_autocheckpoint));
    let hooks = Hooks {
        watch: Some(Arc::clone(&watch)),
        wal_size: Some(Arc::clone(&wal_size)),
        ..Hooks::default()
    };
    // The writer first: it makes the file, and the log's index, which readers only use.
    let connection = open(&location.path, &options, Role::Writer, hooks)?;
    location.path = location.path.canonicalize().map_err(|error| {
        Error::new(
            ErrorKind::CannotOpen,
            "the file vanished while it was opened",
        )
        .with_source(error)
    })?;
    let writer = writer(connection, &watch, &options)?;
    let readers = (0..options.readers)
        .map(|_| reader(&location.path, &options))
        .collect::<Result<Vec<_>>>()?;
    let checkpoints = open(
        &location.path,
        &options,
        Role::Checkpointer,
        Hooks::default(),
    )?;
    let threaded =
        options.execution == Execution::Threaded || options.synchronous == Synchronous::Full;
    let checkpointer = Checkpointer::default();
    wal_size.on_wake(checkpointer.bell());
    let core = Arc::new(Core {
        slot: Arc::new(Slot::new(threaded, options.queue_timeout)),
        writer: Mutex::new(Some(writer)),
        authorizer: Arc::new(Authorizer::default()),
        watch,
        wal_size,
        pool: Arc::new(Pool::new(readers, options.queue_timeout)),
        gate: InlineGate::default(),
        pace: Pace::new(),
        threads: Threads::default(),
        checkpointer,
        capacity: options
            .write_queue_capacity
            .map(|capacity| Arc::new(Semaphore::new(capacity))),
        counters: Counters::default(),
        options,
        is_undecided: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        location,
    });
    start_threads(&core, checkpoints).map_err(|error| {
        Error::new(
            ErrorKind::OutOfMemory,
            "the operating system gave no thread",
        )
        .with_source(error)
    })?;
    Ok(core)
}

fn start_threads(core: &Arc<Core>, checkpoints: PlainConnection) -> std::io::Result<()> {
    core.run_writer_thread()?;
    core.checkpointer.start(Arc::downgrade(core), checkpoints)
}

/// It reads at once, and another process that opened the file just now may still be recovering the log.
fn writer(connection: PlainConnection, watch: &Arc<Watch>, options: &Options) -> Result<Writer> {
    connection
        .busy_timeout(options.busy_timeout)
        .map_err(from_rusqlite)?;
    let writer = Writer::new(connection, Arc::clone(watch))?;
    writer
        .connection()
        .busy_timeout(Duration::ZERO)
        .map_err(from_rusqlite)?;
    Ok(writer)
}

fn reader(path: &Path, options: &Options) -> Result<Reader> {
    let progress = Arc::new(Progress::default());
    let hooks = Hooks {
        progress: Some(Arc::clone(&progress)),
        ..Hooks::default()
    };
    Ok(Reader {
        connection: open(path, options, Role::Reader, hooks)?,
        progress,
    })
}

#[cfg(test)]
mod tests {
    use crate::{engine::open::check_version, error::ErrorKind};

    #[test]
    fn an_old_sqlite_is_refused_with_the_reason() {
        let error = check_version(3_051_002).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SqliteVersion);
        assert!(error.to_string().contains("3.51.2"));
        assert!(check_version(3_051_003).is_ok());
    }
}
