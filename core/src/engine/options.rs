//! How a database is opened, and how its writer works.

use std::time::Duration;

use crate::{
    engine::wal_policy::WalPolicy,
    error::{Error, ErrorKind, Result},
};

/// When SQLite waits until what it wrote has reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Synchronous {
    /// Never. A crash of the machine may damage the file; a crash of the application does not.
    Off,
    /// At checkpoints. A crash of the machine may lose the last commits, but damages nothing; a crash of the
    /// application loses nothing.
    #[default]
    Normal,
    /// At each commit: what was acknowledged survives a power cut. Saves that wait together share one sync.
    Full,
}

/// Where SQLite keeps temporary tables and sorters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TempStore {
    /// As SQLite was compiled: in files.
    #[default]
    Default,
    /// In files.
    File,
    /// In memory.
    Memory,
}

/// Whether a new database keeps track of free pages so that it can shrink. Has no effect on one that has tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AutoVacuum {
    /// The file does not shrink but by VACUUM.
    #[default]
    None,
    /// It shrinks at each commit.
    Full,
    /// It shrinks on request.
    Incremental,
}

/// Where statements of the typed API run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Execution {
    /// What is short runs on the task that asks, without a switch of threads; what may be long on threads of the
    /// library. Saves with [`Synchronous::Full`] always run on the writer's thread.
    #[default]
    Inline,
    /// Everything runs on threads of the library. Slower, but no SQLite call ever delays another task.
    Threaded,
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// None.
    pub const ZERO: Self = Self(0);

    /// So many times 1,024 bytes.
    #[must_use]
    pub const fn kib(count: u64) -> Self {
        Self(count.saturating_mul(1024))
    }

    /// So many times 1,048,576 bytes.
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count.saturating_mul(1024 * 1024))
    }
}

/// Everything that can be chosen at open. The builder of the database sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) create: bool,
    pub(crate) synchronous: Synchronous,
    pub(crate) busy_timeout: Duration,
    pub(crate) queue_timeout: Duration,
    pub(crate) wal_autocheckpoint: u32,
    pub(crate) journal_size_limit: Bytes,
    pub(crate) wal_policy: WalPolicy,
    pub(crate) write_queue_capacity: Option<usize>,
    pub(crate) cache_size: Bytes,
    pub(crate) mmap_size: Bytes,
    pub(crate) temp_store: TempStore,
    pub(crate) page_size: Option<u32>,
    pub(crate) auto_vacuum: AutoVacuum,
    pub(crate) readers: usize,
    pub(crate) sessions: SessionOptions,
    pub(crate) execution: Execution,
    pub(crate) save_token_retention: Duration,
    pub(crate) allow_network_file_system: bool,
    pub(crate) slow_statements: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            synchronous: Synchronous::default(),
            busy_timeout: Duration::from_secs(30),
            queue_timeout: Duration::from_secs(60),
            wal_autocheckpoint: 1000,
            journal_size_limit: Bytes::mib(64),
            wal_policy: WalPolicy::new(),
            write_queue_capacity: None,
            cache_size: Bytes::mib(16),
            mmap_size: Bytes::ZERO,
            temp_store: TempStore::default(),
            page_size: None,
            auto_vacuum: AutoVacuum::default(),
            readers: 8,
            sessions: SessionOptions::default(),
            execution: Execution::default(),
            save_token_retention: Duration::from_hours(24),
            allow_network_file_system: false,
            slow_statements: Duration::from_secs(1),
        }
    }
}

/// The largest capacity of a queue that has one.
const MOST_QUEUED: usize = 1_000_000_000;
/// How long tokens of saves are kept: longer than any caller tries again, and not for ever.
const LEAST_RETENTION: Duration = Duration::from_mins(1);
const MOST_RETENTION: Duration = Duration::from_hours(24 * 3650);

