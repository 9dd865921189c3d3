//! The tracked entities of one type, for those who do not know the type.

use std::any::Any;

use crate::{
    entity::{Entity, TableDef},
    error::{Conflict, Result},
    tracker::{
        Changed, EntityState, LedgerEntry, Place, cascade::Broken, ledger::Given, set::EntitySet,
    },
    value::{PrimaryKey, Value},
};

/// An [`EntitySet`] of some type. A stale place is passed over.
pub(crate) trait ErasedSet: Any + Send + Sync {
    fn table(&self) -> &'static TableDef;
    fn len(&self) -> usize;
    fn clear(&mut self);
    fn is_listed(&self, place: Place) -> bool;
    fn is_changed(&self, place: Place) -> bool;
    fn detect(&mut self, place: Place) -> Result<Option<Changed>>;
    fn depart(&mut self, place: Place);
    fn refuse(&mut self, place: Place);
    fn accept(&mut self, step: usize, entry: &LedgerEntry, given: &Given<'_>);
    fn replace_references(&mut self, place: Place, given: &Given<'_>);
    fn conflict(&self, place: Place, database: Option<Vec<Value>>) -> Option<Conflict>;
    fn key(&self, place: Place) -> Option<Vec<Value>>;
    fn forget(&mut self, place: Place);
    fn follow(&mut self, broken: Broken<'_>) -> Vec<Vec<Value>>;
}

impl<E: Entity> ErasedSet for EntitySet<E> {
    fn table(&self) -> &'static TableDef {
        E::TABLE
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }

    fn is_listed(&self, place: Place) -> bool {
        self.record(place).is_some_and(|record| record.is_listed())
    }

    fn is_changed(&self, place: Place) -> bool {
        self.record(place)
            .is_some_and(|record| record.state() != EntityState::Unchanged)
    }

    fn detect(&mut self, place: Place) -> Result<Option<Changed>> {
        Self::detect(self, place)
    }

    fn depart(&mut self, place: Place) {
        Self::depart(self, place);
    }

    fn refuse(&mut self, place: Place) {
        Self::refuse(self, place);
    }

    fn accept(&mut self, step: usize, entry: &LedgerEntry, given: &Given<'_>) {
        Self::accept(self, step, entry, given);
    }

    fn replace_references(&mut self, place: Place, given: &Given<'_>) {
        Self::replace_references(self, place, given);
    }

    fn conflict(&self, place: Place, database: Option<Vec<Value>>) -> Option<Conflict> {
        let record = self.record(place)?;
        let table = E::TABLE;
        Some(Conflict {
            entity: table.entity,
            table: table.name,
            key: record.key.to_values().unwrap_or_default(),
            columns: table.columns.iter().map(|column| column.name).collect(),
            original: record.original_values(),
            current: record.written_values(),
            database,
        })
    }

    fn key(&self, place: Place) -> Option<Vec<Value>> {
        self.record(place)?.key.to_values().ok()
    }
    fn forget(&mut self, place: Place) {
        drop(self.take(place));
    }

    fn follow(&mut self, broken: Broken<'_>) -> Vec<Vec<Value>> {
        Self::follow(self, broken)
    }
}
