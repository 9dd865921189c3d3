//! Entities that come from elsewhere: detached ones that are to be written whole, and rows that were read again.

use std::mem;

use crate::{
    entity::Entity,
    error::Result,
    tracker::{
        Place, Tracked, Tracker,
        record::{Life, snapshot},
        set::{EntitySet, already_tracked},
    },
    value::{PrimaryKey, Value},
};

impl Tracker {
    /// Starts to track an entity that is a row already, every column of which is to be written. One that has no key
    /// yet is added.
    pub(crate) fn update<E: Entity>(&mut self, entity: E) -> Result<Tracked<E>> {
        let table = E::TABLE;
        if entity.key().is_unset() {
            return Ok(self.add(entity));
        }
        let handle = self.attach(entity)?;
        if let Some(record) = (self.set_of(handle)).and_then(|set| set.record_mut(handle.place)) {
            let mut original = snapshot(&record.entity);
            for (column, value) in original.iter_mut().enumerate() {
                let is_known = *value == Some(Value::Unread) || table.keeps(column);
                if !is_known && table.created_at != Some(column) {
                    *value = None;
                }
            }
            record.original = Some(original);
            self.listed.push(handle.place);
        }
        Ok(handle)
    }

    /// The key under which the row of an entity is to be looked up, whatever the entity's own field says by now.
    pub(crate) fn row_key<E: Entity>(&self, handle: Tracked<E>) -> Option<E::Key> {
        let record = self.record(handle)?;
        Some(match record.life {
            Life::New if record.entity.key().is_unset() => record.key.clone(),
            Life::New => record.entity.key(),
            Life::Stored | Life::Removed => record.key.clone(),
        })
    }

    /// Takes over the row of an entity as it was read just now: state `Unchanged`.
    ///
    /// # Errors
    ///
    /// Kind `AlreadyTracked` if another entity has its key; `Refused` while a save of it is not answered.
    pub(crate) fn refresh<E: Entity>(&mut self, handle: Tracked<E>, entity: E) -> Result<()> {
        let Some(set) = self.set_of(handle) else {
            return Ok(());
        };
        if let Some(record) = set.record(handle.place) {
            record.check_answered()?;
        }
        set.check_free(handle.place, &entity.key())?;
        if set.refresh(handle.place, entity) {
            self.listed.push(handle.place);
        }
        Ok(())
    }

    /// The row of an entity is gone: unless it is new, it is forgotten.
    ///
    /// # Errors
    ///
    /// Kind `Refused` while a save of it is not answered.
    pub(crate) fn vanish<E: Entity>(&mut self, handle: Tracked<E>) -> Result<()> {
        if let Some(set) = self.set_of(handle)
            && let Some(record) = set.record(handle.place)
            && record.life != Life::New
        {
            record.check_answered()?;
            drop(set.take(handle.place));
        }
        Ok(())
    }
}

impl<E: Entity> EntitySet<E> {
    /// Whether no other entity has this key, be it live or removed: two would be of one row.
    pub(in crate::tracker) fn check_free(&self, place: Place, key: &E::Key) -> Result<()> {
        let others = [self.live.get(key), self.removed.get(key)];
        if others
            .into_iter()
            .flatten()
            .any(|index| *index != place.index)
        {
            return Err(already_tracked::<E>(key));
        }
        Ok(())
    }

    /// Takes over a row. Whether the entity has to be listed now.
    pub(in crate::tracker) fn refresh(&mut self, place: Place, entity: E) -> bool {
        let Some(record) = self.record_mut(place) else {
            return false;
        };
        let listed = record.is_listed();
        let key = entity.key();
        let before = mem::replace(&mut record.key, key.clone());
        let life = mem::replace(&mut record.life, Life::Stored);
        record.entity = entity;
        record.original = None;
        record.forced.clear();
        record.checks = None;
        let list = record.settle_list(listed);
        self.unlink(&before, life, place.index);
        self.live.insert(key, place.index);
        list
    }
}
