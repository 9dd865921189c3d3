//! The deletions of a table: reading them in the order of their commits, and forgetting them.

use std::{future::Future, panic::Location, sync::Arc, time::Duration};

use crate::{
    engine::Engine,
    entity::{Entity, tombstones_of},
    error::{Error, ErrorKind, Result},
    feed::cursor::{asked, check, make_tables},
    query::Cursor,
    schema::TOMBSTONE_SEQ,
    sql::{Cost, Executor, Identifier, Read, Statement, Write, WriteExecutor},
    value::{PrimaryKey as _, Row, Value, ValueRef},
};

/// For how long deletions are kept: see [`Database::prune_tombstones`](crate::database::Database::prune_tombstones).
///
/// ```
/// use anabranch::feed::Retention;
/// use std::time::Duration;
///
/// let day = Duration::from_secs(24 * 60 * 60);
/// // For a day; where a cursor has not seen them, for up to thirty.
/// let retention = Retention::new(day).at_most(30 * day);
/// # assert_ne!(retention, Retention::new(day));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Retention {
    at_least: Duration,
    at_most: Option<Duration>,
}

impl Retention {
    /// Keeps each for this long, and then until all consumers of the table have seen it, but for those that began after it: they
    /// never had the row.
    pub const fn new(at_least: Duration) -> Self {
        Self {
            at_least,
            at_most: None,
        }
    }

    /// Does not wait for cursors for longer than this: one that is behind by more has expired
    /// ([`CursorExpired`](crate::error::ErrorKind::CursorExpired)). Without it a cursor that nobody uses any more keeps all of them.
    pub const fn at_most(mut self, age: Duration) -> Self {
        self.at_most = Some(age);
        self
    }
}

/// A deletion.
#[derive(Debug, Clone)]
pub(super) struct Tombstone<K> {
    pub(super) seq: i64,
    pub(super) key: K,
}

/// Which of them.
#[derive(Debug, Clone)]
pub(super) enum Which {
    /// Of the commits after this one.
    After(i64),
    /// Of this commit, after that key.
    Of(i64, Option<Cursor>),
}

/// At most so many of them, by their commits and keys.
pub(super) fn tombstones<'c, E: Entity>(
    executor: impl Executor<'c>,
    which: Which,
    most: Option<usize>,
) -> impl Future<Output = Result<Vec<Tombstone<E::Key>>>> + Send {
    let key: Vec<_> = E::TABLE
        .key_columns()
        .map(|column| Identifier(column.name).to_string())
        .collect();
    let key = key.join(", ");
    let mut args = Vec::new();
    let condition = match which {
        Which::After(seq) => {
            args.push(Value::Integer(seq));
            format!("{TOMBSTONE_SEQ} > ?1")
        }
        Which::Of(seq, after) => {
            args.push(Value::Integer(seq));
            let mut condition = format!("{TOMBSTONE_SEQ} = ?1");
            if let Some(after) = after {
                let values = after.into_values();
                let places: Vec<_> = (2..2 + values.len())
                    .map(|place| format!("?{place}"))
                    .collect();
                condition.push_str(&format!(" AND ({key}) > ({})", places.join(", ")));
                args.extend(values);
            }
            condition
        }
    };
    let limit = most.map_or_else(String::new, |most| format!(" LIMIT {most}"));
    let statement = Statement {
        text: format!(
            "SELECT {TOMBSTONE_SEQ}, {key} FROM {} WHERE {condition} ORDER BY {TOMBSTONE_SEQ}, {key}{limit}",
            Identifier(&tombstones_of(E::TABLE.name)),
        )
        .into(),
        args,
    };
    Executor::read(
        executor,
        Read {
            statement,
            cost: Cost::Any,
            entity: None,
            decode: decode::<E>,
        },
    )
}

fn decode<E: Entity>(row: &dyn Row) -> Result<Tombstone<E::Key>> {
    let unreadable = || {
        Error::new(
            ErrorKind::Decode,
            "the key of a deletion does not fit the entity's: give the entity the type that the key had, or forget the \
             deletions (prune_tombstones, with zero and at_most zero) and begin with all rows (rewind to Start::Snapshot), as all \
             consumers must then that have not seen them",
        )
        .with_table(tombstones_of(E::TABLE.name))
    };
    let ValueRef::Integer(seq) = row.value(0) else {
        return Err(unreadable());
    };
    let values = (1..=E::TABLE.key.len())
        .map(|index| row.value(index).to_value())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| unreadable())?;
    let Some(key) = E::Key::from_values(&values) else {
        return Err(unreadable().with_key(values));
    };
    Ok(Tombstone { seq, key })
}

/// Forgets deletions; how many.
pub(crate) async fn prune<E: Entity>(
    engine: &Engine,
    at: &'static Location<'static>,
    retention: Retention,
) -> Result<u64> {
    if !E::TABLE.tombstones {
        return Err(Error::new(
            ErrorKind::Model,
            "no deletions are kept of this table: write #[entity(tombstones)] on the entity",
        )
        .with_table(E::TABLE.name));
    }
    check(&mut engine.snapshot("a feed", at).await?, E::TABLE).await?;
    make_tables(engine, at).await?;
    let deleted = Identifier(&tombstones_of(E::TABLE.name)).to_string();
    let condition = format!(
        "anabranch_deleted_at <= unixepoch() - ?2
         AND ({TOMBSTONE_SEQ} <= coalesce((SELECT min(max(seq, begun)) FROM anabranch_cursors WHERE table_name = ?1), {TOMBSTONE_SEQ})
              OR anabranch_deleted_at <= unixepoch() - ?3)"
    );
    let seconds = |age: Duration| i64::try_from(age.as_secs()).unwrap_or(i64::MAX / 2);
    let args = vec![
        Value::Text(E::TABLE.name.to_owned()),
        Value::Integer(seconds(retention.at_least)),
        Value::Integer(retention.at_most.map_or(i64::MAX / 2, seconds)),
    ];
    let statement = |text: String| Statement {
        text: Arc::from(text),
        args: args.clone(),
    };
    let write = Write::statements(vec![
        statement(format!(
            "INSERT INTO anabranch_pruned (table_name, seq)
             SELECT ?1, max({TOMBSTONE_SEQ}) FROM {deleted} WHERE {condition} HAVING count(*) > 0
             ON CONFLICT (table_name) DO UPDATE SET seq = max(seq, excluded.seq)"
        )),
        // The clock goes on between the two: what it adds is not forgotten without a note.
        statement(format!(
            "DELETE FROM {deleted} WHERE {condition}
             AND {TOMBSTONE_SEQ} <= (SELECT seq FROM anabranch_pruned WHERE table_name = ?1)"
        )),
    ])?;
    Ok(asked(engine, at).write(write).await?.changed_by(1))
}
