//! Which kinds of reads run on threads for a while, since one of them was slow inline.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// An inline call that takes longer than this delays other tasks too much.
pub(in crate::engine) const SLOW: Duration = Duration::from_millis(1);
/// For how long the kind then runs on threads.
const BAN: Duration = Duration::from_secs(10);
/// The most kinds remembered; beyond that the oldest bans are forgotten, which costs a slow call each.
const MOST: usize = 256;

/// Remembers slow kinds of reads by their statement text.
#[derive(Debug, Default)]
pub(in crate::engine) struct InlineGate {
    banned: Mutex<HashMap<Arc<str>, Instant>>,
    count: AtomicUsize,
}

impl InlineGate {
    /// Whether this kind may run inline.
    pub(in crate::engine) fn is_open_for(&self, text: &str) -> bool {
        // Nearly always, and then without a lock.
        if self.count.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut banned = self.banned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = banned
            .get(text)
            .is_none_or(|until| *until <= Instant::now());
        if is_open {
            banned.remove(text);
            self.count.store(banned.len(), Ordering::Relaxed);
        }
        is_open
    }

    /// A call of this kind was slow.
    pub(in crate::engine) fn ban(&self, text: &Arc<str>) {
        let mut banned = self.banned.lock().unwrap_or_else(PoisonError::into_inner);
        if banned.len() >= MOST {
            banned.clear();
        }
        banned.insert(Arc::clone(text), Instant::now() + BAN);
        self.count.store(banned.len(), Ordering::Relaxed);
    }
}
