//! What is done about a log that grows.

use std::time::Duration;

use crate::engine::options::Bytes;

/// What is done about a write-ahead log that grows, and about the readers that keep it from starting anew.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// use anabranch::{engine::{OldReaders, WalPolicy}, prelude::*};
/// use std::time::Duration;
///
/// let policy = WalPolicy::new()
///     .warn_at(Bytes::mib(64))
///     .limit(Bytes::mib(512))
///     .reader_age(Duration::from_secs(30))
///     .old_readers(OldReaders::Interrupt)
///     .truncate_when_idle(Bytes::mib(4), Duration::from_secs(5));
/// let db = Database::builder("").wal_policy(policy).open_temporary().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct WalPolicy {
    pub(in crate::engine) warn_at: Bytes,
    pub(in crate::engine) limit: Bytes,
    pub(in crate::engine) reader_age: Duration,
    pub(in crate::engine) old_readers: OldReaders,
    pub(in crate::engine) truncate_above: Bytes,
    pub(in crate::engine) idle: Duration,
}

/// What becomes of a reader that is older than [`WalPolicy::reader_age`].
///
/// ```
/// use anabranch::engine::OldReaders;
///
/// assert_eq!(OldReaders::default(), OldReaders::Warn);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OldReaders {
    /// An event names it.
    #[default]
    Warn,
    /// Snapshots, streams and queries are ended as well: their next statement, or the one that runs, is told with kind
    /// [`ReaderTooOld`](crate::error::ErrorKind::ReaderTooOld). Sessions have a limit of their own
    /// ([`session_age`](crate::database::DatabaseBuilder::session_age)), and exclusive transactions are never ended.
    Interrupt,
}

impl WalPolicy {
    /// The defaults, which each method tells.
    ///
    /// ```
    /// use anabranch::engine::WalPolicy;
    ///
    /// assert_eq!(WalPolicy::new(), WalPolicy::default());
    /// ```
    pub const fn new() -> Self {
        Self {
            warn_at: Bytes::mib(256),
            limit: Bytes::mib(4096),
            reader_age: Duration::from_mins(5),
            old_readers: OldReaders::Warn,
            truncate_above: Bytes::mib(16),
            idle: Duration::from_secs(10),
        }
    }

    /// From which size of the log on an event warns, once until it is half as large again; more than
    /// zero. Default: 256 MiB.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::engine::WalPolicy;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// let db = Database::builder("").wal_policy(WalPolicy::new().warn_at(Bytes::mib(64))).open_temporary().await?;
    /// # Ok(()) }
    /// ```
    pub const fn warn_at(mut self, size: Bytes) -> Self {
        self.warn_at = size;
        self
    }

    /// The size of the log with which nothing is written while a reader keeps it from starting anew: writes wait until
    /// it ends, and fail with `QueueTimeout` in the end. From half of this size on they are held back for moments, and
    /// new readers with them. Default: 4 GiB; at least four times `wal_autocheckpoint` pages.
    ///
    /// What one transaction writes is not cut: the log may be larger by that.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::engine::WalPolicy;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// let db = Database::builder("").wal_policy(WalPolicy::new().limit(Bytes::mib(512))).open_temporary().await?;
    /// # Ok(()) }
    /// ```
    pub const fn limit(mut self, size: Bytes) -> Self {
        self.limit = size;
        self
    }

    /// How old a reader may become. Default: five minutes.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::engine::WalPolicy;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// let db = Database::builder("").wal_policy(WalPolicy::new().reader_age(Duration::from_secs(30))).open_temporary().await?;
    /// # Ok(()) }
    /// ```
    pub const fn reader_age(mut self, age: Duration) -> Self {
        self.reader_age = age;
        self
    }

    /// What becomes of older ones. Default: [`OldReaders::Warn`].
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::engine::{OldReaders, WalPolicy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// let db = Database::builder("").wal_policy(WalPolicy::new().old_readers(OldReaders::Interrupt)).open_temporary().await?;
    /// # Ok(()) }
    /// ```
    pub const fn old_readers(mut self, then: OldReaders) -> Self {
        self.old_readers = then;
        self
    }

    /// From which size on the log's file is cut once nobody wrote for a while. Default: 16 MiB, after ten seconds. It
    /// holds the writer for no longer than 50 milliseconds, and gives up if a reader is in the way.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::engine::WalPolicy;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// let db = Database::builder("").wal_policy(WalPolicy::new().truncate_when_idle(Bytes::mib(4), Duration::from_secs(5))).open_temporary().await?;
    /// # Ok(()) }
    /// ```
    pub const fn truncate_when_idle(mut self, above: Bytes, idle: Duration) -> Self {
        self.truncate_above = above;
        self.idle = idle;
        self
    }

    /// Whether a reader of this age is likely to end within this time. What has been open for longer than one is ready to
    /// wait for will not, unless it is ended.
    pub(in crate::engine) fn ends_within(&self, age: Duration, patience: Duration) -> bool {
        match self.old_readers {
            OldReaders::Warn => age <= patience,
            OldReaders::Interrupt => {
                age <= patience || self.reader_age.saturating_sub(age) <= patience
            }
        }
    }

    pub(in crate::engine) fn rules(&self) -> [(&'static str, bool, &'static str); 4] {
        [
            (
                "wal_policy.warn_at",
                self.warn_at > Bytes::ZERO,
                "is more than zero",
            ),
            (
                "wal_policy.limit",
                self.limit >= Bytes::kib(64),
                "is at least 64 KiB",
            ),
            (
                "wal_policy.reader_age",
                !self.reader_age.is_zero(),
                "is more than zero",
            ),
            (
                "wal_policy.truncate_when_idle",
                !self.idle.is_zero(),
                "waits for more than zero",
            ),
        ]
    }
}

impl Default for WalPolicy {
    fn default() -> Self {
        Self::new()
    }
}
