//! How long the write-ahead log is, as commits report it.

use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering},
};

use crate::engine::hooks::CommitBell;

/// Commits are not held up for longer than this many times, however far they outran a checkpoint.
const MOST_TIMES: u32 = 8;

/// Counts the frames of the log and wakes the checkpointer when enough have gathered.
pub(in crate::engine) struct WalSize {
    frames: AtomicU32,
    threshold: u32,
    wake_at: AtomicU32,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(in crate::engine) bell: CommitBell,
}

impl std::fmt::Debug for WalSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WalSize")
            .field("frames", &self.frames)
            .field("wake_at", &self.wake_at)
            .finish_non_exhaustive()
    }
}

impl WalSize {
    /// Wakes from `threshold` frames on.
    pub(in crate::engine) fn new(threshold: u32) -> Self {
        Self {
            frames: AtomicU32::new(0),
            threshold,
            wake_at: AtomicU32::new(threshold),
            wake: OnceLock::new(),
            bell: CommitBell::default(),
        }
    }

    /// Who is woken.
    pub(in crate::engine) fn on_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        // Set once, by the engine that made it.
        drop(self.wake.set(Box::new(wake)));
    }

    /// A commit left the log at this many frames.
    pub(in crate::engine) fn committed(&self, frames: u32) {
        self.bell.ring();
        let before = self.frames.swap(frames, Ordering::Relaxed);
        if frames < before && self.wake_at.load(Ordering::Relaxed) != u32::MAX {
            // The log began anew. A mark that was set for the old one would let this one grow past it, and each
            // one further than the one before.
            self.wake_at(self.threshold);
        }
        if frames >= self.wake_at.load(Ordering::Relaxed)
            && let Some(wake) = self.wake.get()
        {
            // Not again before the checkpointer has set the next mark.
            self.wake_at.store(u32::MAX, Ordering::Relaxed);
            wake();
        }
    }

    /// How many frames the log had after the last commit.
    pub(in crate::engine) fn frames(&self) -> u32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// How many times the threshold the log has grown to while a checkpoint is under way, if it is at least so many: the
    /// commits outrun it.
    pub(in crate::engine) fn lead(&self, least: u32) -> Option<u32> {
        let under_way = self.wake_at.load(Ordering::Relaxed) == u32::MAX;
        let times = self.frames() / self.threshold;
        (under_way && times >= least).then_some(times.min(MOST_TIMES))
    }

    /// Wakes again from this many frames on.
    pub(in crate::engine) fn wake_at(&self, frames: u32) {
        self.wake_at.store(frames, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use crate::engine::hooks::WalSize;

    /// The mark crept up with each new log: one task that saved alone had a log of 47 MB after some seconds.
    #[test]
    fn a_log_that_began_anew_has_the_first_mark_again() {
        let size = WalSize::new(1000);
        let woken = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&woken);
        size.on_wake(move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        for _ in 0..3 {
            size.committed(1000);
            size.wake_at(1500);
            size.committed(3);
        }
        assert_eq!(woken.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn commits_outrun_only_a_checkpoint_that_is_under_way() {
        let size = WalSize::new(1000);
        size.on_wake(|| {});
        size.committed(2500);
        assert_eq!(size.lead(2), Some(2));
        assert_eq!(size.lead(3), None);
        size.wake_at(3500);
        assert_eq!(size.lead(2), None);
    }
}
