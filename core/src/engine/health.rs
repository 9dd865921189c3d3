//! How the file and its log are, without changing anything.

use std::{fs, sync::Arc, time::Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    engine::{
        Engine, busy,
        checkpoint::{Mode, run},
        core::Core,
        location::beside,
        passes::Pass,
        slot::{HeldBy, Label},
        sqlite_error::from_rusqlite,
        streaming::lost,
    },
    error::Result,
    observe::{Holder, WalStatus},
};

/// A reader that is open, and since when.
pub(in crate::engine) type OpenReader = (Label, Instant);

impl Engine {
    /// The state of the log.
    pub(crate) async fn wal_status(&self) -> Result<WalStatus> {
        let core = Arc::clone(&self.core);
        let (answer, answered) = oneshot::channel();
        self.core.threads.run(move || {
            drop(answer.send(status(&core)));
        })?;
        answered.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// Reads the state of the log. Blocks while another process recovers it.
fn status(core: &Core) -> Result<WalStatus> {
    let log = busy::retrying(core.options.busy_timeout, || {
        core.allocator.with_head(|head| {
            core.look(head)?;
            look(head)
        })
    })?;
    let now = Instant::now();
    let passed = core.passes.read();
    let oldest = oldest_reader(core);
    Ok(WalStatus {
        frames: log.frames,
        moved: log.moved,
        bytes: log_bytes(core),
        outcome: passed.outcome,
        incomplete_passes: passed.incomplete,
        since_complete: now.saturating_duration_since(passed.complete_at),
        is_held_by_foreign_reader: passed.is_foreign(oldest.map(|(_, since)| since), now),
        oldest_reader: oldest.map(|(label, since)| Holder {
            label: label.to_string(),
            age: now.saturating_duration_since(since),
        }),
    })
}

/// The frames of the log, and how many are moved, without moving any. What is not read yet knows of no log.
pub(in crate::engine) fn look(connection: &Connection) -> Result<Pass> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema)")
        .and_then(|mut look| look.query_row([], |_| Ok(())))
        .map_err(from_rusqlite)?;
    run(connection, Mode::Look)
}

/// A `stat`, which leaves SQLite's locks alone.
pub(in crate::engine) fn log_bytes(core: &Core) -> u64 {
    fs::metadata(beside(&core.location.path, "-wal")).map_or(0, |log| log.len())
}

/// The reader of ours that is open for longest.
pub(in crate::engine) fn oldest_reader(core: &Core) -> Option<OpenReader> {
    let writer = core
        .slot
        .held_by()
        .filter(|held| held.label.is_of_application())
        .and_then(|HeldBy { label, age }| Some((label, Instant::now().checked_sub(age)?)));
    [core.pool.oldest(), core.sessions.pool.oldest(), writer]
        .into_iter()
        .flatten()
        .min_by_key(|(_, since)| *since)
}
