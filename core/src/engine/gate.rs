//! Which kinds of reads run on threads for a while, since they turned out to be slow inline.
//!
//! One slow call says little: the clock goes on while the operating system runs another process on this core, so on
//! a busy machine the fastest read is slow now and then. Once a single call sufficed, and key reads beside a
//! compiler ended up on threads, five times slower, nearly always. A kind that is slow by nature (a large row, a
//! cold disk) is slow again within a few calls.

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
/// So many slow calls in close succession ban a kind. More than two: the threads of a runtime are often stopped
/// together, and each has a call under way.
const STRIKES: u32 = 4;
/// How many inline reads may lie between two slow calls for the succession to be a close one.
const CLOSE: u64 = 32;
/// For how long the kind then runs on threads.
const BAN: Duration = Duration::from_secs(10);
/// The most kinds remembered; beyond that all are forgotten, which costs each a few slow calls.
const MOST: usize = 256;

/// Remembers slow kinds of reads by their statement text.
#[derive(Debug, Default)]
pub(in crate::engine) struct InlineGate {
    kinds: Mutex<HashMap<Arc<str>, Kind>>,
    banned: AtomicUsize,
}

/// A kind of which a call was slow.
#[derive(Debug)]
struct Kind {
    strikes: u32,
    /// The number of the last slow call among all inline reads.
    last: u64,
    until: Option<Instant>,
}

impl InlineGate {
    /// Whether this kind may run inline.
    pub(in crate::engine) fn is_open_for(&self, text: &str) -> bool {
        // Nearly always, and then without a lock.
        if self.banned.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = kinds.get(text).and_then(|kind| kind.until) else {
            return true;
        };
        let is_open = until <= Instant::now();
        if is_open {
            kinds.remove(text);
            self.count(&kinds);
        }
        is_open
    }

    /// A call of this kind was slow; it was the inline read with this number.
    pub(in crate::engine) fn was_slow(&self, text: &Arc<str>, number: u64) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= MOST && !kinds.contains_key(text) {
            kinds.clear();
        }
        let kind = kinds.entry(Arc::clone(text)).or_insert(Kind {
            strikes: 0,
            last: number,
            until: None,
        });
        let is_close = number.saturating_sub(kind.last) <= CLOSE;
        kind.strikes = if is_close { kind.strikes + 1 } else { 1 };
        kind.last = number;
        if kind.strikes >= STRIKES {
            kind.until = Some(Instant::now() + BAN);
        }
        self.count(&kinds);
    }

    fn count(&self, kinds: &HashMap<Arc<str>, Kind>) {
        let banned = kinds.values().filter(|kind| kind.until.is_some()).count();
        self.banned.store(banned, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::gate::{CLOSE, InlineGate, STRIKES};

    #[test]
    fn slow_calls_far_apart_do_not_ban_a_kind() {
        let gate = InlineGate::default();
        for number in 0..20 {
            gate.was_slow(&"select".into(), number * (CLOSE + 1));
            assert!(gate.is_open_for("select"));
        }
    }

    #[test]
    fn slow_calls_in_close_succession_ban_that_kind_alone() {
        let gate = InlineGate::default();
        for number in 0..u64::from(STRIKES) {
            assert!(gate.is_open_for("select"));
            gate.was_slow(&"select".into(), number * CLOSE);
        }
        assert!(!gate.is_open_for("select"));
        assert!(gate.is_open_for("select 1"));
    }
}
