//! All cursors of a file.

use std::{panic::Location, time::Duration};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    engine::{Engine, ReadSnapshot},
    entity::tombstones_of,
    error::{ErrorKind, Result},
    feed::{
        cursor::{asked, has_tables},
        position::Position,
    },
    query::raw,
    schema::TOMBSTONE_SEQ,
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
    /// The number of the last commit that was acknowledged.
    pub seq: i64,
    /// How many numbers were given to commits since, of whatever tables.
    pub behind: i64,
    /// How many rows and deletions of its table have such a number: what waits for it, and what its filter leaves out. While it
    /// reads all rows at the start, what has changed meanwhile.
    pub waiting: u64,
    /// For how long something has been waiting for it, at least: since this process saw a later number, to a second, so a process
    /// that has just begun knows little; nothing where nothing waits.
    pub waits: Option<Duration>,
    /// When it moved last, or was made.
    pub acked_at: DateTime<Utc>,
    /// How many of its events were put aside.
    pub parked: i64,
    /// With what its next batch fails: [`CursorExpired`](ErrorKind::CursorExpired), [`EpochChanged`](ErrorKind::EpochChanged); nothing
    /// if it can go on.
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
        "SELECT c.name, c.table_name, c.seq, s.last - c.seq, c.acked_at,
                (SELECT count(*) FROM anabranch_parked WHERE cursor = c.name),
                (SELECT column_name FROM anabranch_stamped AS t, sqlite_schema AS of_it
                 WHERE t.table_name = c.table_name COLLATE NOCASE AND of_it.name = c.table_name COLLATE NOCASE),
                (SELECT name FROM sqlite_schema WHERE name = {0} || c.table_name COLLATE NOCASE),
                c.epoch IS e.epoch AND c.seq <= s.last,
                max(c.seq, c.begun) < (SELECT seq FROM anabranch_pruned AS p WHERE p.table_name = c.table_name)
         FROM anabranch_cursors AS c, anabranch_sequence AS s, anabranch_epoch AS e ORDER BY c.name",
        (tombstones_of(""),),
    )
    .all(&mut snapshot)
    .await?;
    let mut states = Vec::with_capacity(found.len());
    for (name, table, seq, behind, acked_at, parked, column, tombstones, is_of_file, is_expired) in
        found
    {
        let rows = column.map(|column| (table.clone(), column));
        let deletions = tombstones.map(|table| (table, TOMBSTONE_SEQ.to_owned()));
        let mut waiting = 0;
        for (table, column) in rows.into_iter().chain(deletions) {
            waiting += after(&mut snapshot, &table, &column, seq).await?;
        }
        states.push(CursorState {
            name,
            table,
            seq,
            behind,
            waiting,
            waits: (waiting > 0)
                .then(|| engine.age_after(seq, seq + behind))
                .flatten(),
            acked_at: DateTime::from_timestamp(acked_at, 0).unwrap_or_default(),
            parked,
            fails_with: if !is_of_file {
                Some(ErrorKind::EpochChanged)
            } else if is_expired == Some(true) {
                Some(ErrorKind::CursorExpired)
            } else {
                None
            },
        });
    }
    Ok(states)
}

/// A cursor, the column of its table with the commit numbers, and the table of deletions.
type Found = (
    String,
    String,
    i64,
    i64,
    i64,
    i64,
    Option<String>,
    Option<String>,
    bool,
    Option<bool>,
);

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
