//! What becomes of an event that cannot be dealt with.

use std::time::Duration;

/// How often, and when, an event is tried again, and what becomes of it then: of [`Feed::each`](crate::feed::Feed::each).
///
/// ```
/// use anabranch::feed::{GiveUp, Retries};
/// use std::time::Duration;
///
/// let retries = Retries::new()
///     .attempts(8)
///     .backoff(Duration::from_millis(50), Duration::from_secs(60))
///     .then(GiveUp::Park);
/// # assert_ne!(retries, Retries::new());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Retries {
    attempts: u32,
    first: Duration,
    longest: Duration,
    pub(super) then: GiveUp,
}

/// What becomes of an event after the last attempt.
///
/// ```
/// use anabranch::feed::GiveUp;
///
/// assert_eq!(GiveUp::default(), GiveUp::Stop);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum GiveUp {
    /// The feed stops, and the error is returned; the event comes again when it goes on.
    #[default]
    Stop,
    /// It is put aside, with the text of the error, and the feed goes on: [`Feed::parked`](crate::feed::Feed::parked).
    Park,
    /// It is left out, and the feed goes on; an event of level ERROR tells of it.
    Skip,
}

impl Retries {
    /// The defaults, which each method tells.
    pub const fn new() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            then: GiveUp::Stop,
        }
    }

    /// How often an event is tried altogether; once at least. Default: 5.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = if attempts == 0 { 1 } else { attempts };
        self
    }

    /// How long the first attempt is waited after; twice as long after each further one, up to the longest. Default: 100
    /// milliseconds, 30 seconds.
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// What becomes of the event then. Default: [`GiveUp::Stop`].
    pub const fn then(mut self, give_up: GiveUp) -> Self {
        self.then = give_up;
        self
    }

    /// How long to wait after so many failed attempts; nothing if that was the last one.
    pub(super) fn pause_after(&self, failed: u32) -> Option<Duration> {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(failed - 1));
        (failed < self.attempts).then(|| doubled.min(self.longest))
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::feed::Retries;

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let millis = Duration::from_millis;
        let retries = Retries::new().attempts(5).backoff(millis(10), millis(35));
        let pauses: Vec<_> = (1..=5).map(|failed| retries.pause_after(failed)).collect();
        let expected = [10, 20, 35, 35].map(|pause| Some(millis(pause)));
        assert_eq!(pauses[..4], expected);
        assert_eq!(pauses[4], None);
        assert_eq!(Retries::new().attempts(0).pause_after(1), None);
        assert_eq!(
            Retries::new().attempts(u32::MAX).pause_after(1 << 30),
            Some(Duration::from_secs(30))
        );
    }
}
