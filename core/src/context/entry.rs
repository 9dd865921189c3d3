//! What a context knows of one entity.

use std::fmt;

use crate::{
    context::EntityState,
    entity::{Column, Entity},
    tracker::Record,
    value::ColumnType,
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

    /// The value of a column as it was read or last saved; `None` if there is none (the entity is added or detached)
    /// or it is not known (it was given to `update`).
    #[must_use]
    pub fn original_value<T: ColumnType>(&self, column: Column<E, T>) -> Option<T> {
        let value = self.record?.original_value(column.index())?;
        T::decode(value.as_ref()).ok()
    }

    /// The names of the columns that the next save updates: those that differ from what was read, or were marked.
    /// None of an added entity, all of which is written.
    #[must_use]
    pub fn modified_columns(&self) -> Vec<&'static str> {
        let columns = E::TABLE.columns.iter().enumerate();
        columns
            .filter(|(column, _)| self.record.is_some_and(|record| record.differs(*column)))
            .map(|(_, definition)| definition.name)
            .collect()
    }

    /// Whether a column differs from what was read, or was marked as modified. Always false of an added entity.
    #[must_use]
    pub fn is_modified<T: ColumnType>(&self, column: Column<E, T>) -> bool {
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
