//! What time SQL is told.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// Every question gets the real time.
const FREE: u8 = 0;
/// The next question gets the real time, and it stands.
const UNASKED: u8 = 1;
/// A time is set, and nobody has asked for it.
const SET: u8 = 2;
/// A time is set, and was given.
const GIVEN: u8 = 3;

/// The clock of the connections of one VFS, in milliseconds of the Julian day, as SQLite counts.
///
/// It is set between the statements of a connection, and asked by them.
#[derive(Debug, Default)]
pub(in crate::engine) struct Clock {
    state: AtomicU8,
    time: AtomicI64,
}

impl Clock {
    /// What time it is: the time that was set, else the real one.
    pub(in crate::engine) fn now(&self, real: impl FnOnce() -> i64) -> i64 {
        match self.state.load(Ordering::Acquire) {
            FREE => real(),
            UNASKED => {
                let time = real();
                self.set(GIVEN, time);
                time
            }
            _ => {
                self.state.store(GIVEN, Ordering::Release);
                self.time.load(Ordering::Relaxed)
            }
        }
    }

    /// The first question from now on takes the real time, and all later ones get the same.
    pub(in crate::engine) fn record(&self) {
        self.state.store(UNASKED, Ordering::Release);
    }

    /// This time from now on; without one, as [`Clock::record`].
    pub(in crate::engine) fn replay(&self, time: Option<i64>) {
        match time {
            Some(time) => self.set(SET, time),
            None => self.record(),
        }
    }

    /// What was given since the last [`Clock::record`] or [`Clock::replay`], if somebody asked.
    pub(in crate::engine) fn asked(&self) -> Option<i64> {
        (self.state.load(Ordering::Acquire) == GIVEN).then(|| self.time.load(Ordering::Relaxed))
    }

    /// The real time from now on.
    pub(in crate::engine) fn free(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    fn set(&self, state: u8, time: i64) {
        self.time.store(time, Ordering::Relaxed);
        self.state.store(state, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::Clock;

    #[test]
    fn a_free_clock_goes() {
        let clock = Clock::default();
        assert_eq!((clock.now(|| 1), clock.now(|| 2)), (1, 2));
        assert_eq!(clock.asked(), None);
    }

    #[test]
    fn a_recording_clock_stands_from_the_first_question_on() {
        let clock = Clock::default();
        clock.record();
        assert_eq!(clock.asked(), None);
        assert_eq!((clock.now(|| 7), clock.now(|| 8)), (7, 7));
        assert_eq!(clock.asked(), Some(7));
        clock.free();
        assert_eq!((clock.now(|| 9), clock.asked()), (9, None));
    }

    #[test]
    fn a_replaying_clock_tells_what_it_was_given() {
        let clock = Clock::default();
        clock.replay(Some(5));
        assert_eq!(clock.asked(), None);
        assert_eq!(clock.now(|| 6), 5);
        assert_eq!(clock.asked(), Some(5));
        clock.replay(None);
        assert_eq!((clock.now(|| 7), clock.now(|| 8)), (7, 7));
    }
}
