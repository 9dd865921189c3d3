//! Events that could not be dealt with, kept aside.

use std::{
    future::{self, Future},
    panic::Location,
};

use futures_util::FutureExt as _;

use crate::{
    engine::Engine,
    entity::Entity,
    error::{Error, ErrorKind, Result},
    feed::{
        cursor::{asked, has_tables},
        event::Event,
    },
    query::{Cursor, find, raw},
    sql::{Statement, Write, WriteExecutor, Written},
    value::{PrimaryKey as _, Value},
};

/// An event that was parked.
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
/// let mut feed = db.feed::<Order>("mailer");
/// let batch = feed.next_batch().await?;
/// batch.park(&batch.events()[0], "no such address", &db).await?;
/// batch.ack().await?;
/// let parked = &feed.parked(10).await?[0];
/// assert_eq!(parked.row.as_ref().unwrap().item, "tea");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Parked<E: Entity> {
    /// Its number, for [`Feed::forget`](crate::feed::Feed::forget).
    pub id: i64,
    /// The number of the commit.
    pub seq: i64,
    /// The key of the row.
    pub key: E::Key,
    /// The row as it is now; nothing if it was deleted, then or since.
    pub row: Option<E>,
    /// Why it was parked.
    pub reason: String,
}

/// Puts an event aside, once.
pub(super) fn park<E: Entity>(cursor: &str, event: &Event<E>, reason: &str) -> Statement {
    Statement {
        text: "INSERT INTO anabranch_parked (cursor, seq, is_deleted, key, reason)
               VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT DO UPDATE SET reason = excluded.reason"
            .into(),
        args: vec![
            Value::Text(cursor.to_owned()),
            Value::Integer(event.seq),
            Value::Integer(event.is_deleted().into()),
            Value::Text(Cursor::of_key(event.key_values()).to_string()),
            Value::Text(reason.replace('\0', "\u{fffd}")),
        ],
    }
}

/// At most so many, the oldest first.
pub(super) async fn parked<E: Entity>(
    engine: &Engine,
    at: &'static Location<'static>,
    cursor: &str,
    most: u64,
) -> Result<Vec<Parked<E>>> {
    if !has_tables(asked(engine, at)).await? {
        return Ok(Vec::new());
    }
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found: Vec<(i64, i64, bool, String, String)> = raw(
        "SELECT id, seq, is_deleted, key, reason FROM anabranch_parked
         WHERE cursor = {0} ORDER BY id LIMIT {1}",
        (cursor, most),
    )
    .all(asked(engine, at))
    .await?;
    let mut all = Vec::with_capacity(found.len());
    for (id, seq, is_deleted, key, reason) in found {
        let key = E::Key::from_values(&key.parse::<Cursor>()?.into_values()).ok_or_else(|| {
            Error::new(
                ErrorKind::Decode,
                format!("the key of the parked event {id} is of another type than the entity's: forget it"),
            )
            .with_table("anabranch_parked")
            .with_column("key")
        })?;
        let row = if is_deleted {
            None
        } else {
            find::<E>(asked(engine, at), key.clone()).await?
        };
        all.push(Parked {
            id,
            seq,
            key,
            row,
            reason,
        });
    }
    Ok(all)
}

/// Forgets an event that was put aside.
pub(super) fn forget(cursor: &str, id: i64) -> Statement {
    Statement {
        text: "DELETE FROM anabranch_parked WHERE id = ?1 AND cursor = ?2".into(),
        args: vec![Value::Integer(id), Value::Text(cursor.to_owned())],
    }
}

/// Runs one of these.
pub(super) fn written<'c>(
    statement: Statement,
    executor: impl WriteExecutor<'c>,
) -> impl Future<Output = Result<Written>> + Send {
    match Write::statements(vec![statement]) {
        Ok(write) => executor.write(write).left_future(),
        Err(error) => future::ready(Err(error)).right_future(),
    }
}
