//! Deadlines that need no runtime's timer: one thread a process, started at the first use.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    future::poll_fn,
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
    time::Instant,
};

use crate::engine::wake::wake;

/// So many deadlines are not worth tidying.
const FEW: usize = 64;

#[derive(Default)]
struct Timer {
    state: Mutex<State>,
    earlier: Condvar,
}

#[derive(Default)]
struct State {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    wakers: std::collections::HashMap<u64, (Waker, Arc<AtomicBool>)>,
    next: u64,
}

static TIMER: OnceLock<Option<Arc<Timer>>> = OnceLock::new();

/// Waits until a moment. Cancel safe. Without a thread to be had it waits for ever: whoever waits beside it decides.
pub(in crate::engine) async fn sleep_until(deadline: Instant) {
    let Some(timer) = TIMER.get_or_init(Timer::start) else {
        return std::future::pending().await;
    };
    let fired = Arc::new(AtomicBool::new(false));
    let mut entry = Registered {
        timer,
        number: None,
    };
    poll_fn(|context| {
        if fired.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let number = timer.register(entry.number, deadline, context.waker(), &fired);
        entry.number = Some(number);
        if fired.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Takes its waker out when dropped.
struct Registered<'a> {
    timer: &'a Timer,
    number: Option<u64>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.timer.lock();
        let waker = state.wakers.remove(&number);
        state.tidy();
        // A waker may do anything when it is dropped or woken, so neither happens under the lock.
        drop(state);
        drop(waker);
    }
}

impl State {
    /// Forgets deadlines that nobody waits for. Nearly all waits end early, and their deadlines may be weeks away.
    fn tidy(&mut self) {
        if self.heap.len() > 2 * self.wakers.len() + FEW {
            let wakers = &self.wakers;
            self.heap
                .retain(|Reverse((_, number))| wakers.contains_key(number));
        }
    }
}

impl Timer {
    fn start() -> Option<Arc<Self>> {
        let timer = Arc::new(Self::default());
        let runs = Arc::clone(&timer);
        std::thread::Builder::new()
            .name("anabranch-timer".to_owned())
            .spawn(move || runs.run())
            .ok()
            .map(|_| timer)
    }

    fn register(
        &self,
        known: Option<u64>,
        deadline: Instant,
        waker: &Waker,
        fired: &Arc<AtomicBool>,
    ) -> u64 {
        let mut state = self.lock();
        let number = known.unwrap_or_else(|| {
            state.next += 1;
            let number = state.next;
            state.heap.push(Reverse((deadline, number)));
            self.earlier.notify_one();
            number
        });
        let before = state
            .wakers
            .insert(number, (waker.clone(), Arc::clone(fired)));
        drop(state);
        drop(before);
        number
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let mut due = Vec::new();
            while let Some(Reverse((deadline, number))) = state.heap.peek().copied()
                && deadline <= now
            {
                state.heap.pop();
                if let Some((waker, fired)) = state.wakers.remove(&number) {
                    fired.store(true, Ordering::Release);
                    due.push(waker);
                }
            }
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(wake);
                state = self.lock();
                continue;
            }
            let next = state.heap.peek().map(|Reverse((deadline, _))| *deadline);
            state = match next {
                Some(deadline) => {
                    self.earlier
                        .wait_timeout(state, deadline.saturating_duration_since(now))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .earlier
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Waker},
        time::{Duration, Instant},
    };

    use crate::engine::timer::{FEW, TIMER, sleep_until};

    #[test]
    fn deadlines_that_nobody_waits_for_are_forgotten() {
        let far = Instant::now() + Duration::from_secs(3600);
        for _ in 0..100_000 {
            let mut sleep = Box::pin(sleep_until(far));
            let mut context = Context::from_waker(Waker::noop());
            assert!(sleep.as_mut().poll(&mut context).is_pending());
        }
        let timer = TIMER.get().unwrap().as_ref().unwrap();
        assert!(timer.lock().heap.len() < 10 * FEW);
    }
}
