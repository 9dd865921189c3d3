//! All cursors of a file.

use std::{panic::Location, time::Duration};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    engine::{Engine, ReadSnapshot},
    entity::tombstones_of,
    error::{ErrorKind, Result},
    feed::{
        cursor::{asked, give_epoch, has_tables},
        position::{Place, Position},
    },
    query::raw,
    sql::{Cost, Executor as _, Identifier, Read, Statement, Write, WriteExecutor},
    value::{Value, ValueRef},
};

/// How far a consumer is behind.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # #[entity(tombstones)]
/// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Order>().await?;
/// # let mut ctx = db.context();
/// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
/// # ctx.save_changes().await?;
/// let lag = db.feed::<Order>("mailer").lag().await?;
/// assert_eq!((lag.commits, lag.rows, lag.deletions), (1, 1, 0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// How many numbers were given to commits since, of whatever tables.
    pub commits: u64,
    /// How many rows it will be told of; while it reads all rows at the start, how many there are.
    pub rows: u64,
    /// How many deletions it will be told of.
    pub deletions: u64,
}

/// A cursor, as [`Database::cursors`](crate::database::Database::cursors) lists it.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # #[entity(tombstones)]
/// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Order>().await?;
/// # let mut ctx = db.context();
/// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
/// # ctx.save_changes().await?;
/// db.feed::<Order>("mailer").lag().await?;
/// let cursors = db.cursors().await?;
/// assert_eq!((&*cursors[0].table, cursors[0].waiting), ("order", 1));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CursorState {
    /// Its name.
    pub name: String,
    /// The table that it is of.
    pub table: String,
    /// Whether it has not come to the end of the [snapshot](crate::feed::Start::Snapshot) with which it starts.
    pub is_in_snapshot: bool,
    /// The number of the last commit that was acknowledged; 0 while it is in its snapshot, where rows of any may be left.
    pub seq: i64,
    /// How many numbers were given to commits since, of whatever tables.
    pub behind: i64,
    /// How many rows and deletions of its table have such a number: what waits for it, and what its filter leaves out. While it
    /// is in its snapshot, all rows, read or not, and the deletions since it began.
    pub waiting: u64,
    /// For how long something has been waiting for it, at least: since this process saw a later number, to a second, so a process
    /// that has just begun knows little; while it is in its snapshot, since it moved last, whatever waits. Nothing where nothing waits.
    pub waits: Option<Duration>,
    /// When it moved last, or was made.
    pub acked_at: DateTime<Utc>,
    /// How many of its events were put aside.
    pub parked: i64,
    /// With what its next batch fails: [`CursorExpired`](ErrorKind::CursorExpired), [`EpochChanged`](ErrorKind::EpochChanged), or
    /// [`Decode`](ErrorKind::Decode) for a place that was edited by hand. Nothing if it can go on.
    pub fails_with: Option<ErrorKind>,
}

pub(crate) async fn cursors(
    engine: &Engine,
    at: &'static Location<'static>,
) -> Result<Vec<CursorState>> {
    if !has_tables(asked(engine, at)).await? {
        return Ok(Vec::new());
    }
    let mut snapshot = engine.snapshot("the cursors of feeds", at).await?;
    let found: Vec<Found> = raw(
        "SELECT c.name, c.table_name, c.seq, c.inside, s.last, c.acked_at,
                (SELECT count(*) FROM anabranch_parked WHERE cursor = c.name),
                c.epoch IS e.epoch AND c.seq <= s.last,
                max(c.seq, c.begun) < (SELECT seq FROM anabranch_pruned AS p WHERE p.table_name = c.table_name)
         FROM anabranch_cursors AS c, anabranch_sequence AS s, anabranch_epoch AS e ORDER BY c.name",
        (),
    )
    .all(&mut snapshot)
    .await?;
    let mut states = Vec::with_capacity(found.len());
    for (name, table, seq, inside, last, acked_at, parked, is_of_file, is_expired) in found {
        let place = Place::parse(seq, inside.as_deref());
        let is_in_snapshot = place.as_ref().is_ok_and(Place::is_in_snapshot);
        let waiting = waiting(&mut snapshot, &table, seq, is_in_snapshot).await?;
        let acked_at = DateTime::from_timestamp(acked_at, 0).unwrap_or_default();
        let waits = if is_in_snapshot {
            Some((Utc::now() - acked_at).to_std().unwrap_or_default())
        } else if waiting > 0 {
            engine.age_after(seq, last)
        } else {
            None
        };
        let fails_with = if !is_of_file {
            Some(ErrorKind::EpochChanged)
        } else if is_expired == Some(true) {
            Some(ErrorKind::CursorExpired)
        } else {
            place.err().map(|error| error.kind())
        };
        let seq = if is_in_snapshot { 0 } else { seq };
        states.push(CursorState {
            name,
            table,
            is_in_snapshot,
            seq,
            behind: last - seq,
            waiting,
            waits,
            acked_at,
            parked,
            fails_with,
        });
    }
    Ok(states)
}

