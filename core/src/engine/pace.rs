//! When a save lets other tasks run before it is written, so that they queue theirs and share its commit.
//!
//! Letting others run wakes another thread of the runtime, which finds nothing to do when there is only one task
//! that saves: that cost a lone writer a tenth of its speed. So after many commits of a single save each, a save goes
//! ahead at once, but not for longer than [`STRETCH`]: a task that only saves never waits for anything else, and
//! would keep its thread from the tasks beside it.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// After so many commits of a single save, in a row, nobody is expected to join the next one.
const LONELY: u32 = 32;
/// How long a task saves without letting others run.
const STRETCH: Duration = Duration::from_micros(200);

/// What the saves of one database saw of each other lately.
#[derive(Debug)]
pub(in crate::engine) struct Pace {
    began: Instant,
    /// Commits of a single save in a row.
    single: AtomicU32,
    /// When a save last let others run, in nanoseconds since `began`.
    yielded: AtomicU64,
}

impl Pace {
    pub(in crate::engine) fn new() -> Self {
        Self {
            began: Instant::now(),
            single: AtomicU32::new(0),
            yielded: AtomicU64::new(0),
        }
    }

    /// So many saves were taken together.
    pub(in crate::engine) fn took(&self, saves: usize) {
        if saves > 1 {
            self.single.store(0, Ordering::Relaxed);
        } else if self.single.load(Ordering::Relaxed) < LONELY {
            self.single.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a save that was queued just now is to let others run first.
    pub(in crate::engine) fn yields(&self) -> bool {
        if self.single.load(Ordering::Relaxed) < LONELY {
            return true;
        }
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since = now.saturating_sub(self.yielded.load(Ordering::Relaxed));
        let is_due = Duration::from_nanos(since) >= STRETCH;
        if is_due {
            self.yielded.store(now, Ordering::Relaxed);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use crate::engine::pace::{LONELY, Pace, STRETCH};

    #[test]
    fn saves_that_are_joined_yield_always() {
        let pace = Pace::new();
        for _ in 0..100 {
            assert!(pace.yields());
            pace.took(1);
            pace.took(2);
        }
    }

    #[test]
    fn lonely_saves_yield_now_and_then() {
        let pace = Pace::new();
        for _ in 0..LONELY {
            assert!(pace.yields());
            pace.took(1);
        }
        let mut yields = 0;
        let until = Instant::now() + 20 * STRETCH;
        while Instant::now() < until {
            yields += u32::from(pace.yields());
            pace.took(1);
        }
        assert!((1..=21).contains(&yields), "{yields}");
        pace.took(2);
        assert!(pace.yields());
    }
}
