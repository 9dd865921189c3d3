//! What a context knows of one entity.

use std::fmt;

use crate::{
    context::EntityState,
    entity::{Column, Entity},
    tracker::Record,
};

/// What a context knows of one entity. It never panics: a stale handle has the state `Detached`.
pub struct Entry<'a, E: Entity> {
    record: Option<&'a Record<E>>,
}

impl<'a, E: Entity> Entry<'a, E> {
    pub(crate) const fn new(record: Option<&'a Record<E>>) -> Self {
        Self { record }
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> EntityState {
        self.record.map_or(EntityState::Detached, Record::state)
    }

    /// The entity as it is; `None` if it is detached.
    #[must_use]
    pub fn current(&self) -> Option<&'a E> {
        self.record.map(|record| &record.entity)
    }

    /// The entity as it was read or last saved; `None` if it is added or detached.
    #[must_use]
    pub fn original(&self) -> Option<E> {
        self.record?.original()
    }

    /// Whether a column differs from what was read. Always false of an added entity.
    #[must_use]
    pub fn is_modified<T>(&self, column: Column<E, T>) -> bool {
        self.record
            .is_some_and(|record| record.differs(column.index()))
    }
}

impl<E: Entity> fmt::Debug for Entry<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.record.map(|record| &record.key);
        f.debug_struct(E::TABLE.entity)
            .field("key", &key)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
