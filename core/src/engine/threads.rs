//! Threads for what may take long: reads without bounds, streams, waiting for another process.
//!
//! They belong to no runtime, are started when needed, and end after a while without work.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use crate::error::{Error, ErrorKind, Result};

type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for work before it ends.
const KEEP: Duration = Duration::from_secs(10);

/// Threads that run one job after the other.
#[derive(Debug, Default)]
pub(in crate::engine) struct Threads {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// For threads that are idle; each new thread brings its first job along.
    jobs: VecDeque<Job>,
    idle: usize,
    /// Nobody has work any more.
    ended: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl Threads {
    /// Runs a job on a thread: an idle one, or a new one. How many there are is bounded by who asks: a job
    /// holds a read connection or the writer's slot.
    pub(in crate::engine) fn run(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        // What it tells belongs to what asked for it.
        let span = tracing::Span::current();
        let job: Job = Box::new(move || span.in_scope(job));
        let mut state = self.shared.lock();
        if state.idle > state.jobs.len() {
            state.jobs.push_back(job);
            self.shared.work.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.shared);
        // Without a thread the job is dropped with the closure, which tells its owner.
        let started = std::thread::Builder::new()
            .name("anabranch".to_owned())
            .spawn(move || shared.work(job));
        started.map(drop).map_err(|error| {
            let refused = "the operating system gave no thread";
            Error::new(ErrorKind::OutOfMemory, refused).with_source(error)
        })
    }
}

impl Drop for Threads {
    /// Idle threads end at once: whoever opens and closes one file after the other would gather them.
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    /// Does a job, and then whatever there is to do.
    fn work(&self, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            // A job answers its owner when it is dropped; a panic in it must not take the thread's count along.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            if outcome.is_err() {
                tracing::error!("a job on a thread of the library panicked");
            }
            next = self.next();
        }
    }

    /// Waits for a job; none if it took too long.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.ended {
                return None;
            }
            state.idle += 1;
            let (woken, timeout) = self
                .work
                .wait_timeout(state, KEEP)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                return None;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
