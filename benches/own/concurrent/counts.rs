//! What the library counted while sessions ran.

use std::time::Duration;

use crate::measure::Run;

/// The sizes that the library tells apart.
const SIZES: [&str; 8] = ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-"];

/// Sums over runs.
#[derive(Debug, Default)]
struct Counts {
    sessions: u64,
    conflicts: u64,
    reruns: u64,
    exclusive: u64,
    replays: u64,
    statements: u64,
    replay_time: Duration,
    sizes: [u64; 8],
}

/// Lines that say how sessions fared in these runs.
pub(in crate::concurrent) fn lines(runs: &[Run]) -> String {
    let counts = Counts::of(runs);
    let operations: usize = runs.iter().map(|run| run.operations.count()).sum();
    let of_all = |count: u64| 100.0 * count as f64 / operations.max(1) as f64;
    let micros = |each: u64| counts.replay_time.as_secs_f64() * 1e6 / each.max(1) as f64;
    let sizes = SIZES.iter().zip(counts.sizes);
    let sizes: Vec<_> = sizes
        .filter(|(_, commits)| *commits > 0)
        .map(|(size, commits)| format!("{commits} of {size}"))
        .collect();
    format!(
        "  sessions: {} begun, {} in conflict, {} run again ({:.1} % of the operations), {} run exclusively ({:.1} %)\n  \
         merge: {:.1} us a session, {:.1} us a statement; commits by size: {}\n",
        counts.sessions,
        counts.conflicts,
        counts.reruns,
        of_all(counts.reruns),
        counts.exclusive,
        of_all(counts.exclusive),
        micros(counts.replays),
        micros(counts.statements),
        if sizes.is_empty() {
            "none".to_owned()
        } else {
            sizes.join(", ")
        },
    )
}

impl Counts {
    fn of(runs: &[Run]) -> Self {
        let mut counts = Self::default();
        for (before, after) in runs.iter().filter_map(|run| run.statistics.as_ref()) {
            counts.sessions += after.sessions - before.sessions;
            counts.conflicts += after.session_conflicts - before.session_conflicts;
            counts.reruns += after.reruns - before.reruns;
            counts.exclusive += after.exclusive_runs - before.exclusive_runs;
            counts.replays += after.replays - before.replays;
            counts.statements += after.replayed_statements - before.replayed_statements;
            counts.replay_time += after.replay_time - before.replay_time;
            for (size, sum) in counts.sizes.iter_mut().enumerate() {
                *sum += after.group_sizes[size] - before.group_sizes[size];
            }
        }
        counts
    }
}
