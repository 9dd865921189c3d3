//! What the library counts about itself, and what it can say of the file.

mod feeds;
mod gauges;
mod handles;
mod health;
mod instruments;
pub(crate) mod span;
mod summary;
mod told;
mod wal;

pub(crate) use self::{
    feeds::{FeedGauges, FeedTold},
    gauges::{Gauges, PoolState},
    handles::{CounterHandle, HistogramHandle, Namespace},
    summary::Operation,
    told::{PassEnd, PoolTold, Told},
};
pub use self::{
    health::Health,
    instruments::{Instrument, InstrumentKind},
    wal::{WalOutcome, WalStatus},
};

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Serialize, Serializer};

/// A counter that only grows, and is told to the recorder too, if there is one and it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    count: AtomicU64,
    told: CounterHandle,
}

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.count.fetch_add(count, Ordering::Relaxed);
        self.told.add(count);
    }

    /// For what is not told.
    pub(crate) fn raise(&self, to: u64) {
        self.count.fetch_max(to, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Who holds the writer, or a state of the database that it reads.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let tx = db.begin().await?;
/// assert!(db.writer_holder().unwrap().label.starts_with("db.begin at "));
/// # tx.rollback().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Holder {
    /// What for, with the place in the application's source where that is known.
    pub label: String,
    /// For how long; `age_seconds` where it is serialized.
    #[serde(rename = "age_seconds", serialize_with = "seconds")]
    pub age: Duration,
}

/// A duration as a number, for what is not written in Rust.
fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// The counters of one engine.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// What is told beside them.
    pub(crate) told: Told,
    pub(crate) conflicts: Counter,
    pub(crate) bulk_rows: Counter,
    pub(crate) slow_statements: Counter,
    pub(crate) saves: Counter,
    pub(crate) groups: Counter,
    pub(crate) largest_group: Counter,
    pub(crate) group_sizes: [Counter; 8],
    pub(crate) waits: [Counter; 7],
    pub(crate) longest_wait_micros: Counter,
    pub(crate) refused: Counter,
    pub(crate) transactions: Counter,
    pub(crate) rolled_back: Counter,
    pub(crate) busy: Counter,
    pub(crate) foreign_commits: Counter,
    pub(crate) reads_inline: Counter,
    pub(crate) reads_threaded: Counter,
    pub(crate) over_budget: Counter,
    pub(crate) slow_inline: Counter,
    pub(crate) checkpoints: Counter,
    pub(crate) checkpoints_in_slot: Counter,
    pub(crate) passes_complete: Counter,
    pub(crate) passes_incomplete: Counter,
    pub(crate) held_back: Counter,
    pub(crate) old_readers: Counter,
    pub(crate) interrupted_readers: Counter,
    pub(crate) truncations: Counter,
    pub(crate) taken_over: Counter,
    pub(crate) sessions: Counter,
    pub(crate) session_conflicts: Counter,
    pub(crate) reruns: Counter,
    pub(crate) exclusive_runs: Counter,
    pub(crate) replays: Counter,
    pub(crate) replayed: Counter,
    pub(crate) replay_nanos: Counter,
    pub(crate) slow_begins: Counter,
}

