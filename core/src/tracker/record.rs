//! One tracked entity: what it is to the database, and what it was.

use crate::{
    entity::{Entity, TableDef, encode, encode_column},
    error::{Error, ErrorKind, Result},
    tracker::{Changed, ColumnChange, Written, is_temporary, ledger::Given},
    value::{ColumnType, KeyOrigin, PrimaryKey, Value, ValueRef},
};

/// What an entity is to its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntityState {
    /// Not tracked, or not any more.
    Detached,
    /// To be inserted by the next save.
    Added,
    /// As the database has it.
    Unchanged,
    /// Some columns differ from what was read: the next save updates those.
    Modified,
    /// To be deleted by the next save.
    Deleted,
}

/// What was decided about an entity. Whether it is modified is not: comparison tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    New,
    Stored,
    Removed,
}

/// The values of all columns; `None` for one that could not be encoded, and so counts as changed.
pub(crate) type Snapshot = Box<[Option<Value>]>;

/// An entity that is tracked.
#[derive(Debug)]
pub(crate) struct Record<E: Entity> {
    pub(crate) serial: u64,
    pub(crate) entity: E,
    /// The key under which it is looked up: the entity's own field may be changed by the application.
    pub(crate) key: E::Key,
    pub(crate) life: Life,
    /// What the row holds; `None` while the entity itself tells.
    pub(crate) original: Option<Snapshot>,
    pub(crate) flight: Option<Flight>,
}

/// The mark of an entity whose plan is in flight.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Whether the plan inserts it.
    pub(crate) inserts: bool,
    /// What the plan wrote; `None` while the entity itself tells.
    pub(crate) written: Option<Snapshot>,
}

impl<E: Entity> Record<E> {
    pub(crate) fn new(entity: E, life: Life, serial: u64) -> Self {
        let key = entity.key();
        Self {
            serial,
            entity,
            key,
            life,
            original: None,
            flight: None,
        }
    }

    /// Prepares for a change; whether the entity has to be listed because of it.
    pub(crate) fn touch(&mut self) -> bool {
        if let Some(flight) = &mut self.flight
            && flight.written.is_none()
        {
            flight.written = Some(snapshot(&self.entity));
        }
        // What a plan in flight inserts has no row yet whose values could be kept.
        let inserts = self.flight.as_ref().is_some_and(|flight| flight.inserts);
        if self.life == Life::New || inserts || self.original.is_some() {
            return false;
        }
        let listed = self.is_listed();
        self.original = Some(snapshot(&self.entity));
        !listed
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.life != Life::Stored || self.original.is_some()
    }

    pub(crate) fn state(&self) -> EntityState {
        match self.life {
            Life::New => EntityState::Added,
            Life::Removed => EntityState::Deleted,
            Life::Stored if (0..E::TABLE.columns.len()).any(|column| self.differs(column)) => {
                EntityState::Modified
            }
            Life::Stored => EntityState::Unchanged,
        }
    }

    /// Whether a column differs from what the row holds.
    pub(crate) fn differs(&self, column: usize) -> bool {
        let Some(original) = &self.original else {
            return false;
        };
        if self.life == Life::New || E::TABLE.commit_seq == Some(column) {
            return false;
        }
        match (&original[column], self.entity.encode(column)) {
            (Some(before), Ok(now)) => *before != now,
            _ => true,
        }
    }

    /// What the row holds, as an entity.
    pub(crate) fn original(&self) -> Option<E> {
        if self.life == Life::New {
            return None;
        }
        E::decode(&self.original_values()[..]).ok()
    }

    /// What the row holds; NULL where it is not known.
    pub(crate) fn original_values(&self) -> Vec<Value> {
        match &self.original {
            Some(original) => known(original),
            None => known(&snapshot(&self.entity)),
        }
    }

    /// What the plan in flight was to write, or the next one is.
    pub(crate) fn written_values(&self) -> Vec<Value> {
        match self
            .flight
            .as_ref()
            .and_then(|flight| flight.written.as_ref())
        {
            Some(written) => known(written),
            None => known(&snapshot(&self.entity)),
        }
    }

    /// What a save has to write. A snapshot that turns out to be equal is dropped.
    pub(crate) fn detect(&mut self) -> Result<Option<Changed>> {
        match self.life {
            Life::New => Ok(Some(Changed::Inserted {
                values: encode(&self.entity).map_err(|error| self.keyed(error))?,
            })),
            Life::Removed => Ok(Some(Changed::Deleted {
                values: self.original_values(),
            })),
            Life::Stored => {
                let changed = self.detect_update()?;
                if changed.is_none() {
                    self.original = None;
                }
                Ok(changed)
            }
        }
    }

