//! The table of cursors: where each consumer stands, kept in the file itself.

use std::{
    future::{self, Future},
    panic::Location,
    sync::Arc,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use uuid::Uuid;

use crate::{
    engine::{AskedAt, Engine, ReadSnapshot},
    entity::TableDef,
    error::{Error, ErrorKind, Result},
    feed::{
        batch::Step,
        position::{Inside, Place, Position},
    },
    query::raw,
    schema::{deleted_trigger_of, rekeyed_trigger_of},
    sql::{Statement, Write, WriteExecutor},
    value::Value,
};

/// The tables of feeds; those of commit numbers are made with the first table that has them.
const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS anabranch_cursors (
  name TEXT PRIMARY KEY NOT NULL,
  table_name TEXT NOT NULL COLLATE NOCASE,
  seq INTEGER NOT NULL,
  inside TEXT,
  begun INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT (random()),
  epoch BLOB NOT NULL,
  acked_at INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT",
    "CREATE TABLE IF NOT EXISTS anabranch_parked (
  id INTEGER PRIMARY KEY,
  cursor TEXT NOT NULL,
  epoch BLOB NOT NULL,
  seq INTEGER NOT NULL,
  is_deleted INTEGER NOT NULL,
  key TEXT NOT NULL,
  reason TEXT NOT NULL,
  parked_at INTEGER NOT NULL DEFAULT (unixepoch()),
  UNIQUE (cursor, key, epoch, seq, is_deleted)
) STRICT",
    "CREATE TABLE IF NOT EXISTS anabranch_pruned (
  table_name TEXT PRIMARY KEY NOT NULL COLLATE NOCASE,
  seq INTEGER NOT NULL
) STRICT",
];

/// Where a consumer begins that has no cursor yet.
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
/// use anabranch::feed::Start;
///
/// let mut copy = db.feed::<Order>("copy").start(Start::Snapshot);
/// assert_eq!(copy.next_batch().await?.len(), 1);
/// let mut later = db.feed::<Order>("later").start(Start::After(1));
/// assert!(later.try_next_batch().await?.is_none());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Start {
    /// With the first commit: all rows that are there, in the order of the commits that wrote them last. Rows without a
    /// number, which another program wrote, are not told.
    #[default]
    Beginning,
    /// With the commit after the last one that there is when the feed is first asked for a batch, or rewound.
    Now,
    /// With all rows that are there, by their keys, and from there on with what is committed. The last batch of the rows
    /// [ends the snapshot](crate::feed::Batch::ends_snapshot).
    Snapshot,
    /// After the commit with this number, in whatever life of the file; see [`At`](Self::At).
    After(i64),
    /// At a position that was kept elsewhere. A file with another epoch is refused, and one that ends before it, as a backup that was
    /// restored does: kind [`EpochChanged`](ErrorKind::EpochChanged). To begin there each time say it to
    /// [`rewind`](crate::feed::Feed::rewind): [`start`](crate::feed::Feed::start) counts only where the consumer has no place yet. A
    /// position from within a snapshot does not go on with it: rewind to `Snapshot`.
    At(Position),
}

impl Start {
    /// The commit after which it is, how far in the rest, and up to which commit it needs no deletions, since it reads what is
    /// there now; NULL stands for the last commit.
    fn values(self) -> [Value; 3] {
        let (seq, begun) = match self {
            Self::Beginning => (Value::Integer(0), Value::Null),
            Self::After(seq) | Self::At(Position { seq, .. }) => {
                (Value::Integer(seq), Value::Integer(seq))
            }
            Self::Now | Self::Snapshot => (Value::Null, Value::Null),
        };
        let place = Place {
            seq: 0,
            inside: (self == Self::Snapshot).then_some(Inside::Scan(None)),
        };
        [seq, text(place.inside_text()), begun]
    }

    /// The epoch that the file is to have; NULL for any.
    fn epoch(self) -> Value {
        match self {
            Self::At(position) => Value::Blob(position.epoch.as_bytes().to_vec()),
            _ => Value::Null,
        }
    }
}

/// What is known when a batch is to be read, all of one state of the database.
#[derive(Debug)]
pub(super) struct State {
    pub(super) place: Place,
    pub(super) generation: i64,
    /// The number of the last commit.
    pub(super) last: i64,
    /// Moves with every change of the schema.
    pub(super) schema: i64,
}

/// A place for the statements of feeds.
pub(super) const fn asked<'e>(engine: &'e Engine, at: &'static Location<'static>) -> AskedAt<'e> {
    engine.asked_at("a feed", at)
}

