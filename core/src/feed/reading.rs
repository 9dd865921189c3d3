//! Which changes are next: whole commits, of one state of the database.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::{
    engine::ReadSnapshot,
    entity::{Column, CommitSeq, Entity, tombstones_of},
    error::{Error, ErrorKind, Result},
    feed::{
        cursor::number_of,
        event::{Change, Event},
        position::{Inside, Place},
        tombstones::{Tombstone, Which, tombstones},
    },
    query::{Cursor, Query},
    schema::TOMBSTONE_SEQ,
    value::{PrimaryKey as _, Value},
};

/// More rows than a table has.
const EVERY_ROW: u64 = 1 << 40;

/// What is asked for, whatever was taken before.
#[derive(Debug)]
pub(super) struct Wanted<E: Entity> {
    pub(super) query: Query<E>,
    pub(super) rows: usize,
    pub(super) splits: bool,
    /// Whether the query leaves out rows.
    pub(super) is_filtered: bool,
}

/// Of entities that are not `Clone` as well.
impl<E: Entity> Clone for Wanted<E> {
    fn clone(&self) -> Self {
        Self {
            query: self.query.clone(),
            ..*self
        }
    }
}

/// The next changes, and where a cursor stands after them.
#[derive(Debug)]
pub(super) struct Taken<E: Entity> {
    pub(super) events: Vec<Event<E>>,
    pub(super) to: Place,
}

/// Reads on, on one state of the database.
#[derive(Debug)]
pub(super) struct Reading<E: Entity> {
    pub(super) wanted: Wanted<E>,
    pub(super) snapshot: ReadSnapshot,
    pub(super) epoch: Uuid,
}

impl<E: Entity> Reading<E> {
    /// Without events there is nothing up to the place that it gives, and of the start nothing more.
    pub(super) async fn next(mut self, last: i64, from: Place) -> Result<Taken<E>> {
        let seq = from.seq;
        match from.inside {
            None => self.commits(seq, last).await,
            // Also where no row is left: that is the end of the start.
            Some(Inside::Scan(after)) => self.scan(seq, after).await,
            // What was left of the commit may be part of later ones by now.
            Some(Inside::Deleted(of, after)) => {
                let taken = self.rest_of(of, after).await?;
                if taken.events.is_empty() {
                    return self.commits(of, last).await;
                }
                Ok(taken)
            }
            Some(Inside::Rows(of, after)) => {
                let taken = self.rows_of(of, after, self.wanted.rows).await?;
                if taken.events.is_empty() {
                    return self.commits(of, last).await;
                }
                Ok(taken)
            }
        }
    }

    /// All rows by their keys; those that were changed after this commit come later.
    async fn scan(&mut self, seq: i64, after: Option<Cursor>) -> Result<Taken<E>> {
        let query = self.wanted.query.clone();
        let page = query
            .filter(number::<E>().le(CommitSeq(seq)))
            .page(after, self.most())
            .read(&mut self.snapshot)
            .await?;
        let inside = page.next.map(|next| Inside::Scan(Some(next)));
        Ok(Taken {
            events: self.saved(page.items)?,
            to: Place { seq, inside },
        })
    }

    /// Whole commits after this one.
    async fn commits(&mut self, after: i64, last: i64) -> Result<Taken<E>> {
        let most = self.wanted.rows;
        let one_more = u64::try_from(most).unwrap_or(u64::MAX - 1) + 1;
        let deleted = self.deleted(Which::After(after), Some(most + 1)).await?;
        let rows = (self.wanted.query.clone())
            .filter(number::<E>().gt(CommitSeq(after)))
            .order_by(number::<E>().asc())
            .page(None, one_more)
            .read(&mut self.snapshot)
            .await?;
        let rows = self.saved(rows.items)?;
        // The last commit that was read may go on beyond what was read.
        let whole = |events: &[Event<E>]| match events.last() {
            Some(event) if events.len() > most => event.seq - 1,
            _ => last,
        };
        let bound = whole(&deleted).min(whole(&rows)).min(last);
        let mut commits = BTreeMap::<i64, Vec<Event<E>>>::new();
        // Deletions first: a row that is there was not deleted after it was written.
        for event in deleted.into_iter().chain(rows) {
            commits.entry(event.seq).or_default().push(event);
        }
        let Some(first) = commits.keys().next().copied() else {
            return Ok(Taken {
                events: Vec::new(),
                to: Place::after(last),
            });
        };
        if first > last {
            return Err(is_no_commit(&commits[&first][0], last));
        }
        if first > bound || commits[&first].len() > most {
            return self.large_commit(first).await;
        }
        let mut events = Vec::new();
        let mut to = bound;
        for (seq, mut changes) in commits {
            if seq > bound || events.len() + changes.len() > most {
                to = to.min(seq - 1);
                break;
            }
            events.append(&mut changes);
        }
        Ok(Taken {
            events,
            to: Place::after(to),
        })
    }