/// A cursor, the last commit, and whether it fits the file.
type Found = (
    String,
    String,
    i64,
    Option<String>,
    i64,
    i64,
    i64,
    bool,
    Option<bool>,
);

/// What waits for a cursor of this table.
async fn waiting(
    snapshot: &mut ReadSnapshot,
    table: &str,
    seq: i64,
    is_in_snapshot: bool,
) -> Result<u64> {
    let columns: Vec<(String, String)> = raw(
        "SELECT t.table_name, t.column_name FROM anabranch_stamped AS t
         JOIN pragma_table_xinfo(t.table_name) AS c ON c.name = t.column_name COLLATE NOCASE
         WHERE t.table_name COLLATE NOCASE IN ({0}, {1}) GROUP BY t.table_name COLLATE NOCASE",
        (table, tombstones_of(table)),
    )
    .all(&mut *snapshot)
    .await?;
    let mut waiting = 0;
    for (stamped, column) in columns {
        // A snapshot has rows without a number too, and no deletions of before it.
        let is_all = is_in_snapshot && stamped.eq_ignore_ascii_case(table);
        let after_this = if is_all { i64::MIN } else { seq };
        waiting += after(snapshot, &stamped, &column, after_this).await?;
    }
    Ok(waiting)
}

/// How many rows of a table have a larger number.
pub(super) async fn after(
    executor: &mut ReadSnapshot,
    table: &str,
    column: &str,
    seq: i64,
) -> Result<u64> {
    let statement = Statement {
        text: format!(
            "SELECT count(*) FROM {} WHERE {} > ?1",
            Identifier(table),
            Identifier(column)
        )
        .into(),
        args: vec![Value::Integer(seq)],
    };
    let counted = executor.read(Read {
        statement,
        cost: Cost::Any,
        entity: None,
        decode: |row| match row.value(0) {
            ValueRef::Integer(count) => Ok(count.unsigned_abs()),
            _ => Ok(0),
        },
    });
    Ok(counted.await?.into_iter().sum())
}

/// The last commit of the file; nothing if no table of it has commit numbers.
pub(crate) async fn last_commit(
    engine: &Engine,
    at: &'static Location<'static>,
) -> Result<Option<Position>> {
    let numbered = raw::<i64>(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('anabranch_sequence', 'anabranch_epoch')",
        (),
    );
    if numbered.first(asked(engine, at)).await? != Some(2) {
        return Ok(None);
    }
    give_epoch(asked(engine, at)).await?;
    let found: Option<(i64, Vec<u8>)> = raw(
        "SELECT s.last, e.epoch FROM anabranch_sequence AS s, anabranch_epoch AS e",
        (),
    )
    .first(asked(engine, at))
    .await?;
    Ok(found.map(|(seq, epoch)| Position {
        epoch: Uuid::from_slice(&epoch).unwrap_or_default(),
        seq,
    }))
}

/// Begins another life of the file; whether it had one.
pub(crate) async fn renew_epoch(engine: &Engine, at: &'static Location<'static>) -> Result<bool> {
    if last_commit(engine, at).await?.is_none() {
        return Ok(false);
    }
    let renew = Statement {
        text: "UPDATE anabranch_epoch SET epoch = randomblob(16)".into(),
        args: Vec::new(),
    };
    let written = asked(engine, at)
        .write(Write::statements(vec![renew])?)
        .await?;
    Ok(written.changed() > 0)
}

/// Whether it was there.
pub(crate) async fn remove(
    engine: &Engine,
    at: &'static Location<'static>,
    name: &str,
) -> Result<bool> {
    if !has_tables(asked(engine, at)).await? {
        return Ok(false);
    }
    let statement = |text: &str| Statement {
        text: text.into(),
        args: vec![Value::Text(name.to_owned())],
    };
    let write = Write::statements(vec![
        statement("DELETE FROM anabranch_cursors WHERE name = ?1"),
        statement("DELETE FROM anabranch_parked WHERE cursor = ?1"),
    ])?;
    Ok(asked(engine, at).write(write).await?.changed_by(0) > 0)
}