/// Makes the tables of feeds and the cursor, unless they are there, and looks whether the table can be read by its numbers.
pub(super) fn prepare(
    engine: Engine,
    at: &'static Location<'static>,
    name: Arc<str>,
    table: &'static TableDef,
    start: Start,
) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        check(&mut engine.snapshot("a feed", at).await?, table).await?;
        make_tables(&engine, at).await?;
        create(asked(&engine, at), &name, table, start).await
    })
}

/// The name of the column with the commit number.
pub(super) fn number_of(table: &TableDef) -> &'static str {
    table.commit_seq.map_or("", |at| table.columns[at].name)
}

/// Whether the table's rows and deletions have numbers in this file, and are found by them.
pub(super) async fn check(
    snapshot: &mut ReadSnapshot,
    definition: &'static TableDef,
) -> Result<()> {
    let table = definition.name;
    let column = number_of(definition);
    let found: Option<(i64, i64, i64)> = raw(
        "SELECT
           (SELECT count(*) FROM sqlite_schema WHERE name = 'anabranch_stamped'),
           (SELECT count(*) FROM pragma_index_list({0}) AS list, pragma_index_info(list.name) AS info
            WHERE NOT list.partial AND info.seqno = 0 AND info.name = {1} COLLATE NOCASE),
           (SELECT count(*) FROM sqlite_schema
            WHERE type = 'trigger' AND name COLLATE NOCASE IN ({2}, {3}) AND tbl_name = {0} COLLATE NOCASE)",
        (table, column, deleted_trigger_of(table), rekeyed_trigger_of(table)),
    )
    .first(&mut *snapshot)
    .await?;
    let (numbers, indexes, triggers) = found.unwrap_or_default();
    let stamped: Option<i64> = if numbers == 0 {
        None
    } else {
        let stamped = raw(
            "SELECT 1 FROM anabranch_stamped
             WHERE table_name = {0} COLLATE NOCASE AND column_name = {1} COLLATE NOCASE",
            (table, column),
        );
        stamped.first(snapshot).await?
    };
    let message = if stamped.is_none() {
        "no row of the table is given a commit number in this file: make the table with db.create_tables, which leaves one that is there as it is"
    } else if definition.tombstones && triggers < 2 {
        "nobody writes down what is deleted from the table: its triggers are missing; db.create_tables makes them"
    } else if indexes == 0 {
        "a feed reads by the commit number, which has no index: write #[entity(commit_seq, index)], and make the index"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Model, message)
        .with_table(table)
        .with_column(column))
}

/// Whether the tables of feeds are there; who only looks does not make them.
pub(super) async fn has_tables(engine: AskedAt<'_>) -> Result<bool> {
    let found: Option<i64> = raw(
        "SELECT count(*) FROM sqlite_schema
         WHERE name IN ('anabranch_cursors', 'anabranch_parked', 'anabranch_pruned')",
        (),
    )
    .first(engine)
    .await?;
    Ok(found.is_some_and(|tables| usize::try_from(tables) == Ok(TABLES.len())))
}

/// Makes the tables of feeds, unless they are there.
pub(super) async fn make_tables(engine: &Engine, at: &'static Location<'static>) -> Result<()> {
    if has_tables(asked(engine, at)).await? {
        return Ok(());
    }
    let statements = TABLES.map(str::to_owned).to_vec();
    engine.define(statements, Vec::new(), Vec::new()).await
}

/// Gives the file an epoch if it has none: a backup was copied into it while it was open, by SQLite's own restore.
pub(super) async fn give_epoch(engine: AskedAt<'_>) -> Result<()> {
    let lacks = raw::<i64>(
        "SELECT count(*) FROM anabranch_epoch WHERE length(epoch) = 0",
        (),
    );
    if lacks.first(engine).await? == Some(0) {
        return Ok(());
    }
    let give = Statement {
        text: "UPDATE anabranch_epoch SET epoch = randomblob(16) WHERE length(epoch) = 0".into(),
        args: Vec::new(),
    };
    engine.write(Write::statements(vec![give])?).await.map(drop)
}

/// Makes the cursor, unless it is there.
async fn create(
    engine: AskedAt<'_>,
    name: &Arc<str>,
    table: &'static TableDef,
    start: Start,
) -> Result<()> {
    let found = raw::<String>(
        "SELECT table_name FROM anabranch_cursors WHERE name = {}",
        (&**name,),
    );
    // Found without the writer, for which it may have to wait.
    if let Some(of_table) = found.first(engine).await? {
        return fits(name, &of_table, table);
    }
    give_epoch(engine).await?;
    let [seq, inside, begun] = start.values();
    let statement = Statement {
        text: "INSERT INTO anabranch_cursors (name, table_name, seq, inside, begun, epoch)
               SELECT ?1, ?2, coalesce(?3, last), ?4, coalesce(?5, last), epoch
               FROM anabranch_sequence, anabranch_epoch
               WHERE coalesce(?3, last) BETWEEN 0 AND last AND coalesce(?6, epoch) = epoch
               ON CONFLICT DO NOTHING"
            .into(),
        args: vec![
            Value::Text(name.to_string()),
            Value::Text(table.name.to_owned()),
            seq,
            inside,
            begun,
            start.epoch(),
        ],
    };
    let written = engine.write(Write::statements(vec![statement])?).await?;
    if written.changed() > 0 {
        return Ok(());
    }
    // Another one made it just now, or it cannot begin there.
    is_in_the_file(engine, name, table, start).await
}

