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

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

/// One poll, which leaves the task's own waker with the future.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
