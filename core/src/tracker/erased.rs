//! The tracked entities of one type, for those who do not know the type.

use std::any::Any;

use crate::{
    entity::{Entity, TableDef},
    error::{Conflict, Result},
    tracker::{
        Changed, EntityState, LedgerEntry, Place, Record,
        cascade::Broken,
        handle::position,
        ledger::Given,
        record::{Life, Replacement},
        resolution::{Comparison, Resolution},
        set::EntitySet,
        view::ErasedRecord,
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
    fn is_new(&self, place: Place) -> bool;
    fn detect(&mut self, place: Place) -> Result<Option<Changed>>;
    fn depart(&mut self, place: Place);
    fn refuse(&mut self, place: Place);
    fn accept(&mut self, step: usize, entry: &LedgerEntry, given: &Given<'_>);
    fn replace_references(&mut self, place: Place, replacement: Replacement<'_>);
    fn conflict(&self, place: Place, database: Option<Vec<Value>>) -> Option<Conflict>;
    fn key(&self, place: Place) -> Option<Vec<Value>>;
    fn forget(&mut self, place: Place);
    fn forget_row(&mut self, key: i64);
    fn follow(&mut self, broken: Broken<'_>) -> Vec<Vec<Value>>;
    fn check_answered(&self, place: Place) -> Result<()>;
    fn stored(&self, key: &[Value]) -> Option<(u32, u64)>;
    fn compare(&self, place: Place, row: &[Value]) -> Result<Comparison>;
    fn check_resolution(
        &self,
        place: Place,
        row: Option<&[Value]>,
        resolution: &Resolution,
    ) -> Result<()>;
    fn resolve(
        &mut self,
        place: Place,
        row: Option<&[Value]>,
        resolution: Resolution,
    ) -> Result<bool>;
    fn records(&self) -> Vec<(u32, &dyn ErasedRecord)>;
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

    fn is_new(&self, place: Place) -> bool {
        (self.record(place)).is_some_and(|record| record.life == Life::New)
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

    fn replace_references(&mut self, place: Place, replacement: Replacement<'_>) {
        Self::replace_references(self, place, replacement);
    }

    fn conflict(&self, place: Place, database: Option<Vec<Value>>) -> Option<Conflict> {
        let record = self.record(place)?;
        let table = E::TABLE;
        let deletes = record.life == Life::Removed;
        // A row that does not fit the entity cannot be compared; resolving the conflict says so.
        let comparison = match &database {
            Some(row) if !deletes => record.compare(row).unwrap_or_default(),
            _ => Comparison::default(),
        };
        Some(Conflict {
            deletes,
            clashing: (comparison.clashing.into_iter())
                .map(|column| table.columns[column].name)
                .collect(),
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
    fn forget_row(&mut self, key: i64) {
        Self::forget_row(self, key);
    }

    fn forget(&mut self, place: Place) {
        drop(self.take(place));
    }

    fn follow(&mut self, broken: Broken<'_>) -> Vec<Vec<Value>> {
        Self::follow(self, broken)
    }

    fn check_answered(&self, place: Place) -> Result<()> {
        self.record(place).map_or(Ok(()), Record::check_answered)
    }

    fn stored(&self, key: &[Value]) -> Option<(u32, u64)> {
        Self::stored(self, key)
    }

    fn compare(&self, place: Place, row: &[Value]) -> Result<Comparison> {
        (self.record(place)).map_or_else(|| Ok(Comparison::default()), |record| record.compare(row))
    }

    fn check_resolution(
        &self,
        place: Place,
        row: Option<&[Value]>,
        resolution: &Resolution,
    ) -> Result<()> {
        Self::check_resolution(self, place, row, resolution)
    }

    fn resolve(
        &mut self,
        place: Place,
        row: Option<&[Value]>,
        resolution: Resolution,
    ) -> Result<bool> {
        Self::resolve(self, place, row, resolution)
    }

    fn records(&self) -> Vec<(u32, &dyn ErasedRecord)> {
        (self.slots.iter().enumerate())
            .filter_map(|(index, slot)| {
                let record: &dyn ErasedRecord = slot.as_ref()?;
                Some((position(index), record))
            })
            .collect()
    }
}
