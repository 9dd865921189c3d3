//! How often a session is tried, and how it is isolated.

use crate::engine::isolation::Isolation;

/// How `db.concurrent_with` runs its closure.
///
/// ```
/// use anabranch::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let options = ConcurrentOptions::new().isolation(Isolation::Snapshot).max_attempts(2);
/// db.concurrent_with(options, async |s| {
///     sqlx::query("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)").execute(&mut *s).await?;
///     Ok(())
/// })
/// .await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct ConcurrentOptions {
    pub(in crate::engine) isolation: Isolation,
    pub(in crate::engine) max_attempts: u32,
    pub(in crate::engine) label: &'static str,
}

impl ConcurrentOptions {
    /// Serializable, five attempts.
    pub const fn new() -> Self {
        Self {
            isolation: Isolation::Serializable,
            max_attempts: 5,
            label: "db.concurrent",
        }
    }

    /// What the session is promised. Default: [`Isolation::Serializable`].
    pub const fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// How often the closure is run as a session before it is run as an exclusive transaction, which cannot conflict.
    /// Default: 5. With 0 it goes to the queue at once.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// By what [`wal_status`](crate::database::Database::wal_status), events and errors name the session, beside its place in the
    /// source. Default: `db.concurrent`.
    pub const fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }
}

impl Default for ConcurrentOptions {
    fn default() -> Self {
        Self::new()
    }
}
