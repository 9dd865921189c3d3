//! The figures of one workload as a table.

use std::time::Duration;

use workload::{Latencies, median, quantity};

use crate::measure::Run;

const PARTS: [usize; 3] = [500, 990, 999];

/// A table of the runs of each contender, by name.
pub(crate) fn table(title: &str, unit: &str, rows: &[(&str, &[Run])]) -> String {
    let mut table = format!(
        "{title}\n  {:<24}{:>12}   {:>8}{:>8}{:>8}   {:>8}{:>8}{:>8}\n",
        "", unit, "p50", "p99", "p99.9", "beat p50", "p99", "p99.9"
    );
    for (name, runs) in rows {
        let per_second = median(runs.iter().map(|run| run.per_second));
        let operations = of_all(runs, |run| &run.operations);
        let beats = of_all(runs, |run| &run.beats);
        table += &format!(
            "  {name:<24}{:>12}   {operations}   {beats}\n",
            quantity(per_second)
        );
    }
    table
}

/// The quantiles over all runs.
fn of_all(runs: &[Run], which: fn(&Run) -> &Latencies) -> String {
    let mut all = Latencies::default();
    for run in runs {
        all.append(which(run).clone());
    }
    all.per_mille(PARTS).map(cell).concat()
}

fn cell(duration: Option<Duration>) -> String {
    format!("{:>8}", latency(duration))
}

/// For people: two digits or more, in micro- or milliseconds.
pub(crate) fn latency(latency: Option<Duration>) -> String {
    let Some(latency) = latency else {
        return "-".to_owned();
    };
    let micros = latency.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{} us", digits(micros))
    } else {
        format!("{} ms", digits(micros / 1000.0))
    }
}

fn digits(number: f64) -> String {
    let decimals = if number < 10.0 { 1 } else { 0 };
    format!("{number:.decimals$}")
}
