//! What is counted while a workload runs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::{Config, Res};

/// Counts of the run in progress. Global, so that the watchdog can report what
/// was done when a library hangs.
pub(crate) static OPS: AtomicU64 = AtomicU64::new(0);
pub(crate) static RETRIES: AtomicU64 = AtomicU64::new(0);
pub(crate) static ERRORS: AtomicU64 = AtomicU64::new(0);
pub(crate) static TIMED: AtomicBool = AtomicBool::new(false);
pub(crate) static MESSAGES: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
pub(crate) static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());
pub(crate) static LATENCIES: Mutex<Vec<u32>> = Mutex::new(Vec::new());
pub(crate) static STARTED: Mutex<Option<Instant>> = Mutex::new(None);

/// A note for the report, from a peer or the runner.
pub fn note(text: impl Into<String>) {
    let text = text.into();
    let mut notes = NOTES.lock().unwrap();
    if !notes.contains(&text) {
        notes.push(text);
    }
}

pub(crate) fn failed(message: &str) {
    ERRORS.fetch_add(1, Relaxed);
    let mut text = message.replace('\n', " ");
    if text.len() > 160 {
        text = text.chars().take(160).collect();
    }
    *MESSAGES.lock().unwrap().entry(text).or_insert(0) += 1;
}

/// Counts the result of one operation and returns its time in microseconds.
pub(crate) fn settle<T>(from: Instant, result: Res<T>, retries: impl FnOnce(&T) -> u64) -> u32 {
    let micros = from.elapsed().as_micros().min(u32::MAX as u128) as u32;
    match result {
        Ok(value) => {
            RETRIES.fetch_add(retries(&value), Relaxed);
            OPS.fetch_add(1, Relaxed);
        }
        Err(error) => failed(&error.to_string()),
    }
    micros
}

pub(crate) fn keep_latencies(mut of_task: Vec<u32>) {
    LATENCIES.lock().unwrap().append(&mut of_task);
}

/// Marks the start of the timed part: forgets the peak memory of seeding.
pub(crate) fn start_clock(config: &Config) -> Clock {
    // "5" resets the peak resident set size (VmHWM) to the present one.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let start = Instant::now();
    *STARTED.lock().unwrap() = Some(start);
    TIMED.store(true, Relaxed);
    Clock {
        start,
        deadline: start + config.deadline,
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Clock {
    pub start: Instant,
    pub deadline: Instant,
}

impl Clock {
    /// False once the deadline has passed (and notes that).
    pub fn running(&self) -> bool {
        let running = Instant::now() < self.deadline;
        if !running {
            note("stopped at the deadline");
        }
        running
    }
}

/// The peak memory since the clock was started, in KiB.
pub(crate) fn max_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap_or(0)
}
