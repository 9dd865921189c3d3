//! The tracked entities of one type, by place and by key.

use std::{collections::HashMap, mem};

use crate::{
    entity::Entity,
    error::{Error, ErrorKind, Result},
    tracker::{
        Changed, LedgerEntry, Place, Record, Written,
        handle::position,
        ledger::Given,
        record::{Flight, Life, Replacement},
    },
    value::PrimaryKey,
};

/// The tracked entities of one type.
#[derive(Debug)]
pub(crate) struct EntitySet<E: Entity> {
    pub(in crate::tracker) slots: Vec<Option<Record<E>>>,
    free: Vec<u32>,
    /// New and stored entities by key.
    pub(in crate::tracker) live: HashMap<E::Key, u32>,
    /// Removed entities by key: the same key may be added again before the save.
    pub(in crate::tracker) removed: HashMap<E::Key, u32>,
    /// Removed entities whose key was removed once more: they are found by it again when the other one is gone.
    shadowed: Vec<u32>,
}

/// What came of a removal.
pub(crate) enum Removed {
    /// The place is stale.
    Unknown,
    /// The entity has to be listed now.
    Listed,
    /// It was listed already, or is forgotten.
    Known,
}

impl<E: Entity> Default for EntitySet<E> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            live: HashMap::new(),
            removed: HashMap::new(),
            shadowed: Vec::new(),
        }
    }
}