    /// A commit of more changes than a batch has.
    async fn large_commit(&mut self, seq: i64) -> Result<Taken<E>> {
        if self.wanted.splits {
            return self.rest_of(seq, None).await;
        }
        let mut events = self.deleted(Which::Of(seq, None), None).await?;
        let rows = self.wanted.query.clone();
        let rows = rows
            .filter(number::<E>().eq(CommitSeq(seq)))
            .page(None, EVERY_ROW)
            .read(&mut self.snapshot)
            .await?;
        events.extend(self.saved(rows.items)?);
        Ok(Taken {
            events,
            to: Place::after(seq),
        })
    }

    /// The deletions of a commit after this key, and its rows if that was all of them.
    async fn rest_of(&mut self, seq: i64, after: Option<Cursor>) -> Result<Taken<E>> {
        let most = self.wanted.rows;
        let mut events = self.deleted(Which::Of(seq, after), Some(most + 1)).await?;
        if events.len() > most {
            events.truncate(most);
            let last = events.last().map(Event::key_values);
            let inside = Inside::Deleted(seq, last.map(Cursor::of_key));
            return Ok(Taken {
                events,
                to: Place::within(seq, inside),
            });
        }
        let rows = self.rows_of(seq, None, most - events.len()).await?;
        events.extend(rows.events);
        Ok(Taken {
            events,
            to: rows.to,
        })
    }

    /// The rows of a commit after this one, as many as there is room for.
    async fn rows_of(&mut self, seq: i64, after: Option<Cursor>, room: usize) -> Result<Taken<E>> {
        // Without room it is only asked whether there are any.
        let size = u64::try_from(room.max(1)).unwrap_or(EVERY_ROW);
        let page = (self.wanted.query.clone())
            .filter(number::<E>().eq(CommitSeq(seq)))
            .page(after.clone(), size)
            .read(&mut self.snapshot)
            .await?;
        let next = if room == 0 && !page.items.is_empty() {
            Some(Inside::Rows(seq, after))
        } else {
            page.next.map(|next| Inside::Rows(seq, Some(next)))
        };
        let mut rows = page.items;
        rows.truncate(room);
        Ok(Taken {
            events: self.saved(rows)?,
            to: next.map_or_else(|| Place::after(seq), |inside| Place::within(seq, inside)),
        })
    }

    async fn deleted(&mut self, which: Which, most: Option<usize>) -> Result<Vec<Event<E>>> {
        if !E::TABLE.tombstones {
            return Ok(Vec::new());
        }
        let epoch = self.epoch;
        let found = tombstones::<E>(&mut self.snapshot, which, most).await?;
        let event = |Tombstone { seq, key }| Event {
            seq,
            change: Change::Deleted(key),
            epoch,
        };
        found.into_iter().map(event).map(named).collect()
    }

    fn saved(&self, rows: Vec<E>) -> Result<Vec<Event<E>>> {
        let event = |row: E| Event {
            seq: seq_of(&row),
            change: Change::Saved(row),
            epoch: self.epoch,
        };
        rows.into_iter().map(event).map(named).collect()
    }

    fn most(&self) -> u64 {
        u64::try_from(self.wanted.rows).unwrap_or(EVERY_ROW)
    }
}

/// What has a key that cannot be written down would have no name, and the cursor no place behind it.
fn named<E: Entity>(event: Event<E>) -> Result<Event<E>> {
    let Err((at, error)) = event.key().to_values() else {
        return Ok(event);
    };
    let column = E::TABLE.columns[E::TABLE.key[at]].name;
    let what = match event.change {
        Change::Saved(_) => "row",
        Change::Deleted(_) => "deletion",
    };
    Err(Error::new(
        ErrorKind::Decode,
        format!(
            "a {what} of commit {} has a key that no entity can have, written by SQL: {error}; give the row another key, or forget the deletion (prune_tombstones)",
            event.seq
        ),
    )
    .with_table(E::TABLE.name)
    .with_column(column))
}

/// Told as it stands there, the place would be after the last commit.
fn is_no_commit<E: Entity>(event: &Event<E>, last: i64) -> Error {
    let (table, column) = match event.change {
        Change::Saved(_) => (E::TABLE.name.to_owned(), number_of(E::TABLE)),
        Change::Deleted(_) => (tombstones_of(E::TABLE.name), TOMBSTONE_SEQ),
    };
    Error::new(
        ErrorKind::Model,
        format!(
            "a row has the commit number {}, and the last commit of this file is {last}: it was copied from another file, or written by hand; an UPDATE of it through this library gives it one of its own",
            event.seq
        ),
    )
    .with_table(table)
    .with_column(column)
    .with_key(event.key_values())
}

/// The column of the commit number.
pub(super) fn number<E: Entity>() -> Column<E, CommitSeq> {
    Column::new(E::TABLE.commit_seq.unwrap_or_default())
}

/// The commit number of a row that was read.
fn seq_of<E: Entity>(row: &E) -> i64 {
    match E::TABLE.commit_seq.map(|column| row.encode(column)) {
        Some(Ok(Value::Integer(number))) => number,
        _ => 0,
    }
}
