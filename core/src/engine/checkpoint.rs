//! Moving the log's frames into the database file, beside the writer.
//!
//! SQLite's own checkpoint would run inside of somebody's commit, so it is off, and a thread does it once
//! `wal_autocheckpoint` frames have gathered. The log starts anew only when every frame was moved at the moment
//! when a write begins; beside constant commits a pass always leaves a tail. So when the log has grown to half as
//! much again, the pass is repeated as a turn of the writer's slot, in RESTART mode: it waits a short moment for
//! readers that still look into the log, while new ones read the database file alone.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use rusqlite::Connection;
use tracing::Span;

use crate::{
    engine::{
        block_on::block_on,
        busy,
        core::Core,
        ffi::PlainConnection,
        monitor::Monitor,
        passes::Pass,
        reader_gate::ClosedReaderGate,
        slot::{End, Label, Lease},
        sqlite_error::from_rusqlite,
        timer,
        transaction::turn,
        whereabouts::{LOOK_EVERY, Whereabouts},
        writer::{Answer, Unit},
    },
    error::{Error, ErrorKind, Result},
    observe::span,
};

/// How long a restart waits for readers of the log, with the slot held.
pub(in crate::engine) const READERS: Duration = Duration::from_millis(50);
/// How long it waits for open sessions and readers, with new ones kept waiting, once the log is this many times as long
/// as it should be.
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
    /// The database is being closed: nobody is to be waited for.
    hurries: bool,
    /// The thread is gone, and its connection closed.
    closed: bool,
}

/// What a checkpoint did. Whether all frames were moved says more than SQLite's busy flag: a passive checkpoint
/// that a reader stops answers "not busy".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Frames in the log.
    pub frames: u32,
    /// How many of them are in the database file.
    pub moved: u32,
    /// Whether a reader that still looks into the log kept it from being emptied.
    pub is_held_by_reader: bool,
}

impl Checkpoint {
    /// Whether every frame was moved, and the log emptied.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.moved == self.frames && !self.is_held_by_reader
    }
}

impl From<Pass> for Checkpoint {
    fn from(pass: Pass) -> Self {
        Self {
            frames: pass.frames,
            moved: pass.moved,
            is_held_by_reader: pass.is_busy,
        }
    }
}

/// How hard a checkpoint tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Mode {
    /// Not at all: it counts.
    Look,
    Passive,
    Restart,
    Truncate,
}

