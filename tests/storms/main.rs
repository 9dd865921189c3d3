//! The library under load: two processes on one file, dropped futures, a burst, a save that nobody polls.
//!
//! Each test is short by default. `ANABRANCH_LONG=1` gives it its full length, `ANABRANCH_SEED` repeats one.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod burst;
mod dropped_calls;
mod dropped_futures;
mod futurelock;
mod processes;
mod sessions;
mod wal;

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Instant,
};

use anabranch_tests::random::Random;
use tokio::task::yield_now;

/// One poll, which leaves the task's own waker with the future.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// Polls a future for a while, and drops it; what it came to if it was faster.
async fn hurry<F: Future>(random: &mut Random, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match random.below(3) {
        // Again and again, woken by nobody.
        0 => (0..random.below(5)).find_map(|_| {
            let polled = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            match polled {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            }
        }),
        // For some turns of the runtime.
        1 => {
            let mut output = None;
            for _ in 0..random.below(8) {
                if let Poll::Ready(ready) = poll_once(future.as_mut()).await {
                    output = Some(ready);
                    break;
                }
                yield_now().await;
            }
            output
        }
        // For some time.
        _ => {
            let end = Instant::now() + random.micros(1500);
            loop {
                if let Poll::Ready(ready) = poll_once(future.as_mut()).await {
                    break Some(ready);
                }
                if Instant::now() > end {
                    break None;
                }
                yield_now().await;
            }
        }
    }
}
