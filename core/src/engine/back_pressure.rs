//! Holds writers back while a reader is in the way of a log that is near its limit.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::{
    engine::{
        checkpoint::{READERS, close_gate, restart},
        core::Core,
        health::{frame_size, oldest_reader},
        passes::Pass,
    },
    error::{ErrorKind, Result},
};

/// How long writers are held back once the log has reached half of its limit, and into how many steps the other half is
/// divided: with each they are held back for twice as long.
const PAUSE: Duration = Duration::from_millis(50);
const STEPS: u32 = 8;
/// For how long new readers and sessions are kept waiting meanwhile, at most.
const GATE: Duration = Duration::from_millis(2500);

/// See the module's page.
#[derive(Debug)]
pub(in crate::engine) struct BackPressure {
    frame: u64,
    /// It has told that writers are held back.
    has_told: bool,
}

impl BackPressure {
    pub(in crate::engine) fn new(connection: &Connection) -> Result<Self> {
        Ok(Self {
            frame: frame_size(connection)?,
            has_told: false,
        })
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
            self.has_told &= frames >= held_from;
            return tried;
        }
        core.counters.held_back.add(1);
        self.tell(core, frames);
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
            core.end_old();
            tried = restart(connection);
        }
        tried
    }

    fn tell(&mut self, core: &Core, frames: u32) {
        if std::mem::replace(&mut self.has_told, true) {
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

    pub(in crate::engine) fn bytes(&self, frames: u32) -> u64 {
        u64::from(frames) * self.frame
    }
}

/// Whether a reader, or another process that moves the log, is in the way.
fn is_stopped(tried: &Result<Pass>) -> bool {
    match tried {
        Ok(pass) => !pass.is_done(),
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
pub(in crate::engine) fn named(core: &Core) -> (String, Option<Duration>) {
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

    use crate::engine::back_pressure::{PAUSE, pause};

    #[test]
    fn pauses_grow_with_the_log_until_they_have_no_end() {
        assert_eq!(pause(800, 800), Some(PAUSE));
        assert_eq!(pause(900, 800), Some(2 * PAUSE));
        assert_eq!(pause(1599, 800), Some(Duration::from_millis(6400)));
        assert_eq!(pause(1600, 800), None);
        assert_eq!(pause(u32::MAX, 1), None);
    }
}
