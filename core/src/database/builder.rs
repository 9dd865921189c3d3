//! Choosing how a file is opened.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::{
    context::{Interceptor, Interceptors},
    database::Database,
    engine::{AutoVacuum, Bytes, Engine, Execution, Options, Synchronous, TempStore, WalPolicy},
    error::Result,
};

/// Options for opening a database; see [`Database::builder`].
///
/// ```no_run
/// # async fn open() -> anabranch::error::Result<()> {
/// use anabranch::prelude::*;
/// use std::time::Duration;
///
/// let db = Database::builder("app.db")
///     .synchronous(Synchronous::Full)
///     .busy_timeout(Duration::from_secs(30))
///     .cache_size(Bytes::mib(64))
///     .open()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct DatabaseBuilder {
    path: PathBuf,
    options: Options,
    interceptors: Interceptors,
}

impl DatabaseBuilder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            options: Options::default(),
            interceptors: Interceptors::default(),
        }
    }

    /// Whether a file that does not exist is made. Default: yes. Folders never are.
    pub const fn create(mut self, create: bool) -> Self {
        self.options.create = create;
        self
    }

    /// When commits wait for the disk. Default: [`Synchronous::Normal`].
    pub const fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.options.synchronous = synchronous;
        self
    }

    /// How long to wait for the locks of other processes. Default: 30 seconds. Tasks of this process never wait
    /// for a lock: they wait in the queue.
    pub const fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.options.busy_timeout = timeout;
        self
    }

    /// How long to wait for the writer, or for a read connection, before an error names who has it. Default: 60
    /// seconds.
    pub const fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.options.queue_timeout = timeout;
        self
    }

    /// From how many pages on the log is moved into the database file. Default: 1,000.
    pub const fn wal_autocheckpoint(mut self, pages: u32) -> Self {
        self.options.wal_autocheckpoint = pages;
        self
    }

    /// To which size the log's file is cut when it starts anew. Default: 64 MiB.
    pub const fn journal_size_limit(mut self, limit: Bytes) -> Self {
        self.options.journal_size_limit = limit;
        self
    }

    /// What is done about a log that grows. Default: [`WalPolicy::new`].
    pub const fn wal_policy(mut self, policy: WalPolicy) -> Self {
        self.options.wal_policy = policy;
        self
    }

    /// How many saves may wait for the writer; while the queue is full, further saves wait to enter it. Default:
    /// any number.
    pub const fn write_queue_capacity(mut self, saves: usize) -> Self {
        self.options.write_queue_capacity = Some(saves);
        self
    }

    /// How much memory each connection may keep pages in. Default: 16 MiB.
    pub const fn cache_size(mut self, size: Bytes) -> Self {
        self.options.cache_size = size;
        self
    }

    /// How much of the file is mapped into memory. Default: nothing; a file that another process cuts would end this
    /// one.
    pub const fn mmap_size(mut self, size: Bytes) -> Self {
        self.options.mmap_size = size;
        self
    }

    /// Where SQLite sorts. Default: as it was compiled.
    pub const fn temp_store(mut self, store: TempStore) -> Self {
        self.options.temp_store = store;
        self
    }

    /// The size of a page of a new file, a power of two from 512 to 65,536. Default: SQLite's 4,096.
    pub const fn page_size(mut self, size: u32) -> Self {
        self.options.page_size = Some(size);
        self
    }

    /// Whether a new file can shrink without VACUUM. Default: no.
    pub const fn auto_vacuum(mut self, mode: AutoVacuum) -> Self {
        self.options.auto_vacuum = mode;
        self
    }

    /// How many read connections there are. Default: 8.
    pub const fn readers(mut self, readers: usize) -> Self {
        self.options.readers = readers;
        self
    }

    /// How many sessions can be open at a time; further ones wait. Default: 8. Each has a connection and a thread of its
    /// own, made when they are first needed.
    pub const fn sessions(mut self, sessions: usize) -> Self {
        self.options.sessions.count = sessions;
        self
    }

    /// How long a session may be open. Default: one minute. An open session keeps the log from starting anew.
    pub const fn session_age(mut self, age: Duration) -> Self {
        self.options.sessions.age = age;
        self
    }

    /// How many statements a session may run: they are kept until it commits. Default: 100,000.
    pub const fn session_statements(mut self, statements: usize) -> Self {
        self.options.sessions.statements = statements;
        self
    }

    /// How much memory a session may need for its statements' values and for pages that it changed, beyond
    /// [`cache_size`](DatabaseBuilder::cache_size). Default: 256 MiB. What it changes stays in memory until it commits.
    pub const fn session_memory(mut self, memory: Bytes) -> Self {
        self.options.sessions.memory = memory;
        self
    }

    /// How long the validation of one session may hold the writer when it commits. Default: five seconds.
    pub const fn commit_hold(mut self, limit: Duration) -> Self {
        self.options.sessions.commit_hold = limit;
        self
    }

    /// Where typed statements run. Default: [`Execution::Inline`].
    pub const fn execution(mut self, execution: Execution) -> Self {
        self.options.execution = execution;
        self
    }

    /// How long the tokens of [`Context::save_changes_with`](crate::context::Context::save_changes_with) are kept at
    /// least. Default: 24 hours; from one minute to 3,650 days. Of several processes that write one file, the shortest
    /// counts. The age is told by the clock of the system.
    pub const fn save_token_retention(mut self, retention: Duration) -> Self {
        self.options.save_token_retention = retention;
        self
    }

    /// Whether a file on a network file system is opened all the same. Default: no.
    ///
    /// Write-ahead logging needs memory that all who have the file open share, and machines share none: two of them
    /// that write would damage the file. NFS, SMB, 9p and their like are known on Linux, and so is FUSE, of which
    /// nobody can tell whether it is local. Allow it when no other machine opens the file, and when the file
    /// system keeps its promises about locks and shared mappings. On other systems nothing is refused.
    pub const fn allow_network_file_system(mut self, allow: bool) -> Self {
        self.options.allow_network_file_system = allow;
        self
    }

    /// How long a statement may take before an event tells of it, at level WARN: with what it does, its text without literals,
    /// its time and rows, and who ran it on which thread. Default: one second. `Duration::MAX` tells of none.
    ///
    /// The time that whoever takes the rows of a stream needs does not count. Of the saves that share a commit the commit is told,
    /// if it takes as long.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// let options = Database::builder("").slow_statements(Duration::ZERO);
    /// let db = options.open_temporary().await?;
    /// anabranch::query::raw::<i64>("SELECT 1", ()).all(&db).await?;
    /// assert_eq!(db.statistics().slow_statements, 1);
    /// # Ok(()) }
    /// ```
    pub const fn slow_statements(mut self, limit: Duration) -> Self {
        self.options.slow_statements = limit;
        self
    }

    /// Lets an interceptor take part in the saves of all contexts of this handle and its clones. Another handle to the
    /// same file has its own.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// Kind `Options` for an option out of range, or one that differs from those with which this process has the
    /// file open; otherwise as [`Database::open`].
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the file may have been made.
    pub async fn open(self) -> Result<Database> {
        let engine = Engine::open(self.path, self.options).await?;
        Ok(Database::new(intercepted(engine, self.interceptors)))
    }

    /// Opens a file of its own in a temporary folder; the path is not used.
    ///
    /// # Errors
    ///
    /// As [`DatabaseBuilder::open`].
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, nothing stays.
    pub async fn open_temporary(self) -> Result<Database> {
        let engine = Engine::open_temporary(self.options).await?;
        Ok(Database::new(intercepted(engine, self.interceptors)))
    }
}

fn intercepted(engine: Engine, interceptors: Interceptors) -> Engine {
    if interceptors.is_empty() {
        return engine;
    }
    engine.with_attachment(Arc::new(interceptors))
}
