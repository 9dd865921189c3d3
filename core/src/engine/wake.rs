//! Waking tasks, of which this crate knows nothing.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

/// Wakes a task. Whoever leads wakes tasks of others: a waker that panics must not end what is done for all of them.
pub(in crate::engine) fn wake(waker: Waker) {
    if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
        tracing::error!("the waker of a task panicked");
    }
}
