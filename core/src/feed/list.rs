//! All cursors of a file.

use std::panic::Location;

use chrono::{DateTime, Utc};

use crate::{
    engine::Engine,
    error::Result,
    feed::cursor::{asked, has_tables},
    query::raw,
    sql::{Statement, Write, WriteExecutor},
    value::Value,
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
/// assert_eq!((lag.commits, lag.rows), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// How many numbers were given to commits since, of whatever tables.
    pub commits: u64,
    /// How many rows it will be told of, without deletions; while it reads all rows at the start, how many there are.
    pub rows: u64,
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
/// assert_eq!((&*cursors[0].table, cursors[0].behind), ("order", 1));
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
    /// When it moved last.
    pub acked_at: DateTime<Utc>,
    /// How many of its events were put aside.
    pub parked: i64,
}

pub(crate) async fn cursors(
    engine: &Engine,
    at: &'static Location<'static>,
) -> Result<Vec<CursorState>> {
    if !has_tables(asked(engine, at)).await? {
        return Ok(Vec::new());
    }
    let found: Vec<(String, String, i64, i64, i64, i64)> = raw(
        "SELECT name, table_name, seq, (SELECT last FROM anabranch_sequence) - seq, acked_at,
                (SELECT count(*) FROM anabranch_parked WHERE cursor = name)
         FROM anabranch_cursors ORDER BY name",
        (),
    )
    .all(asked(engine, at))
    .await?;
    let state = |(name, table, seq, behind, acked_at, parked)| CursorState {
        name,
        table,
        seq,
        behind,
        acked_at: DateTime::from_timestamp(acked_at, 0).unwrap_or_default(),
        parked,
    };
    Ok(found.into_iter().map(state).collect())
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