/// What one open database has done since it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Saves that were committed.
    pub saves: u64,
    /// Commits that they took: saves that waited together share one.
    pub groups: u64,
    /// The most saves in one commit.
    pub largest_group: u64,
    /// How many commits had 1, 2, 3 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, and more saves.
    pub group_sizes: [u64; 8],
    /// How long the saves waited from `save_changes` to their answer: under 100 microseconds, 1, 10, 100 milliseconds,
    /// 1, 10 seconds, and longer.
    pub waits: [u64; 7],
    /// The longest of these waits.
    pub longest_wait: Duration,
    /// Saves that were refused, by a conflict, a constraint or an error.
    pub refused: u64,
    /// Those of them that lost a race: a row was not as it was read.
    pub conflicts: u64,
    /// Exclusive transactions that were committed.
    pub transactions: u64,
    /// Exclusive transactions that were rolled back, or dropped.
    pub rolled_back: u64,
    /// How often another process held the write lock when the writer wanted it.
    pub busy: u64,
    /// How often the writer found that another process had committed.
    pub foreign_commits: u64,
    /// Reads that ran on the task that asked.
    pub reads_inline: u64,
    /// Reads that ran on a thread.
    pub reads_threaded: u64,
    /// Reads that began inline and outgrew their budget.
    pub over_budget: u64,
    /// Inline calls that took over a millisecond.
    pub slow_inline: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Checkpoints that had to hold the writer, so that the log could start anew.
    pub checkpoints_in_slot: u64,
    /// Passes over the log that moved all of it.
    pub passes_complete: u64,
    /// Passes that left frames, or a log that cannot start anew, for a reader.
    pub passes_incomplete: u64,
    /// How often writers were held back, since the log was over its limit.
    pub held_back: u64,
    /// Readers that became older than they may.
    pub old_readers: u64,
    /// Those of them that were ended.
    pub interrupted_readers: u64,
    /// How often the log's file was cut since nobody wrote.
    pub truncations: u64,
    /// Saves that the writer's thread took over from a task that did not get to run.
    pub taken_over: u64,
    /// Sessions that were begun side by side with others.
    pub sessions: u64,
    /// Sessions that were found in conflict when they committed.
    pub session_conflicts: u64,
    /// How often the closure of `db.concurrent` was run again.
    pub reruns: u64,
    /// How often it was run as an exclusive transaction: after too many conflicts, or since it had many lately.
    pub exclusive_runs: u64,
    /// Sessions that the writer validated.
    pub replays: u64,
    /// Statements that it ran for that.
    pub replayed_statements: u64,
    /// How long it took for that.
    pub replay_time: Duration,
    /// Sessions whose snapshot had to be taken with the writer held, since commits came too fast.
    pub slow_begins: u64,
    /// Rows that bulk operations wrote.
    pub bulk_rows: u64,
    /// Statements that took longer than
    /// [`slow_statements`](crate::database::DatabaseBuilder::slow_statements).
    pub slow_statements: u64,
    /// Writes that a session attempted on the file, in this process: a fault of the library, and refused. To be
    /// watched: it is always 0.
    pub session_alarms: u64,
}

impl Counters {
    /// Those of a database, told to the recorder that is installed by now.
    pub(crate) fn of(namespace: Namespace<'_>) -> Self {
        let counter = |instrument| Counter {
            told: CounterHandle::of(instrument, namespace, &[]),
            ..Counter::default()
        };
        Self {
            told: Told::of(namespace),
            saves: counter(&instruments::UNITS),
            refused: counter(&instruments::UNITS_REFUSED),
            transactions: counter(&instruments::TRANSACTIONS),
            rolled_back: counter(&instruments::ROLLED_BACK),
            busy: counter(&instruments::BUSY),
            foreign_commits: counter(&instruments::FOREIGN_COMMITS),
            reads_inline: counter(&instruments::READS_INLINE),
            reads_threaded: counter(&instruments::READS_THREADED),
            over_budget: counter(&instruments::READS_OVER_BUDGET),
            slow_inline: counter(&instruments::READS_SLOW_INLINE),
            checkpoints: counter(&instruments::CHECKPOINTS),
            checkpoints_in_slot: counter(&instruments::CHECKPOINTS_IN_SLOT),
            held_back: counter(&instruments::HELD_BACK),
            old_readers: counter(&instruments::OLD_READERS),
            interrupted_readers: counter(&instruments::INTERRUPTED_READERS),
            truncations: counter(&instruments::TRUNCATIONS),
            taken_over: counter(&instruments::TAKEN_OVER),
            sessions: counter(&instruments::SESSIONS),
            session_conflicts: counter(&instruments::SESSION_CONFLICTS),
            reruns: counter(&instruments::RERUNS),
            exclusive_runs: counter(&instruments::EXCLUSIVE_RUNS),
            replayed: counter(&instruments::MERGE_STATEMENTS),
            slow_begins: counter(&instruments::SLOW_BEGINS),
            conflicts: counter(&instruments::CONFLICTS),
            bulk_rows: counter(&instruments::BULK_ROWS),
            slow_statements: counter(&instruments::SLOW_STATEMENTS),
            ..Self::default()
        }
    }