/// Kinds `Refused` and `EpochChanged` if there is no such commit after which to begin.
async fn is_in_the_file(
    engine: AskedAt<'_>,
    name: &str,
    table: &'static TableDef,
    start: Start,
) -> Result<()> {
    let seq = match start {
        Start::After(seq) | Start::At(Position { seq, .. }) => seq,
        Start::Beginning | Start::Now | Start::Snapshot => return Ok(()),
    };
    let found = raw::<(i64, Value)>(
        "SELECT last, epoch FROM anabranch_sequence, anabranch_epoch",
        (),
    );
    let (last, epoch) = found.first(engine).await?.unwrap_or((0, Value::Null));
    let is_of_file = start.epoch() == Value::Null || start.epoch() == epoch;
    if is_of_file && (0..=last).contains(&seq) {
        return Ok(());
    }
    let error = if let Start::At(_) = start {
        Error::new(
            ErrorKind::EpochChanged,
            format!(
                "the file is another one than that of the position at which the cursor {name} is to be, a backup that was restored it seems: what was told of since may not be there, and its numbers come again; say where to go on with another start"
            ),
        )
    } else {
        Error::new(
            ErrorKind::Refused,
            format!(
                "the cursor {name} cannot begin after commit {seq}: the last one of this file is {last}; is the number one of another file, or of a time before a backup was restored?"
            ),
        )
    };
    Err(error.with_table(table.name))
}

/// A cursor that was there before is gone.
fn removed(name: &str, table: &'static TableDef) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "the cursor {name} was removed while this feed was in use, which does not make it anew by itself: say with feed.rewind where to go on, or make another feed"
        ),
    )
    .with_table(table.name)
}

/// A cursor is of one table.
fn fits(name: &str, of_table: &str, table: &'static TableDef) -> Result<()> {
    if of_table.eq_ignore_ascii_case(table.name) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Model,
        format!(
            "the cursor {name} is one of the table {of_table}: each feed needs a name of its own"
        ),
    )
    .with_table(table.name))
}

/// Puts the cursor anew; who has a batch of before cannot acknowledge it any more.
pub(super) async fn rewind(
    engine: AskedAt<'_>,
    name: &Arc<str>,
    table: &'static TableDef,
    start: Start,
) -> Result<()> {
    give_epoch(engine).await?;
    let [seq, inside, begun] = start.values();
    let statement = Statement {
        text: "UPDATE anabranch_cursors
               SET seq = coalesce(?2, last), inside = ?3, begun = coalesce(?4, last),
                   generation = random(), epoch = now.epoch, acked_at = unixepoch()
               FROM anabranch_sequence, anabranch_epoch AS now
               WHERE name = ?1 AND table_name = ?5 AND coalesce(?2, last) BETWEEN 0 AND last
                 AND coalesce(?6, now.epoch) = now.epoch"
            .into(),
        args: vec![
            Value::Text(name.to_string()),
            seq,
            inside,
            begun,
            Value::Text(table.name.to_owned()),
            start.epoch(),
        ],
    };
    let written = engine.write(Write::statements(vec![statement])?).await?;
    if written.changed() > 0 {
        return Ok(());
    }
    is_in_the_file(engine, name, table, start).await?;
    Err(removed(name, table))
}

/// Lets the cursor go on where it is in a file that has another epoch by now.
pub(super) async fn accept_epoch(
    engine: AskedAt<'_>,
    name: &Arc<str>,
    table: &'static TableDef,
) -> Result<()> {
    give_epoch(engine).await?;
    let statement = Statement {
        text: "UPDATE anabranch_cursors SET epoch = now.epoch
               FROM anabranch_sequence, anabranch_epoch AS now
               WHERE name = ?1 AND table_name = ?2 AND seq <= last"
            .into(),
        args: vec![
            Value::Text(name.to_string()),
            Value::Text(table.name.to_owned()),
        ],
    };
    let written = engine.write(Write::statements(vec![statement])?).await?;
    if written.changed() > 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Refused,
        format!(
            "the cursor {name} cannot go on where it is: it was removed, or stands after the last commit of this file; say with feed.rewind where to go on"
        ),
    )
    .with_table(table.name))
}

