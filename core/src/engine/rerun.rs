//! Running the closure of `db.concurrent` until it is committed.
//!
//! A session that conflicts is run again, on a fresh snapshot, after a pause that is drawn at random and grows. After the
//! last attempt it is run as an exclusive transaction, where nothing can come between: so it always ends.
//!
//! A place in the source whose short sessions keep conflicting, such as one that counts up a row which everybody counts up,
//! goes to the queue at once for a number of calls ([`Heat`]): optimism costs it more than waiting. One that takes its time
//! inside does not: in the queue everybody would wait for that.

use std::{
    collections::HashMap,
    panic::Location,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tracing::Instrument as _;

use crate::{
    engine::{
        Attachment,
        core::Core,
        nested::Marked,
        session::{ConcurrentOptions, Session},
        slot::Label,
        timer,
    },
    error::{Error, ErrorKind, Result},
    observe::span,
};

/// The longest pause before the second run; it doubles with each further one.
const PAUSE: Duration = Duration::from_micros(50);
const MOST_PAUSE: Duration = Duration::from_millis(10);

/// How the sessions of each place in the source fare.
#[derive(Debug, Default)]
pub(in crate::engine) struct Heats {
    heats: Mutex<HashMap<Site, Heat>>,
}

/// A place in the source.
type Site = (&'static str, u32, u32);

/// How the sessions of one place fare.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Heat {
    /// The share of those that conflicted, the latest counting most.
    conflicts: f32,
    /// How many calls still go to the queue.
    exclusive: u32,
    /// How many went there the last time.
    last: u32,
}

/// From which share of conflicts on the queue is faster, for sessions that are over in a moment.
const HOT: f32 = 0.5;
const SHORT: Duration = Duration::from_millis(2);
/// How much the latest session counts.
const WEIGHT: f32 = 0.125;
/// How many calls go to the queue before another session is tried, at first and at most.
const LEAST_CALLS: u32 = 16;
const MOST_CALLS: u32 = 1024;

/// Runs `body`, again while it conflicts.
pub(in crate::engine) async fn concurrent<T>(
    core: &Arc<Core>,
    attachment: Option<&Attachment>,
    options: ConcurrentOptions,
    at: &'static Location<'static>,
    body: impl AsyncFnOnce(&mut Session) -> Result<T> + Clone,
) -> Result<T> {
    let site = (at.file(), at.line(), at.column());
    let label = Label::at(options.label, at);
    let database = Arc::as_ptr(core).addr();
    let mut attempt = 0;
    loop {
        let is_exclusive = attempt >= options.max_attempts || core.heats.is_hot(site);
        let attachment = attachment.cloned();
        let mut session = if is_exclusive {
            core.counters.exclusive_runs.add(1);
            Session::begin_exclusive(Arc::clone(core), attachment, label).await?
        } else {
            Session::begin(Arc::clone(core), attachment, options.isolation, label).await?
        };
        let is_exclusive = session.is_exclusive();
        session.set_attempt(attempt + 1);
        let began = Instant::now();
        let span = session.span().clone();
        let value = Marked::new(database, body.clone()(&mut session))
            .instrument(span.clone())
            .await;
        let value = match value {
            Ok(value) => value,
            Err(error) => {
                span::set_error(&span, error.kind());
                // The first error is the one that matters.
                if let Err(second) = session.rollback().await {
                    tracing::debug!(second = %second.in_log(), "while rolling back after an error");
                }
                return Err(error);
            }
        };
        let took = began.elapsed();
        let committed = session.commit().await;
        if !is_exclusive {
            let conflicted = committed.as_ref().is_err_and(is_to_rerun);
            // In the queue the others would wait for what it waits for.
            if !conflicted || took < SHORT {
                core.heats.note(site, conflicted);
            }
        }
        match committed {
            Ok(_) => return Ok(value),
            Err(error) if !is_exclusive && is_to_rerun(&error) => {
                tracing::debug!(error = %error.in_log(), attempt, site = %at, "a session is run again");
            }
            Err(error) => return Err(error),
        }
        core.counters.reruns.add(1);
        if attempt > 0 {
            timer::sleep_until(Instant::now() + pause(attempt)).await;
        }
        attempt += 1;
    }
}

fn is_to_rerun(error: &Error) -> bool {
    error.is_lost_session() || error.kind() == ErrorKind::CommitTimeout
}

/// Drawn at random, so that those who met do not meet again.
fn pause(attempt: u32) -> Duration {
    let most = PAUSE
        .saturating_mul(1 << attempt.min(16))
        .min(MOST_PAUSE)
        .as_nanos();
    let drawn = crate::engine::ffi::randomness(8)
        .try_into()
        .map_or(0, u64::from_ne_bytes);
    let most = u64::try_from(most).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos(drawn % most)
}

impl Heats {
    /// Whether the next call at this place goes to the queue.
    fn is_hot(&self, site: Site) -> bool {
        self.lock().get_mut(&site).is_some_and(Heat::takes_call)
    }

    /// A session of this place has ended.
    fn note(&self, site: Site, conflicted: bool) {
        let mut heats = self.lock();
        match heats.get_mut(&site) {
            Some(heat) => heat.note(conflicted),
            None if conflicted => {
                let mut heat = Heat::new();
                heat.note(true);
                heats.insert(site, heat);
            }
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Site, Heat>> {
        self.heats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heat {
    const fn new() -> Self {
        Self {
            conflicts: 0.0,
            exclusive: 0,
            last: 0,
        }
    }

    fn takes_call(&mut self) -> bool {
        let is_hot = self.exclusive > 0;
        self.exclusive = self.exclusive.saturating_sub(1);
        is_hot
    }

    fn note(&mut self, conflicted: bool) {
        let share = if conflicted { 1.0 } else { 0.0 };
        self.conflicts += WEIGHT * (share - self.conflicts);
        if self.exclusive > 0 {
            // Sessions that were under way when it was found to be hot.
            return;
        }
        if self.conflicts > HOT {
            self.last = (self.last * 2).clamp(LEAST_CALLS, MOST_CALLS);
            self.exclusive = self.last;
            // The next session decides: one more conflict, and it is hot again, for longer.
            self.conflicts = HOT;
        } else if !conflicted {
            self.last = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::rerun::{Heat, LEAST_CALLS, MOST_CALLS};

    fn calls_to_queue(heat: &mut Heat) -> u32 {
        let mut calls = 0;
        while heat.takes_call() {
            calls += 1;
        }
        calls
    }

    #[test]
    fn now_and_then_a_conflict_keeps_a_place_in_sessions() {
        let mut heat = Heat::new();
        for session in 0..100 {
            heat.note(session % 3 == 0);
        }
        assert!(!heat.takes_call());
    }

    #[test]
    fn a_place_that_keeps_conflicting_goes_to_the_queue_for_longer_and_longer() {
        let mut heat = Heat::new();
        while heat.exclusive == 0 {
            heat.note(true);
        }
        assert_eq!(calls_to_queue(&mut heat), LEAST_CALLS);
        for round in 1..12 {
            heat.note(true);
            assert_eq!(
                calls_to_queue(&mut heat),
                (LEAST_CALLS << round).min(MOST_CALLS)
            );
        }
    }

    #[test]
    fn sessions_that_go_well_cool_a_place_down() {
        let mut heat = Heat::new();
        while heat.exclusive == 0 {
            heat.note(true);
        }
        calls_to_queue(&mut heat);
        heat.note(false);
        heat.note(false);
        heat.note(true);
        assert!(!heat.takes_call());
        heat.note(true);
        assert_eq!(calls_to_queue(&mut heat), LEAST_CALLS);
    }
}
