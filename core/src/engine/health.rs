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
        location::beside,
        passes::Pass,
        sqlite_error::from_rusqlite,
        streaming::lost,
    },
    error::{Error, Result},
    observe::{Health, Holder, WalStatus},
};

pub(in crate::engine) use crate::engine::obstacle::oldest_reader;

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
        let core = Arc::clone(&self.core);
        let (answer, answered) = oneshot::channel();
        let started = self.core.threads.run(move || {
            drop(answer.send(health(&core)));
        });
        match started {
            Ok(()) => answered.await.unwrap_or_else(|_| unknown(&lost())),
            Err(error) => unknown(&error),
        }
    }
}

/// The answer where nothing could be asked.
fn unknown(error: &Error) -> Health {
    Health {
        problems: vec![error.to_string()],
        writer: None,
        queued: 0,
        wal: None,
        is_in_place: true,
        checkpoint_error: None,
    }
}

/// What of the file is not well.
fn health(core: &Core) -> Health {
    let mut problems = Vec::new();
    let status = status(core);
    let is_in_place = !core.whereabouts.is_moved();
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
        is_in_place,
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
    // A file that has moved takes the allocator's connection away: not while it is lent.
    let seen = busy::retrying(core.options.busy_timeout, || {
        core.allocator.with_head(|head| {
            if core.whereabouts.look(head) {
                return Ok(None);
            }
            Ok(Some((look(head)?, frame_size(head)?)))
        })
    });
    let seen = match seen {
        Err(_) if core.whereabouts.is_moved() => None,
        seen => seen?,
    };
    let Some((log, frame)) = seen else {
        core.lose();
        return Err(core.moved());
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
