//! Whether the file is still where it was opened.
//!
//! Removed, renamed or replaced while it is open, the file is no longer the one that anybody finds at its path: what
//! is written to it would be lost to everybody but us. So SQLite is asked, which compares the path's inode with its
//! own. That is a `stat`, which takes more than half as long as a read by key; so reads and saves ask only when nobody did for a
//! moment ([`AGAIN`]). Transactions ask as they begin and before they commit, and so does whatever moves the log;
//! the checkpointer's thread asks every second, also when nothing happens.
//!
//! Once it was seen there is no way back, even if the file is put back in its place: another program may have written
//! the other one meanwhile, with the same log beside it.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::engine::ffi::has_moved;

/// For how long reads and saves rely on the last look.
const AGAIN: Duration = Duration::from_millis(100);
/// How often the thread looks.
pub(in crate::engine) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is known of the file's place.
#[derive(Debug)]
pub(in crate::engine) struct Whereabouts {
    opened: Instant,
    /// When somebody looked last, in milliseconds since it was opened.
    looked: AtomicU64,
    moved: AtomicBool,
}

impl Whereabouts {
    pub(in crate::engine) fn new() -> Self {
        Self {
            opened: Instant::now(),
            looked: AtomicU64::new(0),
            moved: AtomicBool::new(false),
        }
    }

    /// Whether the file is known to have moved.
    pub(in crate::engine) fn is_moved(&self) -> bool {
        self.moved.load(Ordering::Acquire)
    }

    /// Remembers that the file has moved; true for who says so first.
    pub(in crate::engine) fn set_moved(&self) -> bool {
        !self.moved.swap(true, Ordering::AcqRel)
    }

    /// Whether the file has moved, by a look at it.
    pub(in crate::engine) fn look(&self, connection: &Connection) -> bool {
        self.is_moved() || has_moved(connection)
    }

    /// The same, by the last look if that is no older than a moment.
    pub(in crate::engine) fn look_again(&self, connection: &Connection, now: Instant) -> bool {
        self.is_moved() || (self.is_due(now) && has_moved(connection))
    }

    /// Whether the last look is too old; if so, the one who asks is to look.
    fn is_due(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.opened).as_millis();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        let looked = self.looked.load(Ordering::Relaxed);
        let is_due = u128::from(since.saturating_sub(looked)) >= AGAIN.as_millis();
        if is_due {
            self.looked.store(since, Ordering::Relaxed);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::engine::whereabouts::{AGAIN, Whereabouts};

    #[test]
    fn one_look_serves_everybody_for_a_moment() {
        let place = Whereabouts::new();
        let soon = place.opened + AGAIN / 2;
        let later = place.opened + AGAIN;
        assert!(!place.is_due(soon));
        assert!(place.is_due(later));
        assert!(!place.is_due(later), "somebody looks already");
        assert!(!place.is_due(later + AGAIN - Duration::from_millis(1)));
        assert!(place.is_due(later + AGAIN));
    }
}
