//! Moving the log's frames into the database file, beside the writer.
//!
//! SQLite's own checkpoint would run inside of somebody's commit, so it is off, and a thread does it once
//! `wal_autocheckpoint` frames have gathered. The log starts anew only when every frame was moved at the moment
//! when a write begins; beside constant commits a pass always leaves a tail. So when the log has grown to half as
//! much again, the pass is repeated as a turn of the writer's slot, in RESTART mode: it waits a short moment for
//! readers that still look into the log, while new ones read the database file alone.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    time::Duration,
};

use rusqlite::Connection;

use crate::{
    engine::{
        block_on::block_on, core::Core, ffi::PlainConnection, slot::Label,
        sqlite_error::from_rusqlite, transaction::turn,
    },
    error::{Error, ErrorKind, Result},
};

/// How long a restart waits for readers of the log, with the slot held.
const READERS: Duration = Duration::from_millis(50);

/// The thread that checkpoints, and its bell.
#[derive(Debug, Default)]
pub(in crate::engine) struct Checkpointer {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    ended: bool,
}

/// What a checkpoint did. Whether all frames were moved says more than SQLite's busy flag: a passive checkpoint
/// that a reader stops answers "not busy".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Frames in the log.
    pub frames: u32,
    /// How many of them are in the database file.
    pub moved: u32,
}

impl Checkpoint {
    /// Whether every frame was moved.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.moved == self.frames
    }
}

/// How hard a checkpoint tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Mode {
    Passive,
    Restart,
    Truncate,
}

/// Runs a checkpoint on a connection that has no transaction open. Kind `Busy` while another one is under way.
pub(in crate::engine) fn checkpoint(connection: &Connection, mode: Mode) -> Result<Checkpoint> {
    let sql = match mode {
        Mode::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Mode::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Mode::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let counts: rusqlite::Result<(i64, i64)> =
        connection.query_row(sql, [], |row| Ok((row.get(1)?, row.get(2)?)));
    let (frames, moved) = counts.map_err(|error| from_rusqlite(error).with_statement(sql))?;
    match (u32::try_from(frames), u32::try_from(moved)) {
        (Ok(frames), Ok(moved)) => Ok(Checkpoint { frames, moved }),
        // Minus one: it could not even look.
        _ => {
            Err(Error::new(ErrorKind::Busy, "another checkpoint is under way").with_statement(sql))
        }
    }
}

impl Checkpointer {
    /// Starts the thread. `core` stays weak: the thread ends with the last handle.
    pub(in crate::engine) fn start(
        &self,
        core: Weak<Core>,
        connection: PlainConnection,
    ) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new()
            .name("anabranch-checkpoint".to_owned())
            .spawn(move || {
                while shared.wait() {
                    let Some(core) = core.upgrade() else { return };
                    core.counters.checkpoints.add(1);
                    if let Err(error) = pass(&core, &connection)
                        && error.kind() != ErrorKind::Closed
                    {
                        tracing::warn!(%error, "a checkpoint failed; it is tried again as the log grows");
                        let frames = core.wal_size.frames();
                        core.wal_size
                            .wake_at(frames + core.options.wal_autocheckpoint);
                    }
                }
            })
            .map(drop)
    }

    /// What wakes the thread.
    pub(in crate::engine) fn bell(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.ring(false)
    }

    /// Ends the thread after the pass at hand.
    pub(in crate::engine) fn end(&self) {
        self.shared.ring(true);
    }
}

impl Shared {
    fn ring(&self, end: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wanted = true;
        state.ended |= end;
        self.bell.notify_one();
    }

    /// Waits for the bell; false when the thread is to end.
    fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.wanted {
            state = self
                .bell
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.wanted = false;
        !state.ended
    }
}

fn pass(core: &Arc<Core>, connection: &Connection) -> Result<()> {
    let threshold = core.options.wal_autocheckpoint;
    let passed = match checkpoint(connection, Mode::Passive) {
        // Somebody else does the work.
        Err(error) if error.kind() == ErrorKind::Busy => {
            core.wal_size.wake_at(core.wal_size.frames() + threshold);
            return Ok(());
        }
        passed => passed?,
    };
    let restart_at = threshold + threshold / 2;
    if passed.is_complete() && core.wal_size.frames() <= passed.frames {
        // The next write finds nothing left to move, and starts the log anew.
        core.wal_size
            .wake_at(passed.frames.max(threshold) + threshold / 2);
        return Ok(());
    }
    if core.wal_size.frames() < restart_at {
        core.wal_size.wake_at(restart_at);
        return Ok(());
    }
    core.counters.checkpoints_in_slot.add(1);
    let lease = block_on(turn(core, Label::new("a checkpoint")))?;
    connection.busy_timeout(READERS).map_err(from_rusqlite)?;
    let restarted = checkpoint(connection, Mode::Restart);
    connection
        .busy_timeout(Duration::ZERO)
        .map_err(from_rusqlite)?;
    let frames = core.wal_size.frames();
    core.wal_size.wake_at(match &restarted {
        Ok(restarted) if restarted.is_complete() => threshold,
        // A reader is in the way: not again before the log has grown by as much.
        _ => frames + threshold,
    });
    drop(lease);
    match restarted {
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        other => other.map(drop),
    }
}
