//! Events that could not be dealt with, kept aside.

use std::{
    future::{self, Future},
    panic::Location,
};

use futures_util::FutureExt as _;
use uuid::Uuid;

use crate::{
    engine::Engine,
    entity::Entity,
    error::{Error, ErrorKind, Result},
    feed::{
        batch::Step,
        cursor::{asked, has_tables},
        event::{Event, EventId},
    },
    query::{Cursor, Included, by_key, raw},
    sql::{Executor as _, Statement, Write, WriteExecutor, Written},
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
/// assert_eq!(parked.row.as_ref().unwrap().as_ref().unwrap().item, "tea");
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Parked<E: Entity> {
    /// Its number, for [`Feed::forget`](crate::feed::Feed::forget).
    pub id: i64,
    /// The number of the commit.
    pub seq: i64,
    /// The key of the row.
    pub key: E::Key,
    /// The row as it is now, which is another event if it was changed since: its commit number is larger then. Nothing if it was
    /// deleted, then or since; an error of kind [`Decode`](ErrorKind::Decode) if it cannot be read.
    pub row: Result<Option<E>>,
    /// Why it was parked.
    pub reason: String,
    /// The name that the event had, for a receiver that takes nothing twice.
    pub event_id: EventId,
}

/// Puts an event aside, once, if the cursor stands where its batch begins: another consumer of the name may have dealt with it.
pub(super) fn park<E: Entity>(step: &Step, event: &Event<E>, reason: &str) -> Statement {
    Statement {
        text: "INSERT INTO anabranch_parked (cursor, epoch, seq, is_deleted, key, reason)
               SELECT name, epoch, ?1, ?2, ?3, ?4 FROM anabranch_cursors
               WHERE name = ?5 AND generation = ?6 AND epoch = ?7 AND seq = ?8 AND inside IS ?9
               ON CONFLICT DO UPDATE SET reason = excluded.reason"
            .into(),
        args: vec![
            Value::Integer(event.seq),
            Value::Integer(event.is_deleted().into()),
            Value::Text(Cursor::of_key(event.key_values()).to_string()),
            Value::Text(reason.replace('\0', "\u{fffd}")),
            Value::Text(step.name.to_string()),
            Value::Integer(step.generation),
            Value::Blob(step.epoch.as_bytes().to_vec()),
            Value::Integer(step.from.seq),
            (step.from.inside_text()).map_or(Value::Null, Value::Text),
        ],
    }
}

/// What is kept of one.
type Found = (i64, Vec<u8>, i64, bool, String, String);

/// At most so many after this one, the oldest first.
pub(super) async fn parked<E: Entity>(
    engine: &Engine,
    at: &'static Location<'static>,
    cursor: &str,
    after: i64,
    most: u64,
) -> Result<Vec<Parked<E>>> {
    if !has_tables(asked(engine, at)).await? {
        return Ok(Vec::new());
    }
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found: Vec<Found> = raw(
        "SELECT id, epoch, seq, is_deleted, key, reason FROM anabranch_parked
         WHERE cursor = {0} AND id > {1} ORDER BY id LIMIT {2}",
        (cursor, after, most),
    )
    .all(asked(engine, at))
    .await?;
    let mut all = Vec::with_capacity(found.len());
    for (id, epoch, seq, is_deleted, text, reason) in found {
        let key = E::Key::from_values(&text.parse::<Cursor>()?.into_values()).ok_or_else(|| {
            Error::new(
                ErrorKind::Decode,
                format!("the key of the parked event {id} is of another type than the entity's: forget it"),
            )
            .with_table("anabranch_parked")
            .with_column("key")
        })?;
        let row = if is_deleted {
            Ok(None)
        } else {
            // As feeds tell of it, whatever filters the entity has.
            let found = asked(engine, at)
                .read(by_key::<E>(&key, Included::NONE)?)
                .await;
            match found.map(|rows| rows.into_iter().next()) {
                Err(error) if error.kind() != ErrorKind::Decode => return Err(error),
                row => row,
            }
        };
        all.push(Parked {
            id,
            seq,
            key,
            row,
            reason,
            event_id: EventId {
                epoch: Uuid::from_slice(&epoch).unwrap_or_default(),
                seq,
                is_deleted,
                key: text,
            },
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
