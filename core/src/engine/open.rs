//! Opening a file: what the path leads to, whether the process has it open already, and the connections.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

use crate::{
    engine::{
        checkpoint::Checkpointer,
        commit_times::CommitTimes,
        connection::{Role, open},
        core::Core,
        ffi::{Hooks, PlainConnection, WriterVfs, has_moved},
        functions,
        gate::InlineGate,
        hooks::{Authorizer, Progress, WalSize, Watch},
        key::Allocator,
        location::{
            FileId, Location, beside, check_file_system, check_path, explain, file_id, names,
            spelled,
        },
        lost_log,
        narrator::Voice,
        options::{Execution, Options, Synchronous},
        pace::Pace,
        passes::Passes,
        pool::{Pool, Reader},
        reader_gate::ReaderGate,
        rerun::Heats,
        sessions::Sessions,
        slot::{Label, Slot},
        sqlite_error::from_rusqlite,
        stamp::give_epoch,
        threads::Threads,
        whereabouts::Whereabouts,
        writer::Writer,
    },
    error::{Error, ErrorKind, Result},
    observe::{Counters, Namespace},
};

/// The least version without the WAL-reset bug, which can lose commits when two connections write and checkpoint
/// at the same time.
const LEAST_VERSION: i32 = 3_051_003;

/// The files that are open in this process.
static OPEN: Mutex<Vec<OpenFile>> = Mutex::new(Vec::new());
/// The paths that are being opened, and the bell for whoever waits for one of them.
static OPENING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static OPENED: Condvar = Condvar::new();

/// A file that is open, or was and is about to be let go of.
struct OpenFile {
    id: FileId,
    path: PathBuf,
    core: Weak<Core>,
}

impl OpenFile {
    fn of(core: &Arc<Core>) -> Result<Self> {
        Ok(Self {
            id: file_id(&core.location.path)?,
            path: core.location.path.clone(),
            core: Arc::downgrade(core),
        })
    }
}

/// Opens a file, or joins the engine that has it open. Blocks.
pub(in crate::engine) fn open_file(path: &Path, options: &Options) -> Result<Arc<Core>> {
    options.check()?;
    check_version(rusqlite::version_number())?;
    let path = check_path(path, options)?;
    check_file_system(&path, options)?;
    // One at a time: two that open one new file must end up with one engine. Other files do not wait for it.
    let opening = Opening::of(&path);
    wait_for_lost(&opening.0, options.busy_timeout)?;
    lost_log::refuse(&opening.0)?;
    if path.exists()
        && let Some(core) = find(&path)?
    {
        return joined(core, options);
    }
    let location = Location {
        path,
        log: None,
        _temporary: None,
    };
    let core = start(location, options.clone())?;
    // By a hard link it may have been opened meanwhile.
    if let Some(other) = find(&core.location.path)? {
        return joined(other, options);
    }
    let names = names(&core.location.path);
    if names > 1 {
        tracing::warn!(
            path = %core.location.path.display(),
            names,
            "the file has several names (hard links): who opens it by another one does not see its log"
        );
    }
    let file = OpenFile::of(&core)?;
    open_files().push(file);
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

fn open_files() -> MutexGuard<'static, Vec<OpenFile>> {
    let mut files = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    files.retain(|file| file.core.strong_count() > 0);
    files
}

/// A path that is being opened; whoever opens it too waits until that is over.
struct Opening(PathBuf);

