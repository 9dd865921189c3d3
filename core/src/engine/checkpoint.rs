//! Moving the log's frames into the database file, beside the writer.
//!
//! SQLite's own checkpoint would run inside of somebody's commit, so it is off, and a thread does it once
//! `wal_autocheckpoint` frames have gathered. The log starts anew only when every frame was moved at the moment
//! when a write begins; beside constant commits a pass always leaves a tail. So when the log has grown to half as
//! much again, the pass is repeated as a turn of the writer's slot, in RESTART mode: it waits a short moment for
//! readers that still look into the log, while new ones read the database file alone.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::{
    engine::{
        block_on::block_on,
        busy,
        core::Core,
        ffi::PlainConnection,
        slot::{End, Label},
        sqlite_error::from_rusqlite,
        transaction::turn,
        whereabouts::{LOOK_EVERY, Whereabouts},
    },
    error::{Error, ErrorKind, Result},
};

/// How long a restart waits for readers of the log, with the slot held.
const READERS: Duration = Duration::from_millis(50);
/// How long it waits for open sessions, with new ones kept waiting, once the log is this many times as long as it should
/// be.
const SESSIONS: Duration = Duration::from_secs(1);
const MOST_LOGS: u32 = 4;

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
    /// The thread is gone, and its connection closed.
    closed: bool,
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
    let count = |row: &rusqlite::Row<'_>, index| -> rusqlite::Result<Option<u32>> {
        let count: i64 = row.get(index)?;
        Ok(u32::try_from(count).ok())
    };
    let (frames, moved) = connection
        .query_row(sql, [], |row| Ok((count(row, 1)?, count(row, 2)?)))
        .map_err(|error| from_rusqlite(error).with_statement(sql))?;
    // Both are -1 when another connection is at it: no error to SQLite, but nothing was done here.
    match (frames, moved) {
        (Some(frames), Some(moved)) => Ok(Checkpoint { frames, moved }),
        _ => Err(Error::new(
            ErrorKind::Busy,
            "another connection is moving the log into the database file",
        )),
    }
}

impl Checkpointer {
    /// Starts the thread. `core` stays weak: the thread ends with the last handle.
    pub(in crate::engine) fn start(
        &self,
        core: Weak<Core>,
        whereabouts: Arc<Whereabouts>,
        connection: PlainConnection,
    ) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new()
            .name("anabranch-checkpoint".to_owned())
            .spawn(move || {
                let closes = Closes(Arc::clone(&shared));
                while let Some(is_rung) = shared.wait() {
                    let has_moved = whereabouts.look(&connection);
                    if !is_rung && !has_moved {
                        continue;
                    }
                    let Some(core) = core.upgrade() else { break };
                    if has_moved {
                        drop(connection);
                        core.lose();
                        let_go(&core);
                        drop(closes);
                        return;
                    }
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
                drop(connection);
                drop(closes);
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

    /// Whether the thread has closed its connection; waits for it until the deadline.
    pub(in crate::engine) fn is_closed_by(&self, deadline: Instant) -> bool {
        let rest = deadline.saturating_duration_since(Instant::now());
        let shared = &self.shared;
        let (state, _) = shared
            .bell
            .wait_timeout_while(shared.lock(), rest, |state| !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.closed
    }

    /// Waits until the thread has closed its connection. To be called after [`Checkpointer::end`] and the slot's end,
    /// from another thread.
    pub(in crate::engine) fn wait_until_closed(&self) {
        let mut state = self.shared.lock();
        while !state.closed {
            state = self
                .shared
                .bell
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Tells when it is dropped that the thread is gone, however it went.
struct Closes(Arc<Shared>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.bell.notify_all();
    }
}

impl Shared {
    fn ring(&self, end: bool) {
        let mut state = self.lock();
        state.wanted = true;
        state.ended |= end;
        self.bell.notify_all();
    }

    /// Waits for the bell, or until it is time to look at the file: whether the bell rang, and nothing when the
    /// thread is to end.
    fn wait(&self) -> Option<bool> {
        let (mut state, _) = self
            .bell
            .wait_timeout_while(self.lock(), LOOK_EVERY, |state| !state.wanted)
            .unwrap_or_else(PoisonError::into_inner);
        let is_rung = std::mem::take(&mut state.wanted);
        (!state.ended).then_some(is_rung)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file has moved: ends the writer once nobody holds it, and writes nothing more. Transactions that are open see
/// to it that they end; read connections close as they come back.
fn let_go(core: &Arc<Core>) {
    let lease = loop {
        match block_on(turn(core, Label::new("the end of a file that was moved"))) {
            Ok(lease) => break lease,
            Err(error) if error.kind() == ErrorKind::QueueTimeout => {}
            // It was closed meanwhile, or the library failed.
            Err(_) => return,
        }
    };
    core.slot.end(End::Closed);
    if let Some(writer) = core.take_writer() {
        writer.close();
    }
    drop(lease);
}

fn pass(core: &Arc<Core>, connection: &Connection) -> Result<()> {
    let threshold = core.options.wal_autocheckpoint;
    // Another process that is at it moves our frames as well.
    match checkpoint(connection, Mode::Passive) {
        Err(error) if error.kind() != ErrorKind::Busy => return Err(error),
        _ => {}
    }
    let restart_at = threshold + threshold / 2;
    if core.wal_size.frames() < restart_at {
        // If every frame was moved and no reader is in the way, the next write starts the log anew.
        core.wal_size.wake_at(restart_at);
        return Ok(());
    }
    core.counters.checkpoints_in_slot.add(1);
    // Sessions that follow one another would always leave one in the way. Those that are open may end first.
    let gate = core.sessions.close_gate();
    let patience = if core.wal_size.frames() > threshold.saturating_mul(MOST_LOGS) {
        SESSIONS
    } else {
        READERS
    };
    core.history.wait_until_idle(patience);
    let lease = block_on(turn(core, Label::new("a checkpoint")))?;
    core.look(connection)?;
    let restarted = restart(connection);
    let frames = core.wal_size.frames();
    core.wal_size.wake_at(match &restarted {
        Ok(restarted) if restarted.is_complete() => threshold,
        // A reader is in the way: not again before the log has grown by as much.
        _ => frames + threshold,
    });
    drop(lease);
    drop(gate);
    match restarted {
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        other => other.map(drop),
    }
}

/// Moves all frames, so that the next write starts the log anew; waits a short moment for readers of the log. With the
/// slot held.
pub(in crate::engine) fn restart(connection: &Connection) -> Result<Checkpoint> {
    connection.busy_timeout(READERS).map_err(from_rusqlite)?;
    let restarted = checkpoint(connection, Mode::Restart);
    connection
        .busy_timeout(Duration::ZERO)
        .map_err(from_rusqlite)?;
    restarted
}

/// Moves the whole log. The checkpointer's thread, or another process, may be at it: it is waited for.
pub(in crate::engine) fn truncate_log(connection: &Connection, core: &Core) -> Result<Checkpoint> {
    core.look(connection)?;
    busy::retrying(core.options.busy_timeout, || {
        checkpoint(connection, Mode::Truncate)
    })
}
