//! How the passes of the checkpointer went, and whether somebody holds the log.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    error::{Error, ErrorKind},
    observe::WalOutcome,
};

/// For how long a pass has to be stopped at the same frame before that is laid to one reader.
const STUCK: Duration = Duration::from_millis(800);
/// For how long a pass says who is in the way: the monitor tries again every second.
const FRESH: Duration = Duration::from_secs(3);

/// What is remembered of the passes over one log.
#[derive(Debug)]
pub(in crate::engine) struct Passes {
    state: Mutex<Passed>,
}

/// The same at a moment.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Passed {
    pub(in crate::engine) outcome: WalOutcome,
    /// Passes in a row that a reader stopped.
    pub(in crate::engine) incomplete: u32,
    pub(in crate::engine) complete_at: Instant,
    stuck: Option<Stuck>,
    /// Why the last pass failed, if it did.
    pub(in crate::engine) error: Option<String>,
}

/// Passes that were stopped at the same frame.
#[derive(Debug, Clone, Copy)]
struct Stuck {
    at: u32,
    since: Instant,
    last: Instant,
    /// Whether the last of them met no reader of ours that is older than the first.
    is_foreign: bool,
}

/// What a pass found.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Pass {
    pub(in crate::engine) frames: u32,
    pub(in crate::engine) moved: u32,
    /// It waited for readers in vain; never so of a passive one.
    pub(in crate::engine) is_busy: bool,
    /// How long it took.
    pub(in crate::engine) took: Duration,
}

impl Pass {
    /// Whether every frame was moved, and no reader keeps the log from starting anew.
    pub(in crate::engine) const fn is_done(self) -> bool {
        self.moved == self.frames && !self.is_busy
    }
}

impl Passes {
    pub(in crate::engine) fn new() -> Self {
        Self {
            state: Mutex::new(Passed {
                outcome: WalOutcome::NotYet,
                incomplete: 0,
                complete_at: Instant::now(),
                stuck: None,
                error: None,
            }),
        }
    }

    /// A pass has ended, beside readers of ours of which the oldest is open since then.
    pub(in crate::engine) fn note(
        &self,
        pass: Result<(Pass, Option<Instant>), &Error>,
        now: Instant,
    ) {
        let mut state = self.lock();
        match pass {
            Ok((pass, oldest)) => state.note(pass, oldest, now),
            Err(error) if error.kind() == ErrorKind::Busy => {
                state.outcome = WalOutcome::OtherCheckpointer;
            }
            Err(error) => state.error = Some(error.to_string()),
        }
    }

    pub(in crate::engine) fn read(&self) -> Passed {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passed {
    fn note(&mut self, pass: Pass, oldest: Option<Instant>, now: Instant) {
        self.error = None;
        if pass.is_done() {
            self.outcome = WalOutcome::Complete;
            self.incomplete = 0;
            self.complete_at = now;
            self.stuck = None;
            return;
        }
        self.outcome = if pass.moved == pass.frames {
            WalOutcome::MovedNotReset
        } else {
            WalOutcome::PartlyMoved
        };
        self.incomplete = self.incomplete.saturating_add(1);
        let since = match self.stuck {
            Some(stuck) if stuck.at == pass.moved => stuck.since,
            _ => now,
        };
        self.stuck = Some(Stuck {
            at: pass.moved,
            since,
            last: now,
            is_foreign: oldest.is_none_or(|oldest| oldest > since),
        });
    }

    /// Whether a reader keeps the log from being moved or from starting anew.
    pub(in crate::engine) const fn is_blocked(&self) -> bool {
        matches!(
            self.outcome,
            WalOutcome::PartlyMoved | WalOutcome::MovedNotReset
        )
    }

    /// Whether the log is held by somebody who is none of ours, of whom the oldest is open since then. One reader
    /// stops each pass at the same frame; whoever began after the first of these is not the one. Those count too that were
    /// open at the last pass: of a reader of ours that ended since, the next one will know.
    pub(in crate::engine) fn is_foreign(&self, oldest: Option<Instant>, now: Instant) -> bool {
        self.is_blocked()
            && self.stuck.is_some_and(|stuck| {
                stuck.is_foreign
                    && stuck.last.saturating_duration_since(stuck.since) >= STUCK
                    && now.saturating_duration_since(stuck.last) <= FRESH
                    && oldest.is_none_or(|oldest| oldest > stuck.since)
            })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::{
        engine::passes::{Pass, Passes},
        error::{Error, ErrorKind},
        observe::WalOutcome,
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn pass(frames: u32, moved: u32, is_busy: bool) -> Pass {
        Pass {
            frames,
            moved,
            is_busy,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn a_pass_that_a_reader_stops_is_not_complete() {
        let passes = Passes::new();
        let now = Instant::now();
        for (found, outcome) in [
            (pass(10, 10, false), WalOutcome::Complete),
            (pass(20, 10, false), WalOutcome::PartlyMoved),
            (pass(20, 20, true), WalOutcome::MovedNotReset),
        ] {
            passes.note(Ok((found, None)), now);
            assert_eq!(passes.read().outcome, outcome);
        }
        assert_eq!(passes.read().incomplete, 2);
        passes.note(Ok((pass(0, 0, false), None)), now);
        assert_eq!(passes.read().incomplete, 0);
    }

    #[test]
    fn a_reader_is_foreign_if_none_of_ours_is_as_old() {
        let passes = Passes::new();
        let began = Instant::now();
        let foreign = |oldest, after| passes.read().is_foreign(oldest, began + after);
        passes.note(Ok((pass(20, 10, false), None)), began);
        assert!(!foreign(None, SECOND), "it may have ended");
        passes.note(Ok((pass(30, 10, false), None)), began + SECOND);
        assert!(foreign(None, SECOND));
        assert!(foreign(Some(began + SECOND), SECOND));
        assert!(!foreign(Some(began - SECOND), SECOND));
        assert!(!foreign(None, 10 * SECOND), "nobody looked since");
        // Another one stops it now.
        passes.note(Ok((pass(30, 20, false), None)), began + 2 * SECOND);
        assert!(!foreign(None, 2 * SECOND));
    }

    /// Until the next pass the end of one's own report was told as the reader of another process.
    #[test]
    fn a_reader_of_ours_that_has_ended_was_not_foreign() {
        let passes = Passes::new();
        let began = Instant::now();
        let ours = Some(began - SECOND);
        passes.note(Ok((pass(20, 10, false), ours)), began);
        passes.note(Ok((pass(20, 10, false), ours)), began + SECOND);
        assert!(!passes.read().is_foreign(None, began + SECOND));
        // It ended, and there still is one.
        passes.note(Ok((pass(20, 10, false), None)), began + 2 * SECOND);
        assert!(passes.read().is_foreign(None, began + 2 * SECOND));
    }

    #[test]
    fn an_error_is_kept_until_a_pass_succeeds() {
        let passes = Passes::new();
        let now = Instant::now();
        passes.note(Err(&Error::new(ErrorKind::Io, "no")), now);
        assert!(passes.read().error.is_some());
        passes.note(Err(&Error::new(ErrorKind::Busy, "another")), now);
        assert_eq!(passes.read().outcome, WalOutcome::OtherCheckpointer);
        passes.note(Ok((pass(1, 1, false), None)), now);
        assert_eq!(passes.read().error, None);
    }
}