impl Opening {
    fn of(path: &Path) -> Self {
        let spelled = spelled(path);
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

/// Runs what must not happen while the path is being opened in this process. Blocks.
pub(in crate::engine) fn while_nobody_opens<T>(path: &Path, run: impl FnOnce() -> T) -> T {
    let _opening = Opening::of(path);
    run()
}

/// Whether a file is open in this process, under whatever name.
pub(in crate::engine) fn is_open(path: &Path) -> bool {
    find(path).is_ok_and(|core| core.is_some())
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
    check_file_system(&path, &options)?;
    let core = start(
        Location {
            path,
            log: None,
            _temporary: Some(Arc::new(folder)),
        },
        options,
    )?;
    let file = OpenFile::of(&core)?;
    open_files().push(file);
    Ok(core)
}

fn find(path: &Path) -> Result<Option<Arc<Core>>> {
    let id = file_id(path)?;
    Ok(open_files()
        .iter()
        .filter(|file| file.id == id)
        .filter_map(|file| file.core.upgrade())
        .find(|core| !core.closing.load(Ordering::Acquire) && !core.slot.has_ended()))
}

/// An engine of this process that had this file under another name, or another file at this path, is done with first:
/// the log and its index beside the path may still be those of its connections, and when they close, the locks that
/// the process has on the index are gone.
fn wait_for_lost(path: &Path, timeout: Duration) -> Result<()> {
    let id = file_id(path).ok();
    let concerned: Vec<_> = open_files()
        .iter()
        .filter(|file| Some(&file.id) == id.as_ref() || file.path == path)
        .filter_map(|file| Some((file.id.clone(), file.core.upgrade()?)))
        .collect();
    let deadline = Instant::now() + timeout;
    for (known, core) in concerned {
        if file_id(&core.location.path).ok() != Some(known) {
            core.lose();
        }
        if core.whereabouts.is_moved() && !core.is_let_go_by(deadline) {
            return Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "{}: a file that was moved away while it was open is still in use here, as {}: \
                     end its transactions and drop its streams",
                    path.display(),
                    core.location.path.display(),
                ),
            )
            .with_waited(timeout));
        }
    }
    Ok(())
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

/// The connections of a file, but for that of exclusive transactions.
struct Connections {
    writer: Writer,
    readers: Vec<Reader>,
    checkpoints: PlainConnection,
    /// Of the allocator: sees what is committed.
    head: PlainConnection,
    /// Tells of what is read.
    voice: Voice,
}

/// Opens the connections, and completes what is known of the location.
fn connect(
    location: &mut Location,
    options: &Options,
    vfs: &WriterVfs,
    watch: &Arc<Watch>,
    wal_size: &Arc<WalSize>,
    hold: &Arc<Progress>,
) -> Result<Connections> {
    let authorizer = Arc::new(Authorizer::of_writer());
    let hooks = Hooks {
        watch: Some(Arc::clone(watch)),
        wal_size: Some(Arc::clone(wal_size)),
        progress: Some(Arc::clone(hold)),
        pages: None,
        statements: None,
        authorizer: Some(Arc::clone(&authorizer)),
    };
    // The writer first: it makes the file, and the log's index, which readers only use.
    let writer = open(&location.path, options, Role::Writer, Some(vfs), hooks)
        .and_then(|connection| writer(connection, watch, authorizer, options))
        .map_err(|error| explain(error, &location.path))?;
    let vanished = "the file was moved or replaced while it was opened";
    location.path = location
        .path
        .canonicalize()
        .map_err(|error| Error::new(ErrorKind::CannotOpen, vanished).with_source(error))?;
    location.log = file_id(&beside(&location.path, "-wal")).ok();
    let voice = Voice {
        counters: Arc::new(Counters::of(Namespace(&location.name()))),
        slow: options.slow_statements,
        label: Label::new("a query"),
    };
    let readers = (0..options.readers)
        .map(|_| reader(&location.path, options, voice.clone()))
        .collect::<Result<Vec<_>>>()?;
    let hooks = Hooks::default();
    let checkpoints = open(
        &location.path,
        options,
        Role::Checkpointer,
        Some(vfs),
        hooks,
    )?;
    let head = open(
        &location.path,
        options,
        Role::Reader,
        None,
        Hooks::default(),
    )?;
    if has_moved(writer.connection()) {
        return Err(Error::new(ErrorKind::CannotOpen, vanished));
    }
    Ok(Connections {
        writer,
        readers,
        checkpoints,
        head,
        voice,
    })
}

