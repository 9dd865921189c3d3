//! What the checkpointer's thread does every second about the log, beside moving it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::{
    engine::{
        block_on::block_on,
        checkpoint::{Mode, READERS, close_gate, restart, run, within},
        core::Core,
        health::{frame_size, log_bytes, look, oldest_reader},
        passes::Pass,
        slot::Label,
        transaction::turn,
        whereabouts::LOOK_EVERY,
    },
    error::{ErrorKind, Result},
};

/// How long writers are held back once the log has reached half of its limit, and into how many steps the other half is
/// divided: with each they are held back for twice as long.
const PAUSE: Duration = Duration::from_millis(50);
const STEPS: u32 = 8;
/// For how long new readers and sessions are kept waiting meanwhile, at most.
const GATE: Duration = Duration::from_millis(2500);

/// What it remembers between two looks.
#[derive(Debug)]
pub(in crate::engine) struct Monitor {
    frame: u64,
    /// It has warned of the size.
    has_warned: bool,
    /// It has told that writers are held back.
    has_held_back: bool,
    /// The frames of the last look, and since when there are so many.
    still: (u32, Instant),
    /// When it looked last.
    looked: Instant,
}

impl Monitor {
    pub(in crate::engine) fn new(connection: &Connection) -> Result<Self> {
        Ok(Self {
            frame: frame_size(connection)?,
            has_warned: false,
            has_held_back: false,
            still: (0, Instant::now()),
            looked: Instant::now(),
        })
    }

    /// Whether it is time to look, also where one pass follows the other.
    pub(in crate::engine) fn is_due(&self) -> bool {
        self.looked.elapsed() >= LOOK_EVERY
    }

    /// Looks at the log and its readers.
    pub(in crate::engine) fn tick(
        &mut self,
        core: &Arc<Core>,
        connection: &Connection,
    ) -> Result<()> {
        let log = look(connection)?;
        let now = Instant::now();
        self.looked = now;
        if log.frames != self.still.0 {
            self.still = (log.frames, now);
        }
        self.warn(core, log);
        core.pool.end_old(&core.options.wal_policy, &core.counters);
        // What stopped the last pass may be gone, though nobody writes.
        let passed = core.passes.read();
        if passed.error.is_some() || (log.moved < log.frames && passed.is_blocked()) {
            core.note_pass(run(connection, Mode::Passive).as_ref().copied());
        }
        self.truncate_if_idle(core, connection, now)
    }

    fn warn(&mut self, core: &Core, log: Pass) {
        let bytes = self.bytes(log.frames);
        let limit = core.options.wal_policy.warn_at.0;
        if bytes < limit / 2 {
            self.has_warned = false;
        }
        // What is moved, of a log that is nobody's: the next commit begins it anew.
        let is_held = core.passes.read().is_blocked();
        let is_well = !is_held && self.bytes(log.frames.saturating_sub(log.moved)) < limit;
        if bytes < limit || is_well || std::mem::replace(&mut self.has_warned, true) {
            return;
        }
        let (reader, age) = named(core);
        tracing::warn!(
            path = %core.location.path.display(),
            frames = log.frames,
            moved = log.moved,
            bytes,
            reader,
            ?age,
            "the log has grown large"
        );
    }

    fn truncate_if_idle(
        &mut self,
        core: &Arc<Core>,
        connection: &Connection,
        now: Instant,
    ) -> Result<()> {
        let policy = &core.options.wal_policy;
        let is_idle = now.saturating_duration_since(self.still.1) >= policy.idle;
        if !is_idle || log_bytes(core) <= policy.truncate_above.0 || core.slot.held_by().is_some() {
            return Ok(());
        }
        // If a reader is in the way, not again before as long.
        self.still.1 = now;
        let lease = block_on(turn(core, Label::new("a checkpoint")))?;
        core.look(connection)?;
        let cut = within(connection, READERS, Mode::Truncate);
        core.note_pass(cut.as_ref().copied());
        if cut.is_ok_and(|cut| cut.is_complete() && !cut.is_busy) {
            core.counters.truncations.add(1);
            core.wal_size.committed(0);
        }
        drop(lease);
        Ok(())
    }

