//! An async pause as precise as `thread::sleep`.
//!
//! Tokio's timer works in steps of a millisecond, so a pause of 200 us would
//! last one to two milliseconds in async peers and 0.25 ms in synchronous ones.
//! One timer thread that sleeps until the next wake-up time gives both the same
//! pause.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

struct Entry(Instant, Waker);
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

#[derive(Default)]
struct Timer {
    waiting: Mutex<BinaryHeap<Reverse<Entry>>>,
    changed: Condvar,
}

fn timer() -> &'static Timer {
    static TIMER: OnceLock<&'static Timer> = OnceLock::new();
    TIMER.get_or_init(|| {
        let timer: &'static Timer = Box::leak(Box::default());
        std::thread::Builder::new()
            .name("peerkit-timer".into())
            .spawn(move || {
                let mut waiting = timer.waiting.lock().unwrap();
                loop {
                    let now = Instant::now();
                    while waiting.peek().is_some_and(|Reverse(entry)| entry.0 <= now) {
                        waiting.pop().unwrap().0.1.wake();
                    }
                    waiting = match waiting.peek().map(|Reverse(entry)| entry.0 - now) {
                        Some(rest) => timer.changed.wait_timeout(waiting, rest).unwrap().0,
                        None => timer.changed.wait(waiting).unwrap(),
                    };
                }
            })
            .unwrap();
        timer
    })
}

struct Pause(Instant);

impl Future for Pause {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.0 {
            return Poll::Ready(());
        }
        let timer = timer();
        timer
            .waiting
            .lock()
            .unwrap()
            .push(Reverse(Entry(self.0, cx.waker().clone())));
        timer.changed.notify_one();
        Poll::Pending
    }
}

/// Waits `us` microseconds without holding a thread; 0 does not wait at all.
pub async fn pause(us: u64, tokio_timer: bool) {
    if us == 0 {
        return;
    }
    let duration = Duration::from_micros(us);
    if tokio_timer {
        tokio::time::sleep(duration).await;
    } else {
        Pause(Instant::now() + duration).await;
    }
}
