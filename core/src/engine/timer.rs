//! Deadlines that need no runtime's timer: one thread a process, started at the first use.
//!
//! The list holds what is still waited for and nothing else: whoever stops waiting takes its entry out, and whoever
//! does not find its entry any more knows that its moment has come. Wakers are somebody else's code: they are called
//! and dropped without the lock, since a waker may drop the very future that it wakes.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
    time::Instant,
};

use crate::engine::wake::wake;

#[derive(Default)]
struct Timer {
    state: Mutex<State>,
    /// Told when a deadline comes before all others.
    earlier: Condvar,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Entry, Waker>,
    entries: u64,
}

/// The deadline, and a number that tells equal ones apart.
type Entry = (Instant, u64);

static TIMER: OnceLock<Option<Arc<Timer>>> = OnceLock::new();

/// Waits until a moment. Cancel safe. Without a thread to be had it waits for ever: whoever waits beside it decides.
pub(in crate::engine) async fn sleep_until(deadline: Instant) {
    match TIMER.get_or_init(Timer::start) {
        Some(timer) => timer.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Wakes at a moment, without anything that could be dropped before. Without a thread to be had it never does.
pub(in crate::engine) fn wake_at(deadline: Instant, waker: Waker) {
    if let Some(timer) = TIMER.get_or_init(Timer::start) {
        timer.add(deadline, waker);
    }
}

/// A wait for a deadline, which takes its entry out when dropped.
struct Sleep<'a> {
    timer: &'a Timer,
    deadline: Instant,
    entry: Option<Entry>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        match self.entry {
            None => self.entry = Some(self.timer.add(self.deadline, waker)),
            Some(entry) if self.timer.renew(entry, waker) => {}
            Some(_) => return Poll::Ready(()),
        }
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            let waker = self.timer.lock().waiting.remove(&entry);
            drop(waker);
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

    const fn sleep_until(&self, deadline: Instant) -> Sleep<'_> {
        Sleep {
            timer: self,
            deadline,
            entry: None,
        }
    }

    fn add(&self, deadline: Instant, waker: Waker) -> Entry {
        let mut state = self.lock();
        state.entries += 1;
        let entry = (deadline, state.entries);
        let first = state.waiting.first_key_value();
        if first.is_none_or(|(first, _)| entry < *first) {
            self.earlier.notify_one();
        }
        state.waiting.insert(entry, waker);
        entry
    }

    /// Whether the entry is still waited for; if so, by this waker from now on.
    fn renew(&self, entry: Entry, waker: Waker) -> bool {
        let mut state = self.lock();
        let Some(known) = state.waiting.get_mut(&entry) else {
            return false;
        };
        let replaced = std::mem::replace(known, waker);
        drop(state);
        drop(replaced);
        true
    }

    fn run(&self) {
        loop {
            self.wake_due(Instant::now());
            let state = self.lock();
            let first = state.waiting.first_key_value();
            match first.map(|((deadline, _), _)| *deadline) {
                Some(deadline) => {
                    let rest = deadline.saturating_duration_since(Instant::now());
                    drop(self.earlier.wait_timeout(state, rest));
                }
                None => drop(self.earlier.wait(state)),
            }
        }
    }

    fn wake_due(&self, now: Instant) {
        let due = {
            let mut state = self.lock();
            let later = state.waiting.split_off(&(now, u64::MAX));
            std::mem::replace(&mut state.waiting, later)
        };
        due.into_values().for_each(wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        task::{Context, Poll, Wake, Waker},
        time::{Duration, Instant},
    };

    use crate::engine::timer::{Timer, sleep_until};

    /// Counts how often it was woken while the timer was not locked.
    struct Count {
        timer: Arc<Timer>,
        free: AtomicU32,
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            if self.timer.state.try_lock().is_ok() {
                self.free.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn a_wait_that_is_dropped_leaves_nothing_behind() {
        let timer = Timer::default();
        let context = &mut Context::from_waker(Waker::noop());
        let far = Instant::now() + Duration::from_secs(60);
        for _ in 0..100 {
            let mut sleep = pin!(timer.sleep_until(far));
            assert_eq!(sleep.as_mut().poll(context), Poll::Pending);
            assert_eq!(sleep.as_mut().poll(context), Poll::Pending);
            assert_eq!(timer.lock().waiting.len(), 1);
        }
        assert!(timer.lock().waiting.is_empty());
    }

    #[test]
    fn who_is_due_is_woken_without_the_lock_and_the_others_wait_on() {
        let timer = Arc::new(Timer::default());
        let count = Arc::new(Count {
            timer: Arc::clone(&timer),
            free: AtomicU32::new(0),
        });
        let waker = Waker::from(Arc::clone(&count));
        let context = &mut Context::from_waker(&waker);
        let now = Instant::now();
        let mut due = pin!(timer.sleep_until(now));
        let mut as_due = pin!(timer.sleep_until(now));
        let mut later = pin!(timer.sleep_until(now + Duration::from_millis(1)));
        assert_eq!(due.as_mut().poll(context), Poll::Pending);
        assert_eq!(as_due.as_mut().poll(context), Poll::Pending);
        assert_eq!(later.as_mut().poll(context), Poll::Pending);
        timer.wake_due(now);
        assert_eq!(count.free.load(Ordering::Relaxed), 2);
        assert_eq!(due.as_mut().poll(context), Poll::Ready(()));
        assert_eq!(as_due.as_mut().poll(context), Poll::Ready(()));
        assert_eq!(later.as_mut().poll(context), Poll::Pending);
    }

    #[tokio::test]
    async fn a_deadline_that_comes_before_another_is_kept() {
        let began = Instant::now();
        let mut far = pin!(sleep_until(began + Duration::from_secs(600)));
        let context = &mut Context::from_waker(Waker::noop());
        assert_eq!(far.as_mut().poll(context), Poll::Pending);
        sleep_until(began + Duration::from_millis(2)).await;
        assert!(began.elapsed() >= Duration::from_millis(2));
    }
}