    /// With how many frames nothing is written while a reader is in the way.
    fn limit(&self, core: &Core) -> u32 {
        let frames = core.options.wal_policy.limit.0 / self.frame;
        let least = core.options.wal_autocheckpoint.saturating_mul(4);
        u32::try_from(frames).unwrap_or(u32::MAX).max(least)
    }

    /// From how many frames on writers are held back.
    pub(in crate::engine) fn held_from(&self, core: &Core) -> u32 {
        self.limit(core) / 2
    }

    /// At how many frames the log is to be moved again after a reader was in the way.
    pub(in crate::engine) fn next_try(&self, core: &Core) -> u32 {
        let frames = core.wal_size.frames();
        let held_from = self.held_from(core);
        if frames < held_from {
            held_from.min(frames.saturating_add(core.options.wal_autocheckpoint))
        } else {
            frames
                .saturating_add(held_from / STEPS)
                .min(self.limit(core))
                .max(frames + 1)
        }
    }

    /// Holds writers back, with the slot held, while the log is over half of its limit and a reader in the way: until
    /// it is gone, or they have waited long enough for what the log has grown by. Returns what the last try to move the
    /// log came to.
    pub(in crate::engine) fn hold_back(
        &mut self,
        core: &Arc<Core>,
        connection: &Connection,
        mut tried: Result<Pass>,
    ) -> Result<Pass> {
        let held_from = self.held_from(core);
        let frames = core.wal_size.frames();
        if frames < held_from || !is_stopped(&tried) {
            self.has_held_back &= frames >= held_from;
            return tried;
        }
        core.counters.held_back.add(1);
        self.tell_of_holding_back(core, frames);
        let pause = pause(frames, held_from);
        let until = pause.map(|pause| Instant::now() + pause);
        // Whoever came in now would have to be waited for as well.
        let _gate = close_gate(core, pause.unwrap_or(GATE).min(GATE));
        while is_stopped(&tried)
            && until.is_none_or(|until| Instant::now() < until)
            && core.checkpointer.goes_on_for(READERS / 2)
            && Arc::strong_count(core) > 1
        {
            core.look(connection)?;
            core.pool.end_old(&core.options.wal_policy, &core.counters);
            tried = restart(connection);
        }
        tried
    }

    fn tell_of_holding_back(&mut self, core: &Core, frames: u32) {
        if std::mem::replace(&mut self.has_held_back, true) {
            return;
        }
        let (reader, age) = named(core);
        tracing::error!(
            path = %core.location.path.display(),
            frames,
            bytes = self.bytes(frames),
            reader,
            ?age,
            "the log is near its limit and a reader in the way: writers are held back"
        );
    }

    fn bytes(&self, frames: u32) -> u64 {
        u64::from(frames) * self.frame
    }
}

/// Whether a reader, or another process that moves the log, is in the way.
fn is_stopped(tried: &Result<Pass>) -> bool {
    match tried {
        Ok(pass) => pass.is_busy || !pass.is_complete(),
        Err(error) => error.kind() == ErrorKind::Busy,
    }
}

/// How long writers are held back at this size, which is the first from which they are or more; without end at twice
/// that, the limit.
fn pause(frames: u32, held_from: u32) -> Option<Duration> {
    let steps = u64::from(frames - held_from) * u64::from(STEPS) / u64::from(held_from.max(1));
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    (steps < STEPS).then(|| PAUSE * 2_u32.pow(steps))
}

/// The reader in the way, as events tell it.
fn named(core: &Core) -> (String, Option<Duration>) {
    let now = Instant::now();
    let oldest = oldest_reader(core);
    let since = oldest.map(|(_, since)| since);
    if core.passes.read().is_foreign(since, now) {
        return ("of another process".to_owned(), None);
    }
    oldest.map_or_else(
        || ("none".to_owned(), None),
        |(label, since)| {
            (
                label.to_string(),
                Some(now.saturating_duration_since(since)),
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::engine::monitor::{PAUSE, pause};

    #[test]
    fn pauses_grow_with_the_log_until_they_have_no_end() {
        assert_eq!(pause(800, 800), Some(PAUSE));
        assert_eq!(pause(900, 800), Some(2 * PAUSE));
        assert_eq!(pause(1599, 800), Some(Duration::from_millis(6400)));
        assert_eq!(pause(1600, 800), None);
        assert_eq!(pause(u32::MAX, 1), None);
    }
}
