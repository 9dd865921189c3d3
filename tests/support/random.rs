//! Chance that can be repeated.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Whether the tests under load run in their long form: `ANABRANCH_LONG=1`.
#[must_use]
pub fn is_long() -> bool {
    std::env::var("ANABRANCH_LONG").is_ok_and(|long| long == "1")
}

/// How long a test under load lasts: six or ten seconds, or a minute.
#[must_use]
pub fn lasting(short: Duration, long: Duration) -> Duration {
    if is_long() { long } else { short }
}

/// A small generator of numbers, splitmix64: the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Starts at [`seed`].
    #[must_use]
    pub fn seeded(test: &str) -> Self {
        Self(seed(test))
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in so many times.
    pub const fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Less than so many microseconds.
    pub const fn micros(&mut self, end: u64) -> Duration {
        Duration::from_micros(self.below(end))
    }

    /// Another generator, for another task.
    #[must_use]
    pub const fn branch(&mut self) -> Self {
        Self(self.next())
    }
}

/// The seed in `ANABRANCH_SEED`, else a fresh one; printed, so that a failed test shows it.
#[must_use]
pub fn seed(test: &str) -> u64 {
    let given = std::env::var("ANABRANCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(fresh);
    eprintln!("{test}: repeat with ANABRANCH_SEED={seed}");
    seed
}

fn fresh() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    let call = CALLS.fetch_add(1, Relaxed);
    u64::try_from(micros).unwrap_or(u64::MAX).wrapping_add(call)
}
