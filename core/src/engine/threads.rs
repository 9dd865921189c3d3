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
        let mut state = self.shared.lock();
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() {
            self.shared.work.notify_one();
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        // Under the lock, so that the last job is still this one if there is no thread to be had.
        let started = std::thread::Builder::new()
            .name("anabranch".to_owned())
            .spawn(move || shared.work());
        match started {
            Ok(_) => Ok(()),
            Err(error) => {
                // The job's owner is told by the job's own drop.
                let job = state.jobs.pop_back();
                drop(state);
                drop(job);
                Err(Error::new(
                    ErrorKind::OutOfMemory,
                    "the operating system gave no thread",
                )
                .with_source(error))
            }
        }
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
    fn work(&self) {
        loop {
            let mut state = self.lock();
            let job = loop {
                if let Some(job) = state.jobs.pop_front() {
                    break job;
                }
                if state.ended {
                    return;
                }
                state.idle += 1;
                let (woken, timeout) = self
                    .work
                    .wait_timeout(state, KEEP)
                    .unwrap_or_else(PoisonError::into_inner);
                state = woken;
                state.idle -= 1;
                if timeout.timed_out() && state.jobs.is_empty() {
                    return;
                }
            };
            drop(state);
            // A job answers its owner when it is dropped; a panic in it must not take the thread's count along.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            if outcome.is_err() {
                tracing::error!("a job on a thread of the library panicked");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    use crate::engine::threads::{KEEP, Threads};

    #[test]
    fn idle_threads_end_when_there_is_no_more_work_for_them() {
        let threads = Threads::default();
        for _ in 0..4 {
            threads.run(|| {}).unwrap();
        }
        let shared = Arc::downgrade(&threads.shared);
        drop(threads);
        let began = Instant::now();
        while shared.strong_count() > 0 {
            assert!(began.elapsed() < KEEP - Duration::from_secs(2));
            std::thread::yield_now();
        }
    }
}
