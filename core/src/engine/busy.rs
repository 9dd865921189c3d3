//! Waiting for another process to let go of SQLite's write lock, or of the log.
//!
//! Not by SQLite's busy handler: it sleeps for longer and longer, up to a tenth of a second. The gap between two commits
//! of a process that writes back to back is short; what hits it is to look often, and not in step. Measured beside such
//! a process, for five seconds: with 2 ms between two looks 1,168 commits of ours against 16,557, with [`SHORT`] 1,964
//! against 6,142. A holder that stays is looked for less often.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use crate::{
    engine::sqlite_error::is_unrest,
    error::{Error, ErrorKind, Result},
};

/// Around this long between two looks, at first.
const SHORT: Duration = Duration::from_micros(150);
/// After so many looks the holder is one that stays.
const LOOKS: u32 = 64;
/// Around this long between two looks then.
const LONG: Duration = Duration::from_millis(2);

/// How long to wait before the next look, after so many in vain.
pub(in crate::engine) fn pause(looks: u32) -> Duration {
    let around = if looks < LOOKS { SHORT } else { LONG };
    // Up to twice as long, at random: two that wait for each other do not wait in step.
    let random = RandomState::new().hash_one(looks) % 1000;
    around.mul_f64(0.2 + 1.8 * f64::from(u32::try_from(random).unwrap_or_default()) / 1000.0)
}

/// Runs `run` until it is not told BUSY any more, for as long as `timeout`. Blocks: on a thread only.
pub(in crate::engine) fn retrying<T>(
    timeout: Duration,
    mut run: impl FnMut() -> Result<T>,
) -> Result<T> {
    let began = Instant::now();
    let mut looks = 0;
    loop {
        match run() {
            Err(error) if error.kind() == ErrorKind::Busy => {
                if began.elapsed() > timeout {
                    return Err(given_up(&error, began.elapsed()));
                }
                std::thread::sleep(pause(looks));
                looks += 1;
            }
            outcome => return outcome,
        }
    }
}

/// What was told last was told for all of the busy timeout.
pub(in crate::engine) fn given_up(last: &Error, waited: Duration) -> Error {
    if !last.sqlite_code().is_some_and(is_unrest) {
        return outlasted(waited);
    }
    Error::new(
        ErrorKind::Busy,
        "no snapshot could be taken for longer than busy_timeout, and nothing was written: other processes commit without a pause, or one hangs in the middle of a commit",
    )
    .with_waited(waited)
}

/// Another process held the lock for all of the busy timeout.
pub(in crate::engine) fn outlasted(waited: Duration) -> Error {
    Error::new(
        ErrorKind::Busy,
        "another process held the write lock for longer than busy_timeout: nothing was written",
    )
    .with_waited(waited)
}
