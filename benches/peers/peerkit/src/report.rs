//! The one line of JSON that a run prints, however it ends.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::measure::{
    ERRORS, LATENCIES, MESSAGES, NOTES, OPS, RETRIES, STARTED, TIMED, failed, max_rss_kb, note,
};
use crate::{BUSY_TIMEOUT, Config};

/// What came out of a run; the counts are taken from where they were kept.
pub(crate) struct Report<'a> {
    pub config: &'a Config,
    pub seconds: f64,
    /// Operations per success: 100,000 rows make one bulk success.
    pub ops: u64,
    pub max_rss_kb: u64,
    pub expected_rows: Option<u64>,
    pub found_rows: Option<i64>,
    pub lost_updates: Option<i64>,
}

impl Report<'_> {
    pub fn print(self) {
        let mut notes = NOTES.lock().unwrap().clone();
        for (message, times) in MESSAGES.lock().unwrap().iter() {
            notes.push(format!("{times}x {message}"));
        }
        let errors = ERRORS.load(Relaxed);
        if let (Some(expected), Some(found)) = (self.expected_rows, self.found_rows)
            && expected as i64 != found
        {
            notes.push(format!(
                "ROWS: {expected} acknowledged, {found} in the table"
            ));
        }
        if let Some(lost) = self.lost_updates
            && lost != 0
        {
            notes.push(format!("LOST UPDATES: {lost}"));
        }
        let mut latencies = std::mem::take(&mut *LATENCIES.lock().unwrap());
        latencies.sort_unstable();
        let at = |q: f64| {
            latencies
                .get(((latencies.len() as f64 * q) as usize).min(latencies.len().wrapping_sub(1)))
        };
        let mut out = String::new();
        let _ = write!(
            out,
            "{{\"peer\":{},\"workload\":{},\"sync\":\"{}\",\"ops\":{},\"seconds\":{:.6},\
             \"ops_per_s\":{:.1},\"errors\":{},\"retries\":{},\"notes\":{},\"max_rss_kb\":{}",
            json(&self.config.peer),
            json(&self.config.workload),
            self.config.sync.as_sql().to_lowercase(),
            self.ops,
            self.seconds,
            if self.seconds > 0.0 {
                self.ops as f64 / self.seconds
            } else {
                0.0
            },
            errors,
            RETRIES.load(Relaxed),
            json(&notes.join("; ")),
            self.max_rss_kb,
        );
        for (key, value) in [
            ("p50_us", at(0.5)),
            ("p99_us", at(0.99)),
            ("max_us", latencies.last()),
        ] {
            if let Some(value) = value {
                let _ = write!(out, ",\"{key}\":{value}");
            }
        }
        if let Some(rows) = self.expected_rows {
            let _ = write!(out, ",\"expected_rows\":{rows}");
        }
        if let Some(rows) = self.found_rows {
            let _ = write!(out, ",\"found_rows\":{rows}");
        }
        if let Some(lost) = self.lost_updates {
            let _ = write!(out, ",\"lost_updates\":{lost}");
        }
        out.push('}');
        println!("{out}");
    }
}

fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Reports what was done if the run hangs long past its deadline, and ends the
/// process, so that one stuck library does not stop the whole comparison.
pub(crate) fn watchdog(config: &Config) {
    let config = config.clone();
    std::thread::spawn(move || {
        let begun = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let from = STARTED.lock().unwrap().unwrap_or(begun);
            if from.elapsed() > config.deadline + BUSY_TIMEOUT + Duration::from_secs(15) {
                note(if TIMED.load(Relaxed) {
                    "HUNG: ended by the watchdog"
                } else {
                    "HUNG before the timed part"
                });
                Report {
                    config: &config,
                    seconds: from.elapsed().as_secs_f64(),
                    ops: OPS.load(Relaxed),
                    max_rss_kb: max_rss_kb(),
                    expected_rows: None,
                    found_rows: None,
                    lost_updates: None,
                }
                .print();
                std::process::exit(3);
            }
        }
    });
}

/// Panics are counted as errors; their text goes into the notes.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}");
        let text = info.to_string().replace('\n', " ");
        note(format!(
            "PANIC {}",
            text.chars().take(200).collect::<String>()
        ));
    }));
}

/// Prints a report of a run that could not be done at all.
pub(crate) fn could_not(config: &Config, what: &str, error: impl Debug) -> ! {
    failed(&format!("{what}: {error:?}"));
    Report {
        config,
        seconds: 0.0,
        ops: 0,
        max_rss_kb: max_rss_kb(),
        expected_rows: None,
        found_rows: None,
        lost_updates: None,
    }
    .print();
    std::process::exit(1)
}