fn start(mut location: Location, options: Options) -> Result<Arc<Core>> {
    let vfs = WriterVfs::register()?;
    let watch = Arc::new(Watch::default());
    let wal_size = Arc::new(WalSize::new(options.wal_autocheckpoint));
    let hold = Progress::unlimited();
    let Connections {
        writer,
        readers,
        checkpoints,
        head,
        voice,
    } = connect(&mut location, &options, &vfs, &watch, &wal_size, &hold)?;
    let told = &voice.counters.told;
    let pool = Pool::new(readers, options.queue_timeout, told.readers.clone());
    let (draws, allocator) = (Arc::default(), Allocator::new(Arc::clone(&watch), head));
    let allocator = Arc::new(allocator);
    functions::register(writer.connection(), &draws, &allocator, &watch).map_err(from_rusqlite)?;
    let threaded =
        options.execution == Execution::Threaded || options.synchronous == Synchronous::Full;
    let checkpointer = Checkpointer::default();
    wal_size.on_wake(checkpointer.bell());
    let core = Arc::new(Core {
        slot: Arc::new(Slot::new(threaded, options.queue_timeout)),
        writer: Mutex::new(Some(writer)),
        vfs,
        authorizer: Arc::new(Authorizer::default()),
        watch,
        draws,
        hold,
        allocator,
        history: Arc::default(),
        statements: Arc::default(),
        sessions: Sessions::new(&options, told.sessions.clone()),
        heats: Heats::default(),
        wal_size,
        pool: Arc::new(pool),
        gate: InlineGate::default(),
        pace: Pace::new(),
        threads: Threads::default(),
        checkpointer,
        passes: Passes::new(),
        commit_times: CommitTimes::default(),
        reader_gate: ReaderGate::new(),
        capacity: options
            .write_queue_capacity
            .map(|capacity| Arc::new(Semaphore::new(capacity))),
        counters: Arc::clone(&voice.counters),
        options,
        is_undecided: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        whereabouts: Arc::new(Whereabouts::new()),
        location,
    });
    start_threads(&core, checkpoints)?;
    Ok(core)
}

fn start_threads(core: &Arc<Core>, checkpoints: PlainConnection) -> Result<()> {
    let (weak, whereabouts) = (Arc::downgrade(core), Arc::clone(&core.whereabouts));
    core.run_writer_thread()
        .and_then(|()| core.checkpointer.start(weak, whereabouts, checkpoints))
        .map_err(|error| {
            let refused = "the operating system gave no thread";
            Error::new(ErrorKind::OutOfMemory, refused).with_source(error)
        })
}

/// It reads at once, and another process that opened the file just now may still be recovering the log.
fn writer(
    connection: PlainConnection,
    watch: &Arc<Watch>,
    authorizer: Arc<Authorizer>,
    options: &Options,
) -> Result<Writer> {
    connection
        .busy_timeout(options.busy_timeout)
        .map_err(from_rusqlite)?;
    let writer = Writer::new(connection, Arc::clone(watch), authorizer)?;
    give_epoch(writer.connection()).map_err(from_rusqlite)?;
    writer
        .connection()
        .busy_timeout(Duration::ZERO)
        .map_err(from_rusqlite)?;
    Ok(writer)
}

fn reader(path: &Path, options: &Options, voice: Voice) -> Result<Reader> {
    let progress = Arc::new(Progress::default());
    let authorizer = Arc::new(Authorizer::default());
    let hooks = Hooks {
        progress: Some(Arc::clone(&progress)),
        authorizer: Some(Arc::clone(&authorizer)),
        ..Hooks::default()
    };
    let connection = open(path, options, Role::Reader, None, hooks)?;
    functions::register_fold(&connection).map_err(from_rusqlite)?;
    Ok(Reader {
        connection,
        progress,
        authorizer,
        voice,
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