    /// A commit with this many saves; where all of a group were refused, there is none.
    pub(crate) fn group(&self, saves: usize) {
        if saves == 0 {
            return;
        }
        let saves = saves as u64;
        self.saves.add(saves);
        self.groups.add(1);
        self.largest_group.raise(saves);
        let class = (64 - saves.saturating_sub(1).leading_zeros()).min(7) as usize;
        self.group_sizes[class].add(1);
        self.told.group(saves);
    }

    /// A session was replayed, in this time.
    pub(crate) fn replay(&self, time: Duration) {
        self.replays.add(1);
        self.told.merge(time);
        self.replay_nanos
            .add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// A save was answered after this long.
    pub(crate) fn waited(&self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let class = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
            .iter()
            .take_while(|bound| micros >= **bound)
            .count();
        self.waits[class].add(1);
        self.longest_wait_micros.raise(micros);
        self.told.operation(Operation::Save, wait);
    }

    /// The present counts.
    pub(crate) fn read(&self) -> Statistics {
        Statistics {
            saves: self.saves.get(),
            groups: self.groups.get(),
            largest_group: self.largest_group.get(),
            group_sizes: std::array::from_fn(|class| self.group_sizes[class].get()),
            waits: std::array::from_fn(|class| self.waits[class].get()),
            longest_wait: Duration::from_micros(self.longest_wait_micros.get()),
            refused: self.refused.get(),
            conflicts: self.conflicts.get(),
            bulk_rows: self.bulk_rows.get(),
            slow_statements: self.slow_statements.get(),
            transactions: self.transactions.get(),
            rolled_back: self.rolled_back.get(),
            busy: self.busy.get(),
            foreign_commits: self.foreign_commits.get(),
            reads_inline: self.reads_inline.get(),
            reads_threaded: self.reads_threaded.get(),
            over_budget: self.over_budget.get(),
            slow_inline: self.slow_inline.get(),
            checkpoints: self.checkpoints.get(),
            checkpoints_in_slot: self.checkpoints_in_slot.get(),
            passes_complete: self.passes_complete.get(),
            passes_incomplete: self.passes_incomplete.get(),
            held_back: self.held_back.get(),
            old_readers: self.old_readers.get(),
            interrupted_readers: self.interrupted_readers.get(),
            truncations: self.truncations.get(),
            taken_over: self.taken_over.get(),
            sessions: self.sessions.get(),
            session_conflicts: self.session_conflicts.get(),
            reruns: self.reruns.get(),
            exclusive_runs: self.exclusive_runs.get(),
            replays: self.replays.get(),
            replayed_statements: self.replayed.get(),
            replay_time: Duration::from_nanos(self.replay_nanos.get()),
            slow_begins: self.slow_begins.get(),
            session_alarms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::observe::{Counters, Statistics};

    #[test]
    fn waits_fall_into_their_classes() {
        let counters = Counters::default();
        for micros in [1, 99, 100, 999, 1_000, 10_000_000] {
            counters.waited(Duration::from_micros(micros));
        }
        assert_eq!(counters.read().waits, [2, 2, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn group_sizes_fall_into_their_classes() {
        let counters = Counters::default();
        for saves in [1, 2, 3, 4, 5, 64, 65, 1000] {
            counters.group(saves);
        }
        assert_eq!(counters.read().group_sizes, [1, 1, 2, 1, 0, 0, 1, 2]);
        assert_eq!(counters.read().largest_group, 1000);
    }

    #[test]
    fn a_group_that_was_refused_as_a_whole_is_no_commit() {
        let counters = Counters::default();
        counters.group(0);
        assert_eq!(counters.read(), Statistics::default());
    }
}
