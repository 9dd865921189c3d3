//! Keeps new snapshots, streams and sessions waiting for a moment, so that the log can start anew.
//!
//! Where readers follow one another there is always one in the way. Those that are open may end first; whoever comes
//! meanwhile waits, for no longer than until a moment that is told when the gate is closed: a checkpoint that has to
//! queue for the writer keeps no reader waiting. Queries of one statement do not wait: they are short, or would not be
//! let go of sooner for it.

use std::{pin::pin, time::Instant};

use futures_util::future::select;
use tokio::sync::watch;

use crate::engine::timer;

/// The gate, and until when it is closed.
#[derive(Debug)]
pub(in crate::engine) struct ReaderGate {
    until: watch::Sender<Option<Instant>>,
}

/// Keeps the gate closed until it is dropped.
#[derive(Debug)]
pub(in crate::engine) struct ClosedReaderGate<'a>(&'a watch::Sender<Option<Instant>>);

impl Drop for ClosedReaderGate<'_> {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

impl ReaderGate {
    pub(in crate::engine) fn new() -> Self {
        Self {
            until: watch::Sender::new(None),
        }
    }

    pub(in crate::engine) fn close(&self, until: Instant) -> ClosedReaderGate<'_> {
        self.until.send_replace(Some(until));
        ClosedReaderGate(&self.until)
    }

    /// Waits while the gate is closed. Cancel safe.
    pub(in crate::engine) async fn pass(&self) {
        let Some(until) = *self.until.borrow() else {
            return;
        };
        let mut gate = self.until.subscribe();
        let opened = pin!(gate.wait_for(Option::is_none));
        let patience = pin!(timer::sleep_until(until));
        drop(select(opened, patience).await);
    }
}
