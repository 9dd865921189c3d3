//! The time that SQL sees, so that what was computed from it can be computed again.
#![cfg_attr(
    not(test),
    allow(dead_code, reason = "sessions of the engine are built on it next")
)]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// No time.
const NONE: i64 = i64::MIN;

/// Asked by a VFS for the present time, in milliseconds of the Julian day, as SQLite counts them.
///
/// It is free at first, and gives the real time. Recording, the first question takes the real time and all later
/// ones are given the same; replaying, all are given a time of before. The connection's owner changes what it does
/// while no statement runs.
#[derive(Debug)]
pub(in crate::engine) struct Clock {
    stands: AtomicBool,
    time: AtomicI64,
    asked: AtomicBool,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            stands: AtomicBool::new(false),
            time: AtomicI64::new(NONE),
            asked: AtomicBool::new(false),
        }
    }
}

impl Clock {
    /// The time to give to SQLite, with the real time where that is wanted.
    pub(in crate::engine) fn now(&self, real: impl FnOnce() -> i64) -> i64 {
        if !self.stands.load(Ordering::Relaxed) {
            return real();
        }
        self.asked.store(true, Ordering::Relaxed);
        match self.time.load(Ordering::Relaxed) {
            NONE => {
                let now = real();
                self.time.store(now, Ordering::Relaxed);
                now
            }
            time => time,
        }
    }

    /// Takes the real time at the first question, and stands still from then on.
    pub(in crate::engine) fn record(&self) {
        self.replay(None);
    }

    /// Gives this time; without one, records.
    pub(in crate::engine) fn replay(&self, time: Option<i64>) {
        self.time.store(time.unwrap_or(NONE), Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
        self.stands.store(true, Ordering::Relaxed);
    }

    /// The time that was given since [`Clock::record`] or [`Clock::replay`], if anybody asked for it.
    pub(in crate::engine) fn asked(&self) -> Option<i64> {
        self.asked
            .load(Ordering::Relaxed)
            .then(|| self.time.load(Ordering::Relaxed))
    }

    /// Gives the real time again.
    pub(in crate::engine) fn free(&self) {
        self.stands.store(false, Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::Clock;

    #[test]
    fn a_free_clock_gives_the_real_time_and_remembers_nothing() {
        let clock = Clock::default();
        assert_eq!((clock.now(|| 1), clock.now(|| 2)), (1, 2));
        assert_eq!(clock.asked(), None);
    }

    #[test]
    fn a_recording_clock_stands_still_from_the_first_question_on() {
        let clock = Clock::default();
        clock.record();
        assert_eq!(clock.asked(), None);
        assert_eq!((clock.now(|| 1), clock.now(|| 2)), (1, 1));
        assert_eq!(clock.asked(), Some(1));
        clock.record();
        assert_eq!(clock.asked(), None);
        assert_eq!(clock.now(|| 3), 3);
    }

    #[test]
    fn a_replaying_clock_gives_the_time_of_before() {
        let clock = Clock::default();
        clock.replay(Some(7));
        assert_eq!(clock.asked(), None);
        assert_eq!((clock.now(|| 1), clock.now(|| 2)), (7, 7));
        assert_eq!(clock.asked(), Some(7));
        clock.replay(None);
        assert_eq!((clock.now(|| 1), clock.now(|| 2)), (1, 1));
        clock.free();
        assert_eq!(clock.asked(), None);
        assert_eq!(clock.now(|| 9), 9);
    }
}
