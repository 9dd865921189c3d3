//! Deferred columns that are read later than the rest of their row.

use crate::{
    entity::Entity,
    error::{Error, Result},
    tracker::{
        Record, Tracked, Tracker,
        record::{Life, known, snapshot},
    },
    value::Value,
};

impl Tracker {
    /// Takes the deferred columns that are not loaded from the row of an entity as it was read just now. False, and nothing
    /// is taken, if the row is not the one that the entity was read from: what is tracked is never a mixture of two states.
    pub(crate) fn fill<E: Entity>(&mut self, handle: Tracked<E>, row: &E) -> bool {
        let record = (self.set_of(handle)).and_then(|set| set.record_mut(handle.place));
        record.is_some_and(|record| record.fill(row))
    }

    /// The same where the application asks for it. False if the entity is not tracked.
    ///
    /// # Errors
    ///
    /// Kind `Conflict` if the row is another by now.
    pub(crate) fn load_from<E: Entity>(&mut self, handle: Tracked<E>, row: &E) -> Result<bool> {
        if self.fill(handle, row) {
            return Ok(true);
        }
        if self.record(handle).is_none() {
            return Ok(false);
        }
        let conflict = self.conflict(handle.place, Some(known(&snapshot(row))));
        Err(Error::conflict(conflict.into_iter().collect()))
    }
}

impl<E: Entity> Record<E> {
    fn fill(&mut self, row: &E) -> bool {
        if self.life != Life::Stored || self.is_in_flight() {
            return false;
        }
        let row = snapshot(row);
        let is_compared = |column: &usize| !E::TABLE.columns[*column].deferred;
        let is_same = |column: usize| match self.original_value(column) {
            Some(before) => row[column].as_ref() == Some(&before),
            None => true,
        };
        if !(0..row.len()).filter(is_compared).all(is_same) {
            return false;
        }
        for (column, value) in row.into_iter().enumerate() {
            let is_read = value.as_ref().is_some_and(|value| *value != Value::Unread);
            if !E::TABLE.columns[column].deferred || !is_read {
                continue;
            }
            if self.entity.encode(column) == Ok(Value::Unread) {
                self.assign_read(column, value);
            }
        }
        true
    }

    /// It came from the field's own type, so it fits.
    fn assign_read(&mut self, column: usize, value: Option<Value>) {
        if let Some(value) = &value {
            drop(self.entity.assign(column, value.as_ref()));
        }
        if let Some(original) = &mut self.original {
            original[column] = value;
        }
    }
}