impl Options {
    /// The names of the options in which these differ.
    pub(in crate::engine) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            create,
            synchronous,
            busy_timeout,
            queue_timeout,
            wal_autocheckpoint,
            journal_size_limit,
            wal_policy,
            write_queue_capacity,
            cache_size,
            mmap_size,
            temp_store,
            page_size,
            auto_vacuum,
            readers,
            sessions,
            execution,
            save_token_retention,
            allow_network_file_system,
            slow_statements,
        } = self;
        [
            ("create", *create != other.create),
            ("synchronous", *synchronous != other.synchronous),
            ("busy_timeout", *busy_timeout != other.busy_timeout),
            ("queue_timeout", *queue_timeout != other.queue_timeout),
            (
                "wal_autocheckpoint",
                *wal_autocheckpoint != other.wal_autocheckpoint,
            ),
            (
                "journal_size_limit",
                *journal_size_limit != other.journal_size_limit,
            ),
            ("wal_policy", *wal_policy != other.wal_policy),
            (
                "write_queue_capacity",
                *write_queue_capacity != other.write_queue_capacity,
            ),
            ("cache_size", *cache_size != other.cache_size),
            ("mmap_size", *mmap_size != other.mmap_size),
            ("temp_store", *temp_store != other.temp_store),
            ("page_size", *page_size != other.page_size),
            ("auto_vacuum", *auto_vacuum != other.auto_vacuum),
            ("readers", *readers != other.readers),
            ("execution", *execution != other.execution),
            (
                "save_token_retention",
                *save_token_retention != other.save_token_retention,
            ),
            (
                "allow_network_file_system",
                *allow_network_file_system != other.allow_network_file_system,
            ),
            ("slow_statements", *slow_statements != other.slow_statements),
        ]
        .into_iter()
        .chain(sessions.differ(&other.sessions))
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }

    /// How many bytes of pages a session's connection may keep.
    pub(in crate::engine) const fn most_session_pages(&self) -> u64 {
        self.cache_size.0.saturating_add(self.sessions.memory.0)
    }

    /// Refuses what SQLite would ignore or misread.
    pub(in crate::engine) fn check(&self) -> Result<()> {
        let rules = self.rules().into_iter().chain(self.sessions.rules());
        for (option, is_right, rule) in rules.chain(self.wal_policy.rules()) {
            if !is_right {
                return Err(Error::new(
                    ErrorKind::Options,
                    format!("the option {option} {rule}"),
                ));
            }
        }
        Ok(())
    }

    /// The options that have a rule, whether they keep it, and what it is.
    fn rules(&self) -> [(&'static str, bool, &'static str); 10] {
        let millis = i32::MAX.unsigned_abs().into();
        [
            (
                "busy_timeout",
                self.busy_timeout.as_millis() <= millis,
                "is at most 24 days",
            ),
            (
                "queue_timeout",
                !self.queue_timeout.is_zero() && self.queue_timeout.as_millis() <= millis,
                "is more than zero and at most 24 days",
            ),
            (
                "wal_autocheckpoint",
                (1..=1_000_000).contains(&self.wal_autocheckpoint),
                "is between 1 and 1,000,000 pages: without checkpoints the log would grow for ever",
            ),
            (
                "journal_size_limit",
                i64::try_from(self.journal_size_limit.0).is_ok(),
                "is at most 2^63 - 1 bytes",
            ),
            (
                "write_queue_capacity",
                self.write_queue_capacity
                    .is_none_or(|saves| (1..=MOST_QUEUED).contains(&saves)),
                "is between 1 and 1,000,000,000: leave it out for a queue without bounds",
            ),
            (
                "cache_size",
                (Bytes::kib(64)..=Bytes::mib(1024 * 1024)).contains(&self.cache_size),
                "is between 64 KiB and 1 TiB",
            ),
            (
                "mmap_size",
                i64::try_from(self.mmap_size.0).is_ok(),
                "is at most 2^63 - 1 bytes",
            ),
            (
                "page_size",
                self.page_size
                    .is_none_or(|size| size.is_power_of_two() && (512..=65536).contains(&size)),
                "is a power of two between 512 and 65,536",
            ),
            (
                "readers",
                (1..=1000).contains(&self.readers),
                "is between 1 and 1,000",
            ),
            (
                "save_token_retention",
                (LEAST_RETENTION..=MOST_RETENTION).contains(&self.save_token_retention),
                "is between one minute and 3,650 days",
            ),
        ]
    }
}

/// How many sessions there can be, and how large each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionOptions {
    pub(crate) count: usize,
    pub(crate) age: Duration,
    pub(crate) statements: usize,
    pub(crate) memory: Bytes,
    pub(crate) commit_hold: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            count: 8,
            age: Duration::from_mins(1),
            statements: 100_000,
            memory: Bytes::mib(256),
            commit_hold: Duration::from_secs(5),
        }
    }
}

impl SessionOptions {
    fn differ(&self, other: &Self) -> [(&'static str, bool); 5] {
        [
            ("sessions", self.count != other.count),
            ("session_age", self.age != other.age),
            ("session_statements", self.statements != other.statements),
            ("session_memory", self.memory != other.memory),
            ("commit_hold", self.commit_hold != other.commit_hold),
        ]
    }

    fn rules(&self) -> [(&'static str, bool, &'static str); 5] {
        let is_time =
            |time: Duration| !time.is_zero() && time.as_millis() <= i32::MAX.unsigned_abs().into();
        let time = "is more than zero and at most 24 days";
        [
            (
                "sessions",
                (1..=1000).contains(&self.count),
                "is between 1 and 1,000",
            ),
            ("session_age", is_time(self.age), time),
            (
                "session_statements",
                (1..=MOST_QUEUED).contains(&self.statements),
                "is between 1 and 1,000,000,000",
            ),
            (
                "session_memory",
                (Bytes::mib(1)..=Bytes::mib(1024 * 1024)).contains(&self.memory),
                "is between 1 MiB and 1 TiB",
            ),
            ("commit_hold", is_time(self.commit_hold), time),
        ]
    }
}
