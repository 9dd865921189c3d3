//! Every instrument that the library has: its name, its unit, and what it shows.
//!
//! Names are OpenTelemetry's where it has one (`db.client`), else begin with `anabranch`. The guide's page lists the same, and a
//! test holds it to this list. What is counted is in `observe.rs`, `observe/told.rs` and `observe/feeds.rs`, what is
//! sampled in `observe/gauges.rs`.

/// An instrument of the feature `metrics`.
///
/// ```
/// use anabranch::observe::Instrument;
///
/// let queue = Instrument::ALL.iter().find(|one| one.name == "anabranch.queue.wait");
/// assert_eq!(queue.unwrap().unit, "s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instrument {
    /// Its name. Exporters to Prometheus write `_` for each dot.
    pub name: &'static str,
    /// What it does with what it is told.
    pub kind: InstrumentKind,
    /// The unit, as UCUM writes it: `s`, `By`, and `1` for what is counted.
    pub unit: &'static str,
    /// Its labels beside `db.namespace`, which all have.
    pub labels: &'static [&'static str],
    /// What it shows.
    pub shows: &'static str,
}

/// What an instrument does with what it is told.
///
/// ```
/// use anabranch::observe::{Instrument, InstrumentKind};
///
/// assert!(Instrument::ALL.iter().any(|one| one.kind == InstrumentKind::Histogram));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstrumentKind {
    /// It adds up.
    Counter,
    /// It keeps the last value; all are set every second.
    Gauge,
    /// It keeps how values are distributed.
    Histogram,
}

const fn instrument(
    kind: InstrumentKind,
    name: &'static str,
    unit: &'static str,
    shows: &'static str,
) -> Instrument {
    Instrument {
        name,
        kind,
        unit,
        labels: &[],
        shows,
    }
}

const fn counter(name: &'static str, shows: &'static str) -> Instrument {
    instrument(InstrumentKind::Counter, name, "1", shows)
}

const fn gauge(name: &'static str, unit: &'static str, shows: &'static str) -> Instrument {
    instrument(InstrumentKind::Gauge, name, unit, shows)
}

const fn histogram(name: &'static str, unit: &'static str, shows: &'static str) -> Instrument {
    instrument(InstrumentKind::Histogram, name, unit, shows)
}

impl Instrument {
    const fn by(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }
}

/// Makes a constant of each, and the list of all.
macro_rules! instruments {
    ($($name:ident = $instrument:expr;)*) => {
        $(pub(crate) const $name: Instrument = $instrument;)*

        impl Instrument {
            /// All instruments, in the order of the guide's page.
            pub const ALL: &'static [Self] = &[$($name),*];
        }
    };
}

