//! Tracked entities as they look to those who do not know their types.

use std::{any::TypeId, fmt};

use crate::{
    entity::{Entity, TableDef},
    tracker::{
        EntityState, Place, Record, Tracked, Tracker, handle::position, is_temporary, record::Life,
        was_given,
    },
    value::{PrimaryKey, Value},
};

/// A [`Record`] of some type.
pub(crate) trait ErasedRecord: Sync {
    fn entity_type(&self) -> TypeId;
    fn table(&self) -> &'static TableDef;
    fn serial(&self) -> u64;
    fn key(&self) -> Option<Vec<Value>>;
    fn state(&self) -> EntityState;
    fn is_in_flight(&self) -> bool;
    fn differs(&self, column: usize) -> bool;
    fn original(&self, column: usize) -> Option<Value>;
    fn current(&self, column: usize) -> Option<Value>;
}

impl<E: Entity> ErasedRecord for Record<E> {
    fn entity_type(&self) -> TypeId {
        TypeId::of::<E>()
    }

    fn table(&self) -> &'static TableDef {
        E::TABLE
    }

    fn serial(&self) -> u64 {
        self.serial
    }

    fn key(&self) -> Option<Vec<Value>> {
        let key = match self.life {
            Life::New => self.entity.key().to_values(),
            Life::Stored | Life::Removed => self.key.to_values(),
        };
        key.ok()
    }

    fn state(&self) -> EntityState {
        Self::state(self)
    }

    fn is_in_flight(&self) -> bool {
        Self::is_in_flight(self)
    }

    fn differs(&self, column: usize) -> bool {
        Self::differs(self, column)
    }

    fn original(&self, column: usize) -> Option<Value> {
        self.original_value(column)
    }

    fn current(&self, column: usize) -> Option<Value> {
        self.entity.encode(column).ok()
    }
}

impl<E: Entity> Record<E> {
    /// What the row holds in a column, as far as it is known.
    pub(crate) fn original_value(&self, column: usize) -> Option<Value> {
        if self.life == Life::New {
            return None;
        }
        match &self.original {
            Some(original) => original[column].clone(),
            None => self.entity.encode(column).ok(),
        }
    }
}

impl Tracker {
    /// All entities, removed ones included, in the order in which they came to be tracked.
    pub(crate) fn entries(&self) -> Vec<AnyEntry<'_>> {
        let mut entries: Vec<_> = (self.sets.iter().enumerate())
            .flat_map(|(set, entities)| {
                let entry =
                    move |(index, record): (u32, _)| self.any_entry(position(set), index, record);
                entities.records().into_iter().map(entry)
            })
            .collect();
        entries.sort_unstable_by_key(|entry| entry.place.serial);
        entries
    }

    /// The entities of a type, removed ones included.
    pub(crate) fn records<E: Entity>(&self) -> impl Iterator<Item = (Tracked<E>, &Record<E>)> {
        let set = self.set_index::<E>().zip(self.set::<E>());
        set.into_iter().flat_map(move |(index, set)| {
            let slots = set.slots.iter().enumerate();
            slots.filter_map(move |(slot, record)| {
                let record = record.as_ref()?;
                let place = Place {
                    set: index,
                    index: position(slot),
                    serial: record.serial,
                };
                Some((self.handle(place), record))
            })
        })
    }

    fn any_entry<'a>(&self, set: u32, index: u32, record: &'a dyn ErasedRecord) -> AnyEntry<'a> {
        AnyEntry {
            context: self.context,
            place: Place {
                set,
                index,
                serial: record.serial(),
            },
            record,
        }
    }
}

/// What a context knows of one entity of any type.
#[derive(Clone, Copy)]
pub struct AnyEntry<'a> {
    context: u64,
    place: Place,
    record: &'a dyn ErasedRecord,
}

impl<'a> AnyEntry<'a> {
    /// The entity's Rust name.
    #[must_use]
    pub fn entity(&self) -> &'static str {
        self.table().entity
    }

    /// Its table.
    #[must_use]
    pub fn table(&self) -> &'static TableDef {
        self.record.table()
    }

    /// Its key, a value for each column of it; `None` if that cannot be stored.
    #[must_use]
    pub fn key(&self) -> Option<Vec<Value>> {
        self.record.key()
    }

    /// Whether the key is a temporary one, which the save replaces.
    #[must_use]
    pub fn has_temporary_key(&self) -> bool {
        self.key()
            .is_some_and(|key| key.iter().any(Self::is_temporary_key))
    }

    /// Whether a value can be nothing but a temporary key.
    pub(crate) fn is_temporary_key(value: &Value) -> bool {
        matches!(value, Value::Integer(number) if is_temporary(value) && was_given(*number))
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> EntityState {
        self.record.state()
    }

    /// Whether a save that is not answered yet may have written it: one that was dropped, of which the next `async` call
    /// on the context finds out, or one in a transaction that is still open.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.record.is_in_flight()
    }

    /// All columns in the table's order, with their values.
    pub fn columns(&self) -> impl Iterator<Item = ColumnEntry> + use<'a> {
        let record = self.record;
        let columns = record.table().columns.iter().enumerate();
        columns.map(move |(column, definition)| ColumnEntry {
            name: definition.name,
            modified: record.differs(column),
            original: record.original(column),
            current: record.current(column),
        })
    }

    /// The columns that the next save updates: those that differ from what was read, or were marked.
    pub fn modified_columns(&self) -> impl Iterator<Item = ColumnEntry> + use<'a> {
        self.columns().filter(|column| column.modified)
    }

    /// The handle, if the entity is of this type.
    #[must_use]
    pub fn handle<E: Entity>(&self) -> Option<Tracked<E>> {
        let matches = self.record.entity_type() == TypeId::of::<E>();
        matches.then(|| Tracked::new(self.context, self.place))
    }
}

/// No values.
impl fmt::Debug for AnyEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}#{} {:?}",
            self.entity(),
            self.place.serial,
            self.state()
        )
    }
}

/// One column of a tracked entity.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnEntry {
    /// The column's name.
    pub name: &'static str,
    /// Whether the next save updates it. Never of an added entity, all of which is written.
    pub modified: bool,
    /// The value that was read or last saved; `None` if there is none, or it is not known.
    pub original: Option<Value>,
    /// The value as it is; `None` if it cannot be stored.
    pub current: Option<Value>,
}