/// Runs a checkpoint on a connection that has no transaction open. Kind `Busy` while another one is under way.
pub(in crate::engine) fn run(connection: &Connection, mode: Mode) -> Result<Pass> {
    let sql = match mode {
        Mode::Look => "PRAGMA wal_checkpoint(NOOP)",
        Mode::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Mode::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Mode::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let began = Instant::now();
    let span = (mode != Mode::Look).then(|| span::checkpoint(connection.path(), mode));
    let _entered = span.as_ref().map(Span::enter);
    let count = |row: &rusqlite::Row<'_>, index| -> rusqlite::Result<Option<u32>> {
        let count: i64 = row.get(index)?;
        Ok(u32::try_from(count).ok())
    };
    let (is_busy, frames, moved) = connection
        .query_row(sql, [], |row| {
            Ok((row.get(0)?, count(row, 1)?, count(row, 2)?))
        })
        .map_err(|error| from_rusqlite(error).with_statement(sql))?;
    // Both are -1 when another connection is at it: no error to SQLite, but nothing was done here.
    match (frames, moved) {
        (Some(frames), Some(moved)) => Ok(Pass {
            frames,
            moved,
            is_busy,
            took: began.elapsed(),
        }),
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
                let mut monitor = None;
                while let Some(is_rung) = shared.wait() {
                    let has_moved = whereabouts.look(&connection);
                    let Some(core) = core.upgrade() else { break };
                    if has_moved {
                        drop(connection);
                        core.lose();
                        let_go(&core);
                        drop(closes);
                        return;
                    }
                    let work = AssertUnwindSafe(|| work(&core, &connection, &mut monitor, is_rung));
                    // A subscriber of the application's runs here as well.
                    let worked = catch_unwind(work).unwrap_or_else(|_| {
                        Err(Error::new(
                            ErrorKind::Application,
                            "the checkpointer panicked, in a subscriber to its events it seems",
                        ))
                    });
                    if let Err(error) = worked {
                        failed(&core, &error);
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

    /// Has the thread wait for no reader any more, since the database is being closed.
    pub(in crate::engine) fn hurry(&self) -> Hurry<'_> {
        self.shared.lock().hurries = true;
        self.shared.bell.notify_all();
        Hurry(Some(&self.shared))
    }

    /// Waits for a moment; whether the database is still open then. For the thread itself.
    pub(in crate::engine) fn goes_on_for(&self, moment: Duration) -> bool {
        let shared = &self.shared;
        let (state, _) = shared
            .bell
            .wait_timeout_while(shared.lock(), moment, |state| {
                !state.hurries && !state.ended
            })
            .unwrap_or_else(PoisonError::into_inner);
        !state.hurries && !state.ended
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

/// Takes the hurry back when it is dropped: the database stays open after all.
#[derive(Debug)]
pub(in crate::engine) struct Hurry<'a>(Option<&'a Shared>);

impl Hurry<'_> {
    /// It is closed, and nothing is taken back.
    pub(in crate::engine) fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.lock().hurries = false;
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

/// A pass if it was asked for, and a look at the log's health.
fn work(
    core: &Arc<Core>,
    connection: &Connection,
    monitor: &mut Option<Monitor>,
    is_rung: bool,
) -> Result<()> {
    let monitor = match monitor {
        Some(monitor) => monitor,
        None => monitor.insert(Monitor::new(connection)?),
    };
    if is_rung {
        core.counters.checkpoints.add(1);
        pass(core, connection, monitor)?;
        if !monitor.is_due() {
            return Ok(());
        }
    }
    match monitor.tick(core, connection) {
        // Another process recovers the log, or moves it.
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        other => other,
    }
}

fn failed(core: &Core, error: &Error) {
    let frames = core.wal_size.frames();
    core.wal_size
        .wake_at(frames.saturating_add(core.options.wal_autocheckpoint));
    // The database is closed, its file gone, or an exclusive transaction has the slot for long: not the log's fault.
    if !matches!(
        error.kind(),
        ErrorKind::Closed | ErrorKind::FileMoved | ErrorKind::QueueTimeout
    ) {
        tracing::warn!(error = %error.in_log(), "a checkpoint failed; it is tried again as the log grows");
        core.passes.note(Err(error), Instant::now());
    }
}

/// Waits for the slot, and goes on ending what is too old meanwhile.
pub(in crate::engine) fn wait_for_turn(
    core: &Arc<Core>,
    connection: &Connection,
) -> Result<Lease<Unit, Answer>> {
    let mut turn = pin!(turn(core, Label::new("a checkpoint")));
    loop {
        let moment = pin!(timer::sleep_until(Instant::now() + LOOK_EVERY));
        match block_on(select(turn.as_mut(), moment)) {
            Either::Left((lease, _)) => {
                core.look(connection)?;
                return lease;
            }
            Either::Right(_) => {
                core.look(connection)?;
                core.end_old();
            }
        }
    }
}

fn pass(core: &Arc<Core>, connection: &Connection, monitor: &mut Monitor) -> Result<()> {
    let threshold = core.options.wal_autocheckpoint;
    let moved = run(connection, Mode::Passive);
    let restart_at = threshold + threshold / 2;
    if core.wal_size.frames() < restart_at {
        core.note_pass(moved.as_ref().copied());
        // If every frame was moved and no reader is in the way, the next write starts the log anew.
        core.wal_size.wake_at(restart_at);
    }
    // Another process that is at it moves our frames as well.
    match moved {
        Err(error) if error.kind() != ErrorKind::Busy => return Err(error),
        _ if core.wal_size.frames() < restart_at => return Ok(()),
        _ => {}
    }
    core.counters.checkpoints_in_slot.add(1);
    let lease;
    let restarted = {
        let _gate = wait_for_readers(core, monitor.back_pressure.held_from(core));
        lease = wait_for_turn(core, connection)?;
        restart(connection)
    };
    lease.relabel(Label::LOG);
    let restarted = monitor.back_pressure.hold_back(core, connection, restarted);
    core.note_pass(restarted.as_ref().copied());
    core.wal_size.wake_at(match &restarted {
        Ok(restarted) if restarted.is_done() => threshold,
        // A reader is in the way: not again before the log has grown by as much.
        _ => monitor.back_pressure.next_try(core),
    });
    drop(lease);
    match restarted {
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        other => other.map(drop),
    }
}

/// Keeps new readers and sessions waiting: where they follow one another, one would always be in the way. Nobody is
/// kept waiting for a reader that will not end in time.
pub(in crate::engine) fn close_gate(
    core: &Core,
    patience: Duration,
) -> Option<ClosedReaderGate<'_>> {
    let until = Instant::now() + patience + READERS;
    let ends_in_time = core.pool.oldest().is_none_or(|(_, since)| {
        core.options
            .wal_policy
            .ends_within(since.elapsed(), patience)
    });
    ends_in_time.then(|| core.reader_gate.close(until))
}

/// With the gate closed, those that are open may end first, unless the log grows to this size meanwhile.
fn wait_for_readers(core: &Core, most_frames: u32) -> Option<ClosedReaderGate<'_>> {
    let threshold = core.options.wal_autocheckpoint;
    let patience = if core.wal_size.frames() > threshold.saturating_mul(MOST_LOGS) {
        SESSIONS
    } else {
        READERS
    };
    let began = Instant::now();
    let gate = close_gate(core, patience);
    let deadline = match &gate {
        Some(_) => began + patience,
        None => began + READERS,
    };
    while core.wal_size.frames() < most_frames
        && Instant::now() < deadline
        && core.checkpointer.goes_on_for(Duration::ZERO)
    {
        let moment = deadline.min(Instant::now() + READERS / 2);
        if core.history.is_idle_by(moment) && core.pool.is_back_by(began, moment) {
            break;
        }
        core.end_old();
    }
    gate
}

/// Moves all frames, so that the next write starts the log anew; waits a short moment for readers of the log. With the
/// slot held.
pub(in crate::engine) fn restart(connection: &Connection) -> Result<Pass> {
    within(connection, READERS, Mode::Restart)
}

/// A checkpoint that waits so long for readers.
pub(in crate::engine) fn within(
    connection: &Connection,
    patience: Duration,
    mode: Mode,
) -> Result<Pass> {
    connection.busy_timeout(patience).map_err(from_rusqlite)?;
    let ended = run(connection, mode);
    connection
        .busy_timeout(Duration::ZERO)
        .map_err(from_rusqlite)?;
    ended
}

/// Moves the whole log. The checkpointer's thread, or another process, may be at it: it is waited for.
pub(in crate::engine) fn truncate_log(connection: &Connection, core: &Core) -> Result<Checkpoint> {
    core.look(connection)?;
    let cut = busy::retrying(core.options.busy_timeout, || {
        run(connection, Mode::Truncate)
    })?;
    core.note_cut(cut);
    Ok(cut.into())
}
