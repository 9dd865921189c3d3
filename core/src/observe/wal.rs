//! What can be said of the write-ahead log.

use std::time::Duration;

use serde::Serialize;

use crate::observe::{Holder, seconds};

/// The state of the write-ahead log; [`Database::wal_status`](crate::database::Database::wal_status) reads it.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let status = db.wal_status().await?;
/// assert!(status.moved <= status.frames);
/// assert_eq!(status.unmoved(), status.frames - status.moved);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WalStatus {
    /// Frames in the log: pages that commits left there.
    pub frames: u32,
    /// How many of them are in the database file.
    pub moved: u32,
    /// How many bytes of the log's file they take.
    pub used: u64,
    /// The size of the log's file, which does not shrink when the log starts anew.
    pub bytes: u64,
    /// How the last pass of the checkpointer ended.
    pub outcome: WalOutcome,
    /// How many passes in a row left something undone for a reader.
    pub incomplete_passes: u32,
    /// Since the last pass that was complete, or since the file was opened; `seconds_since_complete` where it is serialized.
    #[serde(rename = "seconds_since_complete", serialize_with = "seconds")]
    pub since_complete: Duration,
    /// The reader of this process that is open for longest: a snapshot, a stream, a query, a session, or an exclusive
    /// transaction.
    pub oldest_reader: Option<Holder>,
    /// Whether the log is held by somebody outside of this database: by another process, or by a connection of the
    /// application's own. Known a second or two after the first pass that was stopped.
    pub is_held_by_foreign_reader: bool,
}

impl WalStatus {
    /// How many frames are not in the database file yet.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// db.checkpoint().await?;
    /// assert_eq!(db.wal_status().await?.unmoved(), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn unmoved(&self) -> u32 {
        self.frames.saturating_sub(self.moved)
    }

    /// Whether a reader keeps the log from being moved, or from starting anew. SQLite's busy flag does not say so: a
    /// passive checkpoint that a reader stops answers "not busy".
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// assert!(!db.wal_status().await?.is_blocked()); // nobody reads
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        matches!(
            self.outcome,
            WalOutcome::PartlyMoved | WalOutcome::MovedNotReset
        )
    }
}

/// How a pass of the checkpointer ended.
///
/// ```
/// # use anabranch::{observe::WalOutcome, prelude::*};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// assert_eq!(db.wal_status().await?.outcome, WalOutcome::NotYet); // the log is still short
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum WalOutcome {
    /// There was none yet: the log has not grown to `wal_autocheckpoint` pages.
    NotYet,
    /// Every frame was moved.
    Complete,
    /// Frames are left: a reader looks at an older state of the database.
    PartlyMoved,
    /// Every frame was moved, but a reader still looks into the log, which so cannot start anew and grows on.
    MovedNotReset,
    /// Somebody else was moving the log.
    OtherCheckpointer,
}
