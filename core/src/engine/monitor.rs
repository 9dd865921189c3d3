//! What the checkpointer's thread does every second, beside moving the log.

use std::{sync::Arc, time::Instant};

use rusqlite::Connection;

use crate::{
    engine::{
        back_pressure::{BackPressure, named},
        checkpoint::{Mode, READERS, run, wait_for_turn, within},
        consumers::Consumers,
        core::Core,
        health::{log_bytes, look, sample},
        passes::Pass,
        whereabouts::LOOK_EVERY,
    },
    error::Result,
};

/// What it remembers between two looks.
#[derive(Debug)]
pub(in crate::engine) struct Monitor {
    pub(in crate::engine) back_pressure: BackPressure,
    consumers: Consumers,
    /// It has warned of the size.
    has_warned: bool,
    /// The frames of the last look, and since when there are so many.
    still: (u32, Instant),
    /// When it looked last.
    looked: Instant,
}

impl Monitor {
    pub(in crate::engine) fn new(connection: &Connection) -> Result<Self> {
        Ok(Self {
            back_pressure: BackPressure::new(connection)?,
            consumers: Consumers::default(),
            has_warned: false,
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
        sample(core, log);
        self.consumers.look(core, connection);
        core.end_old();
        // What stopped the last pass may be gone, though nobody writes.
        let passed = core.passes.read();
        if passed.error.is_some() || (log.moved < log.frames && passed.is_blocked()) {
            core.counters.checkpoints.add(1);
            core.note_pass(run(connection, Mode::Passive).as_ref().copied());
        } else if passed.is_blocked() && core.slot.held_by().is_none() {
            // A passive pass does not tell whether a reader still looks into the log.
            let lease = wait_for_turn(core, connection)?;
            core.counters.checkpoints.add(1);
            core.note_pass(run(connection, Mode::Restart).as_ref().copied());
            drop(lease);
        }
        self.truncate_if_idle(core, connection, now)
    }

    fn warn(&mut self, core: &Core, log: Pass) {
        let bytes = self.back_pressure.bytes(log.frames);
        let limit = core.options.wal_policy.warn_at.0;
        if bytes < limit / 2 {
            self.has_warned = false;
        }
        // What is moved, of a log that is nobody's: the next commit begins it anew.
        let is_held = core.passes.read().is_blocked();
        let is_well = !is_held
            && self
                .back_pressure
                .bytes(log.frames.saturating_sub(log.moved))
                < limit;
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
        let frames = core.wal_size.frames();
        let lease = wait_for_turn(core, connection)?;
        // Somebody may have written while it waited.
        if core.wal_size.frames() == frames {
            match within(connection, READERS, Mode::Truncate) {
                Ok(cut) => {
                    core.counters.truncations.add(cut.is_done().into());
                    core.note_cut(cut);
                }
                Err(error) => core.note_pass(Err(&error)),
            }
        }
        drop(lease);
        Ok(())
    }
}
