//! A task that wants to run every millisecond: how late it runs is what neighbours of the measured tasks suffer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, task::JoinHandle};

use crate::{Latencies, Result, pause_until};

const BEAT: Duration = Duration::from_millis(1);

/// A running heartbeat.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Latencies>,
}

impl Heartbeat {
    /// Starts a heartbeat on a runtime.
    #[must_use]
    pub fn start(runtime: &Handle) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let task = runtime.spawn(beat(Arc::clone(&stop)));
        Self { stop, task }
    }

    /// Ends it; returns how late each beat was.
    ///
    /// # Errors
    ///
    /// When the task ended by itself.
    pub async fn stop(self) -> Result<Latencies> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}

async fn beat(stop: Arc<AtomicBool>) -> Latencies {
    let mut late = Latencies::default();
    let mut due = Instant::now() + BEAT;
    while !stop.load(Ordering::Relaxed) {
        pause_until(due).await;
        // Each beat that a long delay swallowed was late too: one entry for all would hide it.
        let now = Instant::now();
        while due <= now {
            late.push(now - due);
            due += BEAT;
        }
    }
    late
}
