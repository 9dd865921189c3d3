//! Columns back to what was read, and columns that are written though they are equal.

use std::ops::Range;

use crate::{
    entity::Entity,
    tracker::{
        Record, Tracked, Tracker,
        record::{Life, known},
        set::EntitySet,
    },
    value::Value,
};

impl Tracker {
    /// Undoes what was changed since the entity was read, or its removal. Whether there was something to go back to.
    pub(crate) fn reset<E: Entity>(&mut self, handle: Tracked<E>) -> bool {
        let stored = self.with_stored(handle, |record| {
            record.touch();
            record.reset_all();
        });
        stored || self.set_of(handle).is_some_and(|set| set.revive(handle))
    }

    /// The same for one column of an entity that is not removed.
    pub(crate) fn reset_column<E: Entity>(&mut self, handle: Tracked<E>, column: usize) -> bool {
        self.with_stored(handle, |record| {
            record.touch();
            record.reset_columns(E::TABLE.group(column));
        })
    }

    /// Has the next save write a column; whether it will. One that is not loaded has nothing to be written.
    pub(crate) fn mark_modified<E: Entity>(&mut self, handle: Tracked<E>, column: usize) -> bool {
        let is_unread = |entity: &E| entity.encode(column) == Ok(Value::Unread);
        if E::TABLE.keeps(column) || self.get(handle).is_some_and(is_unread) {
            return false;
        }
        let mark = |record: &mut Record<E>| {
            record.touch();
            if !record.forced.contains(&column) {
                record.forced.push(column);
            }
        };
        if self.with_stored(handle, mark) {
            return true;
        }
        // What a plan in flight inserts may be a row by the time of the next save.
        let Some(record) = self
            .set_of(handle)
            .and_then(|set| set.record_mut(handle.place))
        else {
            return false;
        };
        let inserts = record.life == Life::New && record.flight.is_some();
        if inserts {
            mark(record);
        }
        inserts
    }

    /// Does something with a record that is stored, and keeps the list of changes right.
    fn with_stored<E: Entity>(
        &mut self,
        handle: Tracked<E>,
        change: impl FnOnce(&mut Record<E>),
    ) -> bool {
        let record = (self.set_of(handle)).and_then(|set| set.record_mut(handle.place));
        let Some(record) = record.filter(|record| record.life == Life::Stored) else {
            return false;
        };
        let listed = record.is_listed();
        change(record);
        if record.settle_list(listed) {
            self.listed.push(handle.place);
        }
        true
    }
}

impl<E: Entity> EntitySet<E> {
    /// Undoes a removal, unless a plan is deleting the row, or another entity has its key by now.
    fn revive(&mut self, handle: Tracked<E>) -> bool {
        let place = handle.place;
        let Some(record) = self.record(place) else {
            return false;
        };
        if record.life != Life::Removed
            || record.flight.is_some()
            || self.live.contains_key(&record.key)
        {
            return false;
        }
        let key = record.key.clone();
        self.unlink(&key, Life::Removed, place.index);
        self.live.insert(key, place.index);
        if let Some(record) = self.record_mut(place) {
            record.life = Life::Stored;
            record.settle_list(true);
            record.reset_all();
        }
        true
    }
}

impl<E: Entity> Record<E> {
    fn reset_all(&mut self) {
        self.reset_columns(0..E::TABLE.columns.len());
    }

    /// The version that was given is no longer the one to be checked.
    pub(crate) fn reset_version(&mut self) {
        if self.checks.is_some()
            && let Some(version) = E::TABLE.version
        {
            self.reset_columns(version..version + 1);
        }
    }

    /// What was never read stays as it is, and counts as read. What is right only together goes back together.
    fn reset_columns(&mut self, columns: Range<usize>) {
        self.forced.retain(|forced| !columns.contains(forced));
        if let Some(flight) = &mut self.flight {
            flight.forced.retain(|forced| !columns.contains(forced));
        }
        if (E::TABLE.version).is_some_and(|version| columns.contains(&version)) {
            self.checks = None;
        }
        let Some(original) = &mut self.original else {
            return;
        };
        let mut differing = Vec::new();
        for column in columns {
            let now = self.entity.encode(column).ok();
            match &original[column] {
                Some(before) if now.as_ref() == Some(before) => {}
                Some(_) => differing.push(column),
                None => original[column] = now,
            }
        }
        let before = known(original);
        for column in differing {
            // It came from the field's own type, so it fits.
            drop(self.entity.assign_from(column, &before[..]));
        }
    }
}
