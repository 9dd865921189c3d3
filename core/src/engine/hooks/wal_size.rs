//! How long the write-ahead log is, as commits report it.

use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering},
};

/// Counts the frames of the log and wakes the checkpointer when enough have gathered.
pub(in crate::engine) struct WalSize {
    frames: AtomicU32,
    wake_at: AtomicU32,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
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
            wake_at: AtomicU32::new(threshold),
            wake: OnceLock::new(),
        }
    }

    /// Who is woken.
    pub(in crate::engine) fn on_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        // Set once, by the engine that made it.
        drop(self.wake.set(Box::new(wake)));
    }

    /// A commit left the log at this many frames.
    pub(in crate::engine) fn committed(&self, frames: u32) {
        self.frames.store(frames, Ordering::Relaxed);
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

    /// Wakes again from this many frames on.
    pub(in crate::engine) fn wake_at(&self, frames: u32) {
        self.wake_at.store(frames, Ordering::Relaxed);
    }
}