    fn detect_update(&self) -> Result<Option<Changed>> {
        let Some(original) = &self.original else {
            return Ok(None);
        };
        let table = E::TABLE;
        let mut columns = Vec::new();
        for (column, before) in original.iter().enumerate() {
            if table.commit_seq == Some(column) {
                continue;
            }
            let value = encode_column(&self.entity, column).map_err(|error| self.keyed(error))?;
            if before.as_ref() == Some(&value) {
                continue;
            }
            if column == table.key || table.version == Some(column) {
                return Err(self.keyed(kept(table, column)));
            }
            let freed = before.clone().filter(|_| table.columns[column].unique);
            columns.push(ColumnChange {
                column,
                value,
                freed,
            });
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let version = table.version.map(|column| match original[column] {
            Some(Value::Integer(version)) => version,
            _ => 0,
        });
        let key = original[table.key].clone().unwrap_or_default();
        Ok(Some(Changed::Updated {
            key,
            version,
            columns,
        }))
    }

    /// A new entity that was overwritten as a whole has lost the key that it was given: it gets it back.
    pub(crate) fn restore_key(&mut self) {
        if E::TABLE.key_origin != KeyOrigin::Application && self.entity.key().is_unset() {
            self.entity.set_key(self.key.clone());
        }
    }

    /// Takes over what the plan wrote, and what the writer gave.
    pub(crate) fn accept(&mut self, written: Written, given: &Given<'_>) {
        let mut snapshot = self.flight.take().and_then(|flight| flight.written);
        let table = E::TABLE;
        let (position, version) = match written {
            Written::Inserted { key, version } => (key, version),
            Written::Updated { version } => (None, version),
            Written::Deleted => return,
        };
        if let Some(key) = given.key(position) {
            self.take_key(key, snapshot.as_mut());
        }
        let commit_seq = given.receipt.commit_seq;
        for (column, value) in [(table.version, version), (table.commit_seq, commit_seq)] {
            if let (Some(column), Some(value)) = (column, value) {
                self.assign(column, value);
                if let Some(snapshot) = &mut snapshot {
                    snapshot[column] = Some(Value::Integer(value));
                }
            }
        }
        if let Some(snapshot) = &mut snapshot {
            for (column, target) in references(table) {
                let key =
                    (snapshot[column].as_ref()).and_then(|value| given.replacement(target, value));
                if let Some(key) = key {
                    snapshot[column] = Some(Value::Integer(key));
                }
            }
        }
        self.original = snapshot;
        if self.life == Life::New {
            self.life = Life::Stored;
        }
    }

    fn take_key(&mut self, key: i64, snapshot: Option<&mut Snapshot>) {
        let Some(given) = E::Key::from_integer(key) else {
            return;
        };
        if self.entity.key() == self.key {
            self.entity.set_key(given.clone());
        }
        self.key = given;
        if let Some(snapshot) = snapshot {
            snapshot[E::TABLE.key] = Some(Value::Integer(key));
        }
    }

    /// Replaces temporary keys in the columns that refer to other entities.
    pub(crate) fn replace_references(&mut self, given: &Given<'_>) {
        for (column, target) in references(E::TABLE) {
            let value = self.entity.encode(column);
            if let Some(key) = value
                .ok()
                .and_then(|value| given.replacement(target, &value))
            {
                self.assign(column, key);
            }
        }
    }

    /// The row holds this value whether or not the field can: one that is too narrow keeps what it has, and
    /// the next read of the row says so.
    fn assign(&mut self, column: usize, value: i64) {
        drop(self.entity.assign(column, ValueRef::Integer(value)));
    }

    fn keyed(&self, error: Error) -> Error {
        match self.key.encode() {
            Ok(key) if !is_temporary(&key) => error.with_key(key),
            _ => error,
        }
    }
}

/// The columns that refer to another entity, and its table. A key that refers is replaced as a key.
fn references(table: &'static TableDef) -> impl Iterator<Item = (usize, &'static TableDef)> {
    (table.columns.iter().enumerate()).filter_map(move |(index, column)| {
        let reference = column.references.filter(|_| index != table.key)?;
        Some((index, (reference.table)()))
    })
}

/// The application changed a column that is not its to change.
fn kept(table: &'static TableDef, column: usize) -> Error {
    let message = if column == table.key {
        "the primary key of a tracked entity was changed: add a new entity and remove this one"
    } else {
        "the version is kept by the library: to save against one that was read earlier, attach the entity with it"
    };
    Error::new(ErrorKind::Refused, message)
        .with_table(table.name)
        .with_column(table.columns[column].name)
}

fn snapshot<E: Entity>(entity: &E) -> Snapshot {
    (0..E::TABLE.columns.len())
        .map(|column| entity.encode(column).ok())
        .collect()
}

fn known(snapshot: &Snapshot) -> Vec<Value> {
    (snapshot.iter())
        .map(|value| value.clone().unwrap_or_default())
        .collect()
}