/// A cursor, and what of the file it has to fit.
type Found = (
    i64,
    Option<String>,
    i64,
    i64,
    Vec<u8>,
    String,
    i64,
    Vec<u8>,
    Option<i64>,
    i64,
);

/// The cursor, its state and the epoch, as they are in a snapshot. Kinds `Refused`, `Model`, `EpochChanged` and `CursorExpired`
/// where it cannot go on.
pub(super) fn find(
    engine: Engine,
    at: &'static Location<'static>,
    name: Arc<str>,
    table: &'static TableDef,
) -> BoxFuture<'static, Result<(ReadSnapshot, State, Uuid)>> {
    Box::pin(async move {
        let mut snapshot = engine.snapshot("a feed", at).await?;
        let found = raw::<Found>(
            "SELECT c.seq, c.inside, c.begun, c.generation, c.epoch, c.table_name, s.last, e.epoch, p.seq,
                    (SELECT schema_version FROM pragma_schema_version)
             FROM anabranch_cursors AS c, anabranch_sequence AS s, anabranch_epoch AS e
             LEFT JOIN anabranch_pruned AS p ON p.table_name = c.table_name
             WHERE c.name = {}",
            (&*name,),
        );
        let found = found.optional(&mut snapshot).await?;
        let found = found.ok_or_else(|| removed(&name, table))?;
        let (state, epoch) = state(found, &name, table)?;
        Ok((snapshot, state, epoch))
    })
}

fn state(found: Found, name: &str, table: &'static TableDef) -> Result<(State, Uuid)> {
    let (seq, inside, begun, generation, own, of_table, last, present, pruned, schema) = found;
    let fails = |kind, message: String| Err(Error::new(kind, message).with_table(table.name));
    fits(name, &of_table, table)?;
    let present_epoch = Uuid::from_slice(&present).unwrap_or_default();
    if own != present || seq > last {
        return fails(
            ErrorKind::EpochChanged,
            format!(
                "the file is another one than the cursor {name} was in, a backup that was restored it seems: what was told of since may not be there, and its numbers come again; go on from here with feed.accept_epoch, or from elsewhere with feed.rewind"
            ),
        );
    }
    let place = Place::parse(seq, inside.as_deref())?;
    // What was gone when it began it has not seen.
    if table.tombstones && pruned.is_some_and(|pruned| seq.max(begun) < pruned) {
        return fails(
            ErrorKind::CursorExpired,
            format!(
                "the cursor {name} was behind for too long, and deletions that it did not see are forgotten: begin with all rows again, feed.rewind(Start::Snapshot), and drop what is not among them"
            ),
        );
    }
    let state = State {
        place,
        generation,
        last,
        schema,
    };
    Ok((state, present_epoch))
}

/// Moves the cursor over a batch, if it stands where the batch begins; runs the statements before it, which are to look for
/// that too.
pub(super) fn acknowledge<'c>(
    step: &Step,
    executor: impl WriteExecutor<'c>,
    before: Vec<Statement>,
) -> impl Future<Output = Result<()>> + Send {
    let mut statements = before;
    let last = statements.len();
    statements.push(Statement {
        text: "UPDATE anabranch_cursors SET seq = ?1, inside = ?2, acked_at = unixepoch()
               WHERE name = ?3 AND generation = ?4 AND epoch = ?5 AND seq = ?6 AND inside IS ?7"
            .into(),
        args: vec![
            Value::Integer(step.to.seq),
            text(step.to.inside_text()),
            Value::Text(step.name.to_string()),
            Value::Integer(step.generation),
            Value::Blob(step.epoch.as_bytes().to_vec()),
            Value::Integer(step.from.seq),
            text(step.from.inside_text()),
        ],
    });
    let name = Arc::clone(&step.name);
    let write = match Write::statements(statements) {
        Ok(write) => write,
        Err(error) => return future::ready(Err(error)).left_future(),
    };
    let acknowledged = executor.write(write).map(move |written| {
        if written?.changed_by(last) > 0 {
            return Ok(());
        }
        Err(moved(&name))
    });
    acknowledged.right_future()
}

/// A batch is not that of the cursor's place any more.
pub(super) fn moved(name: &str) -> Error {
    Error::new(
        ErrorKind::CursorMoved,
        format!(
            "the cursor {name} does not stand where the batch begins: the batch was acknowledged before, by another consumer of the same name it seems, or the cursor was rewound or removed: take the next batch, of a stream begin another one; or the batch before it of the same stream is not acknowledged yet"
        ),
    )
}

fn text(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::Text)
}
