//! Pauses without a thread of their own that are as precise as a sleeping thread.
//!
//! The runtime's timer has steps of a millisecond: it makes one to two milliseconds of 200 microseconds. Here a
//! thread sleeps until the earliest moment that anybody waits for.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::{Duration, Instant},
};

/// Waits for so long; a pause of zero does not wait at all.
pub async fn pause(duration: Duration) {
    if !duration.is_zero() {
        pause_until(Instant::now() + duration).await;
    }
}

/// Waits until a moment.
pub async fn pause_until(moment: Instant) {
    poll_fn(|context| {
        if Instant::now() >= moment {
            return Poll::Ready(());
        }
        TIMER.wake_at(moment, context.waker().clone());
        Poll::Pending
    })
    .await;
}

static TIMER: LazyLock<Arc<Timer>> = LazyLock::new(Timer::start);

#[derive(Default)]
struct Timer {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// The latest first, so that the earliest is popped from the end; the number tells equal moments apart.
    wakers: BTreeMap<Reverse<(Instant, u64)>, Waker>,
    number: u64,
}

impl Timer {
    #[allow(
        clippy::expect_used,
        reason = "a benchmark without its timer's thread has nothing to go on with"
    )]
    fn start() -> Arc<Self> {
        let timer = Arc::new(Self::default());
        let runs = Arc::clone(&timer);
        std::thread::Builder::new()
            .name("bench-timer".to_owned())
            .spawn(move || runs.run())
            .expect("the operating system gives a thread");
        timer
    }

    fn wake_at(&self, moment: Instant, waker: Waker) {
        let mut waiting = self.lock();
        waiting.number += 1;
        let number = waiting.number;
        waiting.wakers.insert(Reverse((moment, number)), waker);
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut waiting = self.lock();
        loop {
            let now = Instant::now();
            let mut next = None;
            while let Some(earliest) = waiting.wakers.last_entry() {
                let Reverse((moment, _)) = *earliest.key();
                if moment > now {
                    next = Some(moment - now);
                    break;
                }
                earliest.remove().wake();
            }
            waiting = match next {
                Some(rest) => self
                    .changed
                    .wait_timeout(waiting, rest)
                    .map_or_else(|poisoned| poisoned.into_inner().0, |(waiting, _)| waiting),
                None => self
                    .changed
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_does_not_end_early() {
        for micros in [0, 50, 200, 2000] {
            let duration = Duration::from_micros(micros);
            let began = Instant::now();
            pause(duration).await;
            assert!(began.elapsed() >= duration);
        }
    }
}
