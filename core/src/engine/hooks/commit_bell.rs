//! Tells whoever waits for a commit that there was one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Notify, futures::OwnedNotified};

/// Rung by every commit of a connection of this process that writes, and when there will be none any more. Costs a load while nobody listens.
#[derive(Debug, Default)]
pub(in crate::engine) struct CommitBell {
    listeners: AtomicUsize,
    bell: Arc<Notify>,
}

impl CommitBell {
    /// What is committed is visible to others by now.
    pub(in crate::engine) fn ring(&self) {
        if self.listeners.load(Ordering::SeqCst) > 0 {
            self.bell.notify_waiters();
        }
    }

    pub(in crate::engine) fn join(&self) {
        self.listeners.fetch_add(1, Ordering::SeqCst);
    }

    pub(in crate::engine) fn leave(&self) {
        self.listeners.fetch_sub(1, Ordering::SeqCst);
    }

    /// Hears every commit from now on, polled or not.
    pub(in crate::engine) fn heard(&self) -> OwnedNotified {
        Arc::clone(&self.bell).notified_owned()
    }
}
