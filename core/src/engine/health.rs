//! How the file and its log are, without changing anything.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    engine::{
        Engine, busy,
        checkpoint::{Mode, run},
        core::Core,
        ffi::session_vfs,
        location::{beside, names},
        passes::Pass,
        sqlite_error::from_rusqlite,
        streaming::lost,
    },
    error::Result,
    observe::{Health, Holder, WalStatus},
};

pub(in crate::engine) use crate::engine::core::oldest_reader;

/// In bytes.
const FRAME_HEADER: u64 = 24;
/// For how long the writer is held by one before that is a problem.
const WRITER_HELD: Duration = Duration::from_secs(10);

impl Engine {
    /// The state of the log.
    pub(crate) async fn wal_status(&self) -> Result<WalStatus> {
        let core = Arc::clone(&self.core);
        let (answer, answered) = oneshot::channel();
        self.core.threads.run(move || {
            drop(answer.send(status(&core)));
        })?;
        answered.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Whether the file is well.
    pub(crate) async fn health(&self) -> Health {
        let status = self.wal_status().await;
        health(&self.core, status)
    }
}

/// What of the file is not well.
fn health(core: &Core, status: Result<WalStatus>) -> Health {
    let mut problems = Vec::new();
    let writer = core.slot.held_by();
    if let Some(held) = writer.as_ref().filter(|held| held.age > WRITER_HELD) {
        problems.push(format!(
            "the writer is held by {} for {:.1?}",
            held.label, held.age
        ));
    }
    match &status {
        Ok(log) => problems.extend(of_log(core, log)),
        Err(error) => problems.push(error.to_string()),
    }
    let names = names(&core.location.path);
    if names > 1 {
        problems.push(format!(
            "the file has {names} names (hard links), and who opens it by another one does not see its log: remove the others"
        ));
    }
    let checkpoint_error = core.passes.read().error;
    if let Some(error) = &checkpoint_error {
        problems.push(format!("the last checkpoint failed: {error}"));
    }
    Health {
        problems,
        writer: writer.map(|held| Holder {
            label: held.label.to_string(),
            age: held.age,
        }),
        queued: core.slot.queued(),
        wal: status.ok(),
        is_in_place: !core.whereabouts.is_moved(),
        checkpoint_error,
    }
}

/// What is not well with the log.
fn of_log(core: &Core, log: &WalStatus) -> Vec<String> {
    let policy = &core.options.wal_policy;
    let mut problems = Vec::new();
    let reader = log.oldest_reader.as_ref();
    problems.extend(why_large(log, policy.warn_at.0));
    if let Some(reader) = reader.filter(|reader| reader.age > policy.reader_age) {
        problems.push(format!(
            "a reader is open for {:.1?}: {}",
            reader.age, reader.label
        ));
    }
    problems
}

/// Why a log of so many bytes is not well. What is moved, of a log that is nobody's, does not count: the next commit
/// begins it anew.
fn why_large(log: &WalStatus, limit: u64) -> Option<String> {
    if !log.is_blocked() {
        let bytes = log.used / u64::from(log.frames.max(1)) * u64::from(log.unmoved());
        return (bytes >= limit)
            .then(|| format!("the log has {bytes} bytes that are still to be moved"));
    }
    let holder = match &log.oldest_reader {
        _ if log.is_held_by_foreign_reader => "a reader of another process".to_owned(),
        Some(reader) => format!("{}, open for {:.1?}", reader.label, reader.age),
        None => "nobody that is known".to_owned(),
    };
    (log.used >= limit).then(|| format!("the log has {} bytes, held by {holder}", log.used))
}

/// Reads the state of the log. Blocks while another process recovers it.
fn status(core: &Core) -> Result<WalStatus> {
    core.look_by_head()?;
    let seen = busy::retrying(core.options.busy_timeout, || {
        (core.allocator).with_head(|head| Ok((look(head)?, frame_size(head)?)))
    });
    let (log, frame) = match seen {
        Err(_) if core.whereabouts.is_moved() => return Err(core.moved()),
        seen => seen?,
    };
    let now = Instant::now();
    let passed = core.passes.read();
    let oldest = oldest_reader(core);
    Ok(WalStatus {
        frames: log.frames,
        moved: log.moved,
        bytes: log_bytes(core),
        used: u64::from(log.frames) * frame,
        outcome: passed.outcome,
        incomplete_passes: passed.incomplete,
        since_complete: now.saturating_duration_since(passed.complete_at),
        is_held_by_foreign_reader: passed.is_foreign(oldest.map(|(_, since)| since), now),
        oldest_reader: oldest.map(|(label, since)| Holder {
            label: label.to_string(),
            age: now.saturating_duration_since(since),
        }),
    })
}

/// The frames of the log, and how many are moved, without moving any. What is not read yet knows of no log.
pub(in crate::engine) fn look(connection: &Connection) -> Result<Pass> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema)")
        .and_then(|mut look| look.query_row([], |_| Ok(())))
        .map_err(from_rusqlite)?;
    run(connection, Mode::Look)
}

/// How many bytes a page takes in the log, with the header of its frame.
pub(in crate::engine) fn frame_size(connection: &Connection) -> Result<u64> {
    let page: u32 = connection
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(from_rusqlite)?;
    Ok(u64::from(page) + FRAME_HEADER)
}

/// A `stat`, which leaves SQLite's locks alone.
pub(in crate::engine) fn log_bytes(core: &Core) -> u64 {
    fs::metadata(beside(&core.location.path, "-wal")).map_or(0, |log| log.len())
}

/// Sets the gauges to what is now.
pub(in crate::engine) fn sample(core: &Core, log: Pass) {
    if !cfg!(feature = "metrics") {
        return;
    }
    let gauges = &core.counters.told.gauges;
    gauges.queue_depth.set_count(core.slot.queued());
    gauges.readers.set(core.pool.state());
    gauges.sessions.set(core.sessions.pool.state());
    let age = oldest_reader(core).map_or(Duration::ZERO, |(_, since)| since.elapsed());
    gauges.set_reader_age(age);
    gauges.wal_frames.set(log.frames.into());
    let unmoved = log.frames.saturating_sub(log.moved);
    gauges.wal_unmoved.set(unmoved.into());
    gauges.set_wal_bytes(log_bytes(core));
    gauges.set_alarms(session_vfs::alarms());
}
