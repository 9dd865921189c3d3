//! What a feed tells of.

use std::fmt;

use uuid::Uuid;

use crate::{
    entity::Entity,
    query::Cursor,
    value::{PrimaryKey as _, Value},
};

/// A change of one row.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event<E: Entity> {
    /// The number of the commit that made it.
    pub seq: i64,
    /// What became of the row.
    pub change: Change<E>,
    pub(super) epoch: Uuid,
}

/// What became of a row.
#[derive(Debug, Clone)]
pub enum Change<E: Entity> {
    /// It was inserted or updated; this is what it was when the batch was read.
    Saved(E),
    /// It was deleted, or its key changed; the key that it had.
    Deleted(E::Key),
}

/// Names an event for ever, in this file and its backups: what a receiver outside of the database keeps to take nothing twice.
/// Its text form is one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId {
    epoch: Uuid,
    seq: i64,
    is_deleted: bool,
    key: String,
}

impl<E: Entity> Event<E> {
    /// The key of the row.
    #[must_use]
    pub fn key(&self) -> E::Key {
        match &self.change {
            Change::Saved(row) => row.key(),
            Change::Deleted(key) => key.clone(),
        }
    }

    /// The row, unless it was deleted.
    #[must_use]
    pub const fn row(&self) -> Option<&E> {
        match &self.change {
            Change::Saved(row) => Some(row),
            Change::Deleted(_) => None,
        }
    }

    /// Whether the row was deleted.
    #[must_use]
    pub const fn is_deleted(&self) -> bool {
        matches!(self.change, Change::Deleted(_))
    }

    /// The name of the event: the same whenever it is told of again.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId {
            epoch: self.epoch,
            seq: self.seq,
            is_deleted: self.is_deleted(),
            key: Cursor::of_key(self.key_values()).to_string(),
        }
    }

    /// The values of the key; it was read from the database, and can be stored there.
    pub(super) fn key_values(&self) -> Vec<Value> {
        self.key().to_values().unwrap_or_default()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_deleted { "deleted" } else { "saved" };
        write!(f, "{}/{}/{what}/{}", self.epoch, self.seq, self.key)
    }
}
