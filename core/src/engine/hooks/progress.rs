//! Stopping a read: when it outgrows its budget, or when nobody waits for it any more.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Instant,
};

/// Asked by SQLite every [`Progress::STEPS`] steps whether the running statement goes on.
///
/// Runs are numbered, and a run is stopped by its number: a stop that comes late meets another number and does
/// nothing, where `sqlite3_interrupt` would hit whatever runs by then.
#[derive(Debug)]
pub(in crate::engine) struct Progress {
    run: AtomicU64,
    stopped: AtomicU64,
    /// How often SQLite may still ask before the run has used its budget; negative means no budget.
    left: AtomicI64,
    /// When the run has to end, in nanoseconds since `base`; 0 is never.
    until: AtomicU64,
    base: LazyLock<Instant>,
}

/// A run that has to end in time.
#[derive(Debug)]
pub(in crate::engine) struct Deadline(Run);

impl Drop for Deadline {
    fn drop(&mut self) {
        self.0.progress.until.store(0, Ordering::Relaxed);
    }
}

/// A statement's run on a connection, by which it can be stopped from elsewhere.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Run {
    progress: Arc<Progress>,
    number: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            run: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            left: AtomicI64::new(0),
            until: AtomicU64::new(0),
            base: LazyLock::new(Instant::now),
        }
    }
}

impl Progress {
    /// How many steps of SQLite's virtual machine lie between two questions.
    pub(in crate::engine) const STEPS: i32 = 1000;

    /// Lets everything run on, until something else is begun.
    pub(in crate::engine) fn unlimited() -> Arc<Self> {
        let progress = Arc::new(Self::default());
        drop(progress.begin(None));
        progress
    }

    /// Begins a run. A budget is a number of questions; `None` is no budget.
    pub(in crate::engine) fn begin(self: &Arc<Self>, budget: Option<u32>) -> Run {
        self.left
            .store(budget.map_or(-1, i64::from), Ordering::Relaxed);
        Run {
            progress: Arc::clone(self),
            number: self.run.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Begins a run that has to end by then; it has all the time again once what is returned is dropped.
    pub(in crate::engine) fn begin_until(self: &Arc<Self>, deadline: Instant) -> Deadline {
        let nanos = deadline.saturating_duration_since(*self.base).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX).max(1);
        self.until.store(nanos, Ordering::Relaxed);
        Deadline(self.begin(None))
    }

    /// Stops the present run.
    pub(in crate::engine) fn stop_present(&self) {
        let present = self.run.load(Ordering::Relaxed);
        self.stopped.fetch_max(present, Ordering::Relaxed);
    }

    /// Whether the running statement has to stop.
    pub(in crate::engine) fn shall_stop(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) == self.run.load(Ordering::Relaxed) {
            return true;
        }
        let until = self.until.load(Ordering::Relaxed);
        if until != 0 && self.base.elapsed().as_nanos() > u128::from(until) {
            return true;
        }
        let left = self.left.load(Ordering::Relaxed);
        match left {
            0 => true,
            1.. => {
                self.left.store(left - 1, Ordering::Relaxed);
                false
            }
            _ => false,
        }
    }

    /// Whether the present run has used its budget.
    pub(in crate::engine) fn is_exhausted(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

impl Run {
    /// Whether this run, or a later one of its connection, was stopped.
    pub(in crate::engine) fn is_stopped(&self) -> bool {
        self.progress.stopped.load(Ordering::Relaxed) >= self.number
    }

    /// Stops this run, if it is still the present one of its connection.
    pub(in crate::engine) fn stop(&self) {
        self.progress
            .stopped
            .fetch_max(self.number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::engine::hooks::progress::Progress;

    #[test]
    fn a_late_stop_does_not_hit_the_next_run() {
        let progress = Arc::new(Progress::default());
        let first = progress.begin(None);
        let _second = progress.begin(None);
        first.stop();
        assert!(!progress.shall_stop());
    }

    #[test]
    fn a_budget_counts_questions() {
        let progress = Arc::new(Progress::default());
        let _run = progress.begin(Some(2));
        assert!(!progress.shall_stop());
        assert!(!progress.shall_stop());
        assert!(progress.shall_stop());
        assert!(progress.is_exhausted());
    }
}
