//! Columns back to what was read, and columns that are written though they are equal.

use crate::{
    entity::Entity,
    tracker::{
        Record, Tracked, Tracker,
        record::{Life, known, snapshot},
        set::EntitySet,
    },
};

impl Tracker {
    /// Undoes what was changed since the entity was read, or its removal. Whether there was something to go back to.
    pub(crate) fn reset<E: Entity>(&mut self, handle: Tracked<E>) -> bool {
        let stored = self.with_stored(handle, |record| {
            record.touch();
            for column in 0..E::TABLE.columns.len() {
                record.reset_column(column);
            }
        });
        stored || self.set_of(handle).is_some_and(|set| set.revive(handle))
    }

    /// The same for one column of an entity that is not removed.
    pub(crate) fn reset_column<E: Entity>(&mut self, handle: Tracked<E>, column: usize) -> bool {
        self.with_stored(handle, |record| {
            record.touch();
            record.reset_column(column);
        })
    }

    /// Has the next save write a column; whether it will.
    pub(crate) fn mark_modified<E: Entity>(&mut self, handle: Tracked<E>, column: usize) -> bool {
        if E::TABLE.keeps(column) {
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
            for column in 0..E::TABLE.columns.len() {
                record.reset_column(column);
            }
        }
        true
    }
}

impl<E: Entity> Record<E> {
    pub(crate) fn is_forced(&self, column: usize) -> bool {
        let flight = self
            .flight
            .as_ref()
            .map_or(&[][..], |flight| &flight.forced);
        self.forced.contains(&column) || flight.contains(&column)
    }

    /// Who is in the list of changes stays there until the next detection has looked. Whether it has to be listed now.
    pub(crate) fn settle_list(&mut self, was_listed: bool) -> bool {
        if was_listed && !self.is_listed() {
            self.original = Some(snapshot(&self.entity));
        }
        !was_listed && self.is_listed()
    }

    /// What was never read stays as it is, and counts as read. What is right only together goes back together.
    fn reset_column(&mut self, column: usize) {
        let group = E::TABLE.group(column);
        self.forced.retain(|forced| !group.contains(forced));
        if let Some(flight) = &mut self.flight {
            flight.forced.retain(|forced| !group.contains(forced));
        }
        let Some(original) = &mut self.original else {
            return;
        };
        let mut is_equal = true;
        for column in group {
            let now = self.entity.encode(column).ok();
            match &original[column] {
                Some(before) => is_equal &= now.as_ref() == Some(before),
                None => original[column] = now,
            }
        }
        if !is_equal {
            // It came from the field's own type, so it fits.
            drop(self.entity.assign_from(column, &known(original)[..]));
        }
    }
}