instruments! {
    OPERATION_DURATION = histogram("db.client.operation.duration", "s",
        "how long a statement took, or a save with its wait")
        .by(&["db.system.name", "db.operation.name", "error.type"]);
    SLOW_STATEMENTS = counter("anabranch.statements.slow", "statements that took longer than slow_statements");
    READS_INLINE = counter("anabranch.reads.inline", "reads that ran on the task that asked");
    READS_THREADED = counter("anabranch.reads.threaded", "reads that ran on a thread");
    READS_OVER_BUDGET = counter("anabranch.reads.over_budget", "reads that began inline and outgrew their budget");
    READS_SLOW_INLINE = counter("anabranch.reads.slow_inline", "inline calls that took over a millisecond");

    QUEUE_DEPTH = gauge("anabranch.queue.depth", "1", "units and turns that wait for the writer");
    QUEUE_WAIT = histogram("anabranch.queue.wait", "s", "from joining the queue until the writer began with a unit");
    GROUP_SIZE = histogram("anabranch.group.size", "1", "units in one commit");
    GROUP_DURATION = histogram("anabranch.group.duration", "s", "from BEGIN to the end of COMMIT");
    UNITS = counter("anabranch.units", "saves, sessions and chunks that were committed");
    UNITS_REFUSED = counter("anabranch.units.refused", "those that were not, for a conflict, a constraint or an error");
    CONFLICTS = counter("anabranch.conflicts", "saves that lost a race: a row was not as it was read");
    TAKEN_OVER = counter("anabranch.units.taken_over", "units that the writer's thread took over from a task that did not get to run");
    TRANSACTIONS = counter("anabranch.transactions", "exclusive transactions that were committed");
    ROLLED_BACK = counter("anabranch.transactions.rolled_back", "exclusive transactions that were rolled back, or dropped");
    BUSY = counter("anabranch.busy", "how often another process held the write lock when the writer wanted it");
    FOREIGN_COMMITS = counter("anabranch.foreign_commits", "how often it was found that another process had committed");

    SESSIONS = counter("anabranch.sessions", "sessions that were begun");
    SESSION_CONFLICTS = counter("anabranch.sessions.conflicts", "sessions that were in conflict when they committed");
    RERUNS = counter("anabranch.sessions.reruns", "how often the closure of db.concurrent was run again");
    EXCLUSIVE_RUNS = counter("anabranch.sessions.exclusive_runs", "how often it was run as an exclusive transaction");
    MERGE_DURATION = histogram("anabranch.merge.duration", "s", "how long the writer validated a session");
    MERGE_STATEMENTS = counter("anabranch.merge.statements", "statements that it ran for that");
    SLOW_BEGINS = counter("anabranch.sessions.slow_begins", "sessions whose snapshot had to be taken with the writer held");
    SESSION_ALARMS = counter("anabranch.session.alarms", "writes that sessions of this process attempted on a file: always 0, to be watched");

    BULK_ROWS = counter("anabranch.bulk.rows", "rows that bulk operations wrote");

    FEED_BATCHES = counter("anabranch.feed.batches", "batches that a feed read").by(&["anabranch.feed.name"]);
    FEED_EVENTS = counter("anabranch.feed.events", "changes in them").by(&["anabranch.feed.name"]);
    FEED_RETRIES = counter("anabranch.feed.retries", "attempts of a feed's each that failed and were followed by another")
        .by(&["anabranch.feed.name"]);
    FEED_SKIPPED = counter("anabranch.feed.skipped", "events that a feed's each left out").by(&["anabranch.feed.name"]);
    FEED_LAG = gauge("anabranch.feed.lag", "1", "commit numbers given since a feed's place; 0 if nothing waits for it")
        .by(&["anabranch.feed.name"]);
    FEED_PARKED = gauge("anabranch.feed.parked", "1", "events of a feed that were put aside")
        .by(&["anabranch.feed.name"]);
    FEED_AGE = gauge("anabranch.feed.age", "s", "for how long something has been waiting for a feed, at least")
        .by(&["anabranch.feed.name"]);

    POOL_WAIT = histogram("db.client.connection.wait_time", "s", "how long a connection was waited for")
        .by(&["db.client.connection.pool.name"]);
    POOL_TIMEOUTS = counter("db.client.connection.timeouts", "waits for a connection that ended without one")
        .by(&["db.client.connection.pool.name"]);
    POOL_COUNT = gauge("db.client.connection.count", "1", "connections that are idle, and that are used")
        .by(&["db.client.connection.pool.name", "db.client.connection.state"]);
    POOL_PENDING = gauge("db.client.connection.pending_requests", "1", "who waits for a connection")
        .by(&["db.client.connection.pool.name"]);
    READER_AGE = gauge("anabranch.reader.age", "s", "for how long the oldest reader is open; 0 without one");
    OLD_READERS = counter("anabranch.readers.old", "readers that became older than they may");
    INTERRUPTED_READERS = counter("anabranch.readers.interrupted", "those of them that were ended");

    CHECKPOINTS = counter("anabranch.checkpoints", "how often the log was long enough to be moved");
    CHECKPOINTS_IN_SLOT = counter("anabranch.checkpoints.in_slot", "those for which the writer was held");
    PASSES = counter("anabranch.checkpoint.passes", "passes over the log, by how they ended")
        .by(&["outcome"]);
    PASS_DURATION = histogram("anabranch.checkpoint.duration", "s", "how long a pass took")
        .by(&["outcome"]);
    HELD_BACK = counter("anabranch.wal.held_back", "how often writers were held back, for a log near its limit");
    TRUNCATIONS = counter("anabranch.wal.truncations", "how often the log's file was cut since nobody wrote");
    WAL_FRAMES = gauge("anabranch.wal.frames", "1", "frames in the log");
    WAL_UNMOVED = gauge("anabranch.wal.unmoved", "1", "those that are not in the database file yet");
    WAL_BYTES = gauge("anabranch.wal.bytes", "By", "the size of the log's file");
}
