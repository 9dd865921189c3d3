//! What a unit of work remembers: the entities at hand, what they were when they were read, and their keys.
//!
//! * An entity is **new** (to be inserted), **stored** (it is a row) or **removed** (its row is to be deleted).
//! * Identity: of one type there is at most one live entity for a key. Removed ones are looked up apart, so that
//!   a key can be removed and added again in one save.
//! * Only mutable access can change an entity. So the first one of a stored entity takes its *snapshot*, the
//!   encoded values of all columns, and lists it. Whoever is not listed is as the database has it: detection
//!   costs what was touched, however much is tracked. What a field changes behind a shared reference
//!   (a `Cell`, a lock) is not seen.
//! * While a plan is in flight, its entities are marked. The first mutable access to one of them notes the
//!   values that the plan wrote; they become its snapshot when the plan is accepted. When it is refused, the
//!   mark goes away and nothing else changes.
//!
//! Everything here is pure: no database, no waiting.

mod cascade;
mod change;
mod erased;
mod fill;
mod handle;
mod ledger;
mod record;
mod refresh;
mod reset;
mod resolution;
mod set;
mod set_values;
mod temporary;
mod view;

#[cfg(test)]
mod tests;

use std::{
    any::{Any, TypeId},
    fmt, mem,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

pub(crate) use self::{
    change::{Change, Changed, Changes, ColumnChange, RowKey, UniqueChange},
    handle::Place,
    ledger::{Ledger, LedgerEntry, Written},
    record::Record,
    temporary::{GivenKeys, TemporaryKey, TemporaryKeys, is_temporary, was_given},
};
pub use self::{
    handle::Tracked,
    record::EntityState,
    resolution::{Clash, Winner},
    view::{AnyEntry, ColumnEntry},
};

use crate::{
    entity::{Entity, TableDef},
    error::{Conflict, Error, ErrorKind, Result},
    sql::Receipt,
    tracker::{erased::ErasedSet, ledger::Given, record::Life, set::EntitySet},
    value::{KeyOrigin, PrimaryKey, Value},
};

static NEXT_CONTEXT: AtomicU64 = AtomicU64::new(1);

/// The entities of one context.
pub(crate) struct Tracker {
    /// Unique in the process: tells handles of other contexts.
    context: u64,
    /// Goes up with each entity: tells handles of entities that are gone.
    next_serial: u64,
    /// One for each type, in the order of first use; a process has too few types for a hash to pay.
    types: Vec<TypeId>,
    sets: Vec<Box<dyn ErasedSet>>,
    /// Every entity that is new, removed or has a snapshot, once, and some that are gone.
    listed: Vec<Place>,
    /// The keys that earlier saves were given: whoever read a temporary one before may refer by it later.
    given: GivenKeys,
}

impl Tracker {
    pub(crate) fn new() -> Self {
        Self {
            context: NEXT_CONTEXT.fetch_add(1, Ordering::Relaxed),
            next_serial: 0,
            types: Vec::new(),
            sets: Vec::new(),
            listed: Vec::new(),
            given: GivenKeys::default(),
        }
    }

    /// Starts to track an entity that is to be inserted, and gives it a key if it asks for one.
    pub(crate) fn add<E: Entity>(&mut self, mut entity: E) -> Tracked<E> {
        // A key that is that of another entity is not given: only the application knows of which one.
        if entity.key().is_unset() && E::TABLE.shared_key().is_none() {
            let key = match E::TABLE.key_origin {
                KeyOrigin::Writer => E::Key::from_integer(temporary::next()),
                KeyOrigin::Context => E::Key::generate(),
                KeyOrigin::Application => None,
            };
            if let Some(key) = key {
                entity.set_key(key);
            }
        }
        let handle = self.insert(entity, Life::New);
        self.listed.push(handle.place);
        handle
    }

    /// The same, unless its key is that of a tracked entity.
    pub(crate) fn add_new<E: Entity>(&mut self, entity: E) -> Result<Tracked<E>> {
        let key = entity.key();
        if let Some(Some(_)) = self.lookup::<E>(&key) {
            return Err(set::already_tracked::<E>(&key));
        }
        Ok(self.add(entity))
    }

    /// Stops to track what is at these places.
    pub(crate) fn forget(&mut self, places: &[Place]) {
        for place in places {
            self.sets[place.set()].forget(*place);
        }
    }

    /// The serial number of the entity that will be tracked next.
    pub(crate) const fn next_serial(&self) -> u64 {
        self.next_serial + 1
    }

    /// Forgets the new entities with these serial numbers.
    pub(crate) fn withdraw(&mut self, serials: &Range<u64>) {
        let Self { sets, listed, .. } = self;
        listed.retain(|place| {
            let withdrawn = serials.contains(&place.serial) && sets[place.set()].is_new(*place);
            if withdrawn {
                sets[place.set()].forget(*place);
            }
            !withdrawn
        });
    }

    /// Starts to track an entity that is a row already, unless its key is tracked.
    pub(crate) fn attach<E: Entity>(&mut self, entity: E) -> Result<Tracked<E>> {
        let table = E::TABLE;
        let key = entity.key();
        if key.is_unset() {
            return Err(Error::new(
                ErrorKind::Value,
                "the key is not set: add the entity instead",
            )
            .with_table(table.name)
            .with_column(table.columns[table.key[0]].name));
        }
        for (index, column) in table.columns.iter().enumerate() {
            if table.key_source(index).is_some()
                && entity.encode(index).is_ok_and(|value| is_temporary(&value))
            {
                return Err(Error::new(
                    ErrorKind::Value,
                    "holds a temporary key, which no row has: add the entity instead",
                )
                .with_table(table.name)
                .with_column(column.name));
            }
        }
        if self.set::<E>().is_some_and(|set| set.knows(&key)) {
            return Err(set::already_tracked::<E>(&key));
        }
        Ok(self.insert(entity, Life::Stored))
    }

    /// Tracks an entity that was read from the database. One that is tracked already stays as it is, but for deferred
    /// columns that are loaded now; one that was removed here is left out.
    pub(crate) fn track<E: Entity>(&mut self, entity: E) -> Option<Tracked<E>> {
        match self.lookup::<E>(&entity.key()) {
            Some(known) => {
                if let Some(handle) = known
                    && const { E::TABLE.defers() }
                {
                    self.fill(handle, &entity);
                }
                known
            }
            None => Some(self.insert(entity, Life::Stored)),
        }
    }

    /// What is known of a key: nothing, that it was removed here, or its entity.
    #[allow(
        clippy::option_option,
        reason = "three answers; each caller takes them apart at once"
    )]
    pub(crate) fn lookup<E: Entity>(&self, key: &E::Key) -> Option<Option<Tracked<E>>> {
        let set = self.set_index::<E>()?;
        let known = self.set::<E>()?.lookup(key)?;
        Some(known.map(|(index, serial)| self.handle(Place { set, index, serial })))
    }

    /// Forgets a new entity; a stored one is to be deleted. Whether the handle was tracked.
    pub(crate) fn remove<E: Entity>(&mut self, handle: Tracked<E>) -> bool {
        let Some(set) = self.set_of(handle) else {
            return false;
        };
        match set.remove(handle.place) {
            set::Removed::Unknown => return false,
            set::Removed::Listed => self.listed.push(handle.place),
            set::Removed::Known => {}
        }
        true
    }

    /// Stops to track an entity and gives it back.
    pub(crate) fn detach<E: Entity>(&mut self, handle: Tracked<E>) -> Option<E> {
        let record = self.set_of(handle)?.take(handle.place)?;
        self.tidy_list();
        Some(record.entity)
    }

    /// A context that goes on for long does not remember all that came and went.
    fn tidy_list(&mut self) {
        const FEW: usize = 64;
        if self.listed.len() > FEW.max(2 * self.len()) {
            let Self { sets, listed, .. } = self;
            listed.retain(|place| sets[place.set()].is_listed(*place));
        }
    }

    /// Stops to track everything.
    pub(crate) fn clear(&mut self) {
        for set in &mut self.sets {
            set.clear();
        }
        self.listed.clear();
        self.given = GivenKeys::default();
    }

    pub(crate) fn get<E: Entity>(&self, handle: Tracked<E>) -> Option<&E> {
        self.record(handle).map(|record| &record.entity)
    }

    pub(crate) fn record<E: Entity>(&self, handle: Tracked<E>) -> Option<&Record<E>> {
        if handle.context != self.context {
            return None;
        }
        let set: &dyn Any = self.sets.get(handle.place.set())?.as_ref();
        set.downcast_ref::<EntitySet<E>>()?.record(handle.place)
    }

    pub(crate) fn get_mut<E: Entity>(&mut self, handle: Tracked<E>) -> Option<&mut E> {
        self.touch(handle)?;
        let record = self.set_of(handle)?.record_mut(handle.place)?;
        Some(&mut record.entity)
    }

    pub(crate) fn get_disjoint_mut<E: Entity, const N: usize>(
        &mut self,
        handles: [Tracked<E>; N],
    ) -> Option<[&mut E; N]> {
        for handle in handles {
            self.touch(handle)?;
        }
        let Some(first) = handles.first() else {
            return <[&mut E; N]>::try_from(Vec::new()).ok();
        };
        self.set_of(*first)?
            .entities_mut(handles.map(|handle| handle.place))
    }

    /// Prepares for a change: see the module's page.
    fn touch<E: Entity>(&mut self, handle: Tracked<E>) -> Option<()> {
        let record = self.set_of(handle)?.record_mut(handle.place)?;
        if record.touch() {
            self.listed.push(handle.place);
        }
        Some(())
    }

    /// The entities of a type that are tracked and not removed.
    pub(crate) fn iter<E: Entity>(&self) -> impl Iterator<Item = (Tracked<E>, &E)> {
        let set = self.set_index::<E>().zip(self.set::<E>());
        set.into_iter().flat_map(move |(index, set)| {
            set.live().map(move |(slot, serial, entity)| {
                let place = Place {
                    set: index,
                    index: slot,
                    serial,
                };
                (self.handle(place), entity)
            })
        })
    }

    /// How many entities are tracked, those included that are to be deleted.
    pub(crate) fn len(&self) -> usize {
        self.sets.iter().map(|set| set.len()).sum()
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.listed
            .iter()
            .any(|place| self.sets[place.set()].is_changed(*place))
    }

    /// What a save has to write. Entities that were touched and are as before are no longer listed.
    pub(crate) fn detect(&mut self) -> Result<Changes> {
        let Self {
            sets,
            listed,
            given,
            ..
        } = self;
        if !given.is_empty() {
            for place in &*listed {
                sets[place.set()].replace_references(*place, &|table, column, value| {
                    given.replacement(table, column, value)
                });
            }
        }
        let mut changes = Vec::with_capacity(listed.len());
        let mut failed = None;
        listed.retain(|place| {
            if failed.is_some() {
                return true;
            }
            let set = &mut sets[place.set()];
            match set.detect(*place) {
                Ok(Some(changed)) => {
                    changes.push(Change {
                        table: set.table(),
                        place: *place,
                        changed,
                    });
                    true
                }
                Ok(None) => false,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            }
        });
        failed.map_or(Ok(Changes(changes)), Err)
    }

    /// Marks the entities of a plan that is on its way.
    pub(crate) fn depart(&mut self, ledger: &Ledger) {
        for entry in &ledger.entries {
            self.sets[entry.place.set()].depart(entry.place);
        }
    }

    /// The plan was not applied: all is as before, and what was changed since remains.
    pub(crate) fn refuse(&mut self, ledger: &Ledger) {
        for entry in &ledger.entries {
            self.sets[entry.place.set()].refuse(entry.place);
        }
    }

    /// The plan was committed: what it wrote is what the database holds now.
    pub(crate) fn accept(&mut self, ledger: &Ledger, receipt: &Receipt) {
        let given = Given {
            keys: &ledger.keys,
            now: ledger.now.as_ref(),
            receipt,
        };
        let Self { sets, listed, .. } = self;
        if !ledger.keys.is_empty() {
            for place in &*listed {
                sets[place.set()].replace_references(*place, &|table, column, value| {
                    given.replacement(table, column, value)
                });
            }
            self.given.remember(&ledger.keys, &receipt.keys);
            for (asked, key) in ledger.keys.iter().zip(&receipt.keys) {
                let is_of = |set: &&mut Box<dyn ErasedSet>| set.table().name == asked.table.name;
                if let Some(set) = sets.iter_mut().find(is_of) {
                    set.forget_row(*key);
                }
            }
        }
        // Step by step, as the database went: rows that refer now to what is deleted may be written later.
        let mut deleted = Vec::new();
        for (step, entry) in ledger.entries.iter().enumerate() {
            match &entry.written {
                Written::Deleted { key } => deleted.push(RowKey {
                    table: self.sets[entry.place.set()].table(),
                    key: key.clone(),
                }),
                _ => self.cascade(mem::take(&mut deleted), receipt.commit_seq),
            }
            self.sets[entry.place.set()].accept(step, entry, &given);
        }
        self.cascade(deleted, receipt.commit_seq);
        let Self { sets, listed, .. } = self;
        listed.retain(|place| sets[place.set()].is_listed(*place));
    }

    /// An entity of a refused plan, beside the row that the database holds instead.
    pub(crate) fn conflict(&self, place: Place, database: Option<Vec<Value>>) -> Option<Conflict> {
        self.sets[place.set()].conflict(place, database)
    }

    /// The table and the key of an entity that is tracked; without values if it is not.
    pub(crate) fn identity(&self, place: Place) -> (&'static TableDef, Vec<Value>) {
        let set = &self.sets[place.set()];
        (set.table(), set.key(place).unwrap_or_default())
    }

    /// An error about an entity of a refused plan, with its table and key where they are missing.
    pub(crate) fn named(&self, place: Place, mut error: Error) -> Error {
        let set = &self.sets[place.set()];
        if error.table().is_none() {
            error = error.with_table(set.table().name);
        }
        match set.key(place) {
            Some(key) if error.key().is_empty() && !key.iter().any(is_temporary) => {
                error.with_key(key)
            }
            _ => error,
        }
    }

    fn insert<E: Entity>(&mut self, entity: E, life: Life) -> Tracked<E> {
        let set = match self.set_index::<E>() {
            Some(set) => set,
            None => self.new_set::<E>(),
        };
        self.next_serial += 1;
        let serial = self.next_serial;
        let index = match self.set_mut::<E>(set) {
            Some(entities) => entities.insert(Record::new(entity, life, serial)),
            None => unreachable!("the set is of this type"),
        };
        self.handle(Place { set, index, serial })
    }

    fn new_set<E: Entity>(&mut self) -> u32 {
        self.types.push(TypeId::of::<E>());
        self.sets.push(Box::new(EntitySet::<E>::default()));
        handle::position(self.sets.len() - 1)
    }

    fn set_index<E: Entity>(&self) -> Option<u32> {
        let id = TypeId::of::<E>();
        let index = self.types.iter().position(|known| *known == id)?;
        Some(handle::position(index))
    }

    fn set<E: Entity>(&self) -> Option<&EntitySet<E>> {
        let id = TypeId::of::<E>();
        let index = self.types.iter().position(|known| *known == id)?;
        let set: &dyn Any = self.sets[index].as_ref();
        set.downcast_ref()
    }

    fn set_mut<E: Entity>(&mut self, index: u32) -> Option<&mut EntitySet<E>> {
        let set: &mut dyn Any = self.sets.get_mut(index as usize)?.as_mut();
        set.downcast_mut()
    }

    /// The set of a handle, if the handle is of this context.
    fn set_of<E: Entity>(&mut self, handle: Tracked<E>) -> Option<&mut EntitySet<E>> {
        if handle.context != self.context {
            return None;
        }
        self.set_mut(handle.place.set)
    }

    fn handle<E>(&self, place: Place) -> Tracked<E> {
        Tracked::new(self.context, place)
    }
}

impl fmt::Debug for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("context", &self.context)
            .field("tracked", &self.len())
            .field("listed", &self.listed.len())
            .finish_non_exhaustive()
    }
}