impl<E: Entity> EntitySet<E> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn record(&self, place: Place) -> Option<&Record<E>> {
        let record = self.slots.get(place.index())?.as_ref()?;
        (record.serial == place.serial).then_some(record)
    }

    pub(crate) fn record_mut(&mut self, place: Place) -> Option<&mut Record<E>> {
        let record = self.slots.get_mut(place.index())?.as_mut()?;
        (record.serial == place.serial).then_some(record)
    }

    /// Several entities at once; `None` if a place is stale, or there twice.
    pub(crate) fn entities_mut<const N: usize>(
        &mut self,
        places: [Place; N],
    ) -> Option<[&mut E; N]> {
        if places.iter().any(|place| self.record(*place).is_none()) {
            return None;
        }
        let slots = self.slots.get_disjoint_mut(places.map(Place::index)).ok()?;
        Some(slots.map(|slot| match slot {
            Some(record) => &mut record.entity,
            None => unreachable!("looked at above"),
        }))
    }

    /// Whether a key is tracked, live or removed.
    pub(crate) fn knows(&self, key: &E::Key) -> bool {
        self.live.contains_key(key) || self.removed.contains_key(key)
    }

    /// What is known of a key: nothing, that it was removed, or where its entity is.
    #[allow(
        clippy::option_option,
        reason = "three answers; each caller takes them apart at once"
    )]
    pub(crate) fn lookup(&self, key: &E::Key) -> Option<Option<(u32, u64)>> {
        if let Some(index) = self.live.get(key) {
            let record = self.slots[*index as usize].as_ref()?;
            return Some(Some((*index, record.serial)));
        }
        self.removed.contains_key(key).then_some(None)
    }

    /// New and stored entities, with their index and serial number.
    pub(crate) fn live(&self) -> impl Iterator<Item = (u32, u64, &E)> {
        (self.slots.iter().enumerate()).filter_map(|(index, slot)| {
            let record = slot
                .as_ref()
                .filter(|record| record.life != Life::Removed)?;
            Some((position(index), record.serial, &record.entity))
        })
    }

    /// Keeps a record. If its key is taken by a live one, that stays the one to be found; saving tells.
    pub(crate) fn insert(&mut self, record: Record<E>) -> u32 {
        let key = record.key.clone();
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(record);
                index
            }
            None => {
                self.slots.push(Some(record));
                position(self.slots.len() - 1)
            }
        };
        self.live.entry(key).or_insert(index);
        index
    }

    /// Forgets a record.
    pub(crate) fn take(&mut self, place: Place) -> Option<Record<E>> {
        self.record(place)?;
        let record = self.slots[place.index()].take()?;
        self.free.push(place.index);
        self.unlink(&record.key, record.life, place.index);
        Some(record)
    }

    /// Looks at every record, and forgets those of which this says so.
    pub(crate) fn take_where(
        &mut self,
        mut is_taken: impl FnMut(&mut Record<E>) -> bool,
    ) -> Vec<Record<E>> {
        let mut taken = Vec::new();
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if !slot.as_mut().is_some_and(&mut is_taken) {
                continue;
            }
            if let Some(record) = slot.take() {
                let index = position(index);
                self.free.push(index);
                self.unlink(&record.key, record.life, index);
                taken.push(record);
            }
        }
        taken
    }

    /// Forgets a new record, unless it may have been inserted by a plan in flight; any other is to be deleted.
    pub(crate) fn remove(&mut self, place: Place) -> Removed {
        let Some(record) = self.record_mut(place) else {
            return Removed::Unknown;
        };
        if record.life == Life::New && record.flight.is_none() {
            drop(self.take(place));
            return Removed::Known;
        }
        let listed = record.is_listed();
        let life = mem::replace(&mut record.life, Life::Removed);
        let key = record.key.clone();
        self.unlink(&key, life, place.index);
        self.link_removed(key, place.index);
        if listed {
            Removed::Known
        } else {
            Removed::Listed
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What a save has to write of a record.
    pub(crate) fn detect(&mut self, place: Place) -> Result<Option<Changed>> {
        let Some(record) = self.record_mut(place) else {
            return Ok(None);
        };
        if record.life == Life::New {
            record.restore_key();
            self.claim(place)?;
        }
        self.record_mut(place).map_or(Ok(None), Record::detect)
    }

    /// Makes the key that a new entity has now the one under which it is found.
    fn claim(&mut self, place: Place) -> Result<()> {
        let Some(record) = self.record_mut(place) else {
            return Ok(());
        };
        let key = record.entity.key();
        if key != record.key {
            let before = mem::replace(&mut record.key, key.clone());
            self.unlink(&before, Life::New, place.index);
        }
        match self.live.get(&key) {
            Some(index) if *index == place.index => {}
            Some(_) => return Err(already_tracked::<E>(&key)),
            None => {
                self.live.insert(key, place.index);
            }
        }
        Ok(())
    }

    pub(crate) fn depart(&mut self, place: Place) {
        if let Some(record) = self.record_mut(place) {
            record.flight = Some(Flight {
                inserts: record.life == Life::New,
                written: None,
                forced: mem::take(&mut record.forced),
            });
        }
    }

    pub(crate) fn refuse(&mut self, place: Place) {
        let Some(record) = self.record_mut(place) else {
            return;
        };
        let Some(mut flight) = record.flight.take() else {
            return;
        };
        record.forced.append(&mut flight.forced);
        if record.life == Life::Removed && flight.inserts {
            drop(self.take(place));
        }
    }

    /// Replaces temporary keys wherever a record refers by one; a new one may be found by another key then.
    pub(crate) fn replace_references(&mut self, place: Place, replacement: Replacement<'_>) {
        let Some(record) = self.record_mut(place) else {
            return;
        };
        record.replace_references(replacement);
        // One in flight gets its key when it is accepted.
        if record.life == Life::New && record.flight.is_none() {
            // Of two with the same key the next save says so.
            drop(self.claim(place));
        }
    }

    /// Takes over what the step of a plan wrote.
    pub(crate) fn accept(&mut self, step: usize, entry: &LedgerEntry, given: &Given<'_>) {
        let place = entry.place;
        if matches!(entry.written, Written::Deleted { .. }) {
            drop(self.take(place));
            return;
        }
        let Some(record) = self.record_mut(place) else {
            return;
        };
        let before = record.key.clone();
        let life = record.life;
        record.accept(step, &entry.written, given);
        let key = record.key.clone();
        if before != key {
            self.unlink(&before, life, place.index);
            if life == Life::Removed {
                self.link_removed(key, place.index);
            } else {
                self.live.insert(key, place.index);
            }
        }
    }

    /// The writer has given this key: whoever was read under it is of a row that has been gone for some time.
    pub(crate) fn forget_row(&mut self, key: i64) {
        let Some(key) = E::Key::from_integer(key) else {
            return;
        };
        let there = [
            self.live.get(&key).copied(),
            self.removed.get(&key).copied(),
        ];
        for index in there.into_iter().flatten() {
            let slot = &mut self.slots[index as usize];
            let is_gone = (slot.as_ref())
                .is_some_and(|record| record.life != Life::New && record.flight.is_none());
            if is_gone && let Some(record) = slot.take() {
                self.free.push(index);
                self.unlink(&record.key, record.life, index);
            }
        }
    }

    fn link_removed(&mut self, key: E::Key, index: u32) {
        self.shadowed.extend(self.removed.insert(key, index));
    }

    pub(in crate::tracker) fn unlink(&mut self, key: &E::Key, life: Life, index: u32) {
        let keys = if life == Life::Removed {
            &mut self.removed
        } else {
            &mut self.live
        };
        if keys.get(key) == Some(&index) {
            keys.remove(key);
            if life == Life::Removed {
                self.unshadow(key);
            }
        } else if life == Life::Removed {
            self.shadowed.retain(|shadowed| *shadowed != index);
        }
    }

    /// Has a removed entity found by its key again.
    fn unshadow(&mut self, key: &E::Key) {
        let has_key = |index: &u32| {
            (self.slots[*index as usize].as_ref()).is_some_and(|record| record.key == *key)
        };
        if let Some(at) = self.shadowed.iter().position(has_key) {
            let index = self.shadowed.swap_remove(at);
            self.removed.insert(key.clone(), index);
        }
    }
}

/// The error for a second entity with the same key.
pub(crate) fn already_tracked<E: Entity>(key: &E::Key) -> Error {
    let error = Error::new(
        ErrorKind::AlreadyTracked,
        "an entity with this key is tracked by the context already: find it there and change it (set_values), or detach it first",
    )
    .with_table(E::TABLE.name);
    match key.to_values() {
        Ok(key) => error.with_key(key),
        Err(_) => error,
    }
}
