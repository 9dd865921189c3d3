//! One tracked entity: what it is to the database, and what it was.

use std::borrow::Cow;

use crate::{
    entity::{Entity, ForeignKeyAction, TableDef, encode, encode_column},
    error::{Error, ErrorKind, Result},
    tracker::{Changed, ColumnChange, RowKey, UniqueChange, Written, is_temporary, ledger::Given},
    value::{PrimaryKey, Value},
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

/// The real key for a value in a column of a table, if that is a temporary one that is known.
pub(crate) type Replacement<'a> = &'a dyn Fn(&'static TableDef, usize, &Value) -> Option<Value>;

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
    /// The columns that the next save writes though they are equal; only beside a snapshot.
    pub(crate) forced: Vec<usize>,
    /// The version that the next save is to find, if the application gave one; only beside a snapshot.
    pub(crate) checks: Option<i64>,
    pub(crate) flight: Option<Flight>,
}

/// The mark of an entity whose plan is in flight.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Whether the plan inserts it.
    pub(crate) inserts: bool,
    /// What the plan wrote; `None` while the entity itself tells.
    pub(crate) written: Option<Snapshot>,
    /// The columns that the plan writes though they are equal.
    pub(crate) forced: Vec<usize>,
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
            forced: Vec::new(),
            checks: None,
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

    /// Whether a column, or one that is right only together with it, differs from what the row holds.
    pub(crate) fn differs(&self, column: usize) -> bool {
        E::TABLE
            .group(column)
            .any(|column| self.differs_itself(column))
    }

    pub(in crate::tracker) fn differs_itself(&self, column: usize) -> bool {
        let Some(original) = &self.original else {
            return false;
        };
        if self.life == Life::New || E::TABLE.is_given(column) {
            return false;
        }
        let now = self.entity.encode(column);
        // A deferred column that is not loaded is as it was, whatever that is.
        if now == Ok(Value::Unread) {
            return false;
        }
        if self.is_forced(column) {
            return true;
        }
        match (self.expected(original, column), now) {
            (Some(before), Ok(now)) => *before != now,
            _ => true,
        }
    }

    /// What a column holds that was not changed.
    fn expected<'a>(&self, original: &'a Snapshot, column: usize) -> Option<Cow<'a, Value>> {
        match self.checks {
            Some(version) if E::TABLE.version == Some(column) => {
                Some(Cow::Owned(Value::Integer(version)))
            }
            _ => original[column].as_ref().map(Cow::Borrowed),
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

    /// What the row to be deleted holds: where that is not known, it is what the entity says.
    fn deleted_values(&self) -> Vec<Value> {
        let mut values = self.original_values();
        if let Some(original) = &self.original {
            let unknown = |column: &usize| original[*column].is_none() && !E::TABLE.keeps(*column);
            for column in (0..values.len()).filter(unknown) {
                values[column] = self.entity.encode(column).unwrap_or_default();
            }
            if let (Some(column), Some(version)) = (E::TABLE.version, self.checks) {
                values[column] = Value::Integer(version);
            }
        }
        values
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
            Life::New => {
                self.check_shared_key()?;
                Ok(Some(Changed::Inserted {
                    values: encode(&self.entity).map_err(|error| self.keyed(error))?,
                }))
            }
            Life::Removed => Ok(Some(Changed::Deleted {
                values: self.deleted_values(),
            })),
            Life::Stored => {
                let changed = self.detect_update()?;
                if changed.is_none() {
                    self.reset_version();
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
        for column in 0..original.len() {
            if table.is_given(column) {
                continue;
            }
            let value = encode_column(&self.entity, column).map_err(|error| self.keyed(error))?;
            if value == Value::Unread {
                continue;
            }
            let equal = self.expected(original, column).as_deref() == Some(&value);
            if equal && !self.is_forced(column) {
                continue;
            }
            if table.is_key(column) || table.version == Some(column) {
                return Err(self.keyed(kept(table, column)));
            }
            columns.push(ColumnChange { column, value });
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let version = table.version.map(|column| match original[column] {
            Some(Value::Integer(version)) => self.checks.unwrap_or(version),
            _ => self.checks.unwrap_or_default(),
        });
        let key = (table.key.iter())
            .map(|column| original[*column].clone().unwrap_or_default())
            .collect();
        let unique = unique_changes(table, original, &columns);
        let left = left_rows(table, original, &columns);
        let joined = joined_rows(table, original, &columns);
        self.complete(&mut columns)
            .map_err(|error| self.keyed(error))?;
        Ok(Some(Changed::Updated {
            key,
            version,
            columns,
            unique,
            left,
            joined,
        }))
    }

    /// The key that is that of another entity is set.
    fn check_shared_key(&self) -> Result<()> {
        if !self.entity.key().is_unset() {
            return Ok(());
        }
        let Some((column, of)) = E::TABLE.shared_key() else {
            return Ok(());
        };
        let message = format!("the key is that of the {}: set it", of.entity);
        Err(Error::new(ErrorKind::Value, message)
            .with_table(E::TABLE.name)
            .with_column(E::TABLE.columns[column].name))
    }

    /// Columns that are right only together are written together: another save may have written some of them.
    fn complete(&self, columns: &mut Vec<ColumnChange>) -> Result<()> {
        let groups: Vec<_> = (columns.iter())
            .map(|change| E::TABLE.group(change.column))
            .filter(|group| group.len() > 1)
            .collect();
        for column in groups.into_iter().flatten() {
            if !columns.iter().any(|change| change.column == column) {
                let value = encode_column(&self.entity, column)?;
                columns.push(ColumnChange { column, value });
            }
        }
        columns.sort_by_key(|change| change.column);
        Ok(())
    }

    /// A new entity that was overwritten as a whole has lost the key that it was given: it gets it back.
    pub(crate) fn restore_key(&mut self) {
        if self.entity.key().is_unset() {
            self.entity.set_key(self.key.clone());
        }
    }

    /// Takes over what a step of the plan wrote, and what the writer gave.
    pub(crate) fn accept(&mut self, step: usize, written: &Written, given: &Given<'_>) {
        let mut snapshot = self.flight.take().and_then(|flight| flight.written);
        let (version, created_at, updated_at) = match *written {
            Written::Inserted {
                version,
                created_at,
                updated_at,
            } => (version, created_at, updated_at),
            Written::Updated { version } => (version, None, E::TABLE.updated_at),
            Written::Deleted { .. } => return,
        };
        if let Written::Inserted { .. } = written {
            self.take_key(given);
        }
        if let Some(snapshot) = &mut snapshot {
            replace_temporary(E::TABLE, snapshot, given);
        }
        let table = E::TABLE;
        let integers = [
            (table.version, version),
            (table.commit_seq, given.receipt.commit_seq),
        ];
        for (column, value) in integers {
            if let (Some(column), Some(value)) = (column, value) {
                self.assign(column, Value::Integer(value), snapshot.as_mut());
            }
        }
        for column in [created_at, updated_at].into_iter().flatten() {
            if let Some(now) = given.now {
                self.assign_written(column, now.clone(), snapshot.as_mut());
            }
        }
        for (column, value) in table.computed_columns().zip(given.computed(step)) {
            self.assign(column, value.clone(), snapshot.as_mut());
        }
        self.original = snapshot;
        self.checks = None;
        if self.life == Life::New {
            self.life = Life::Stored;
        }
    }

    /// The key under which it is looked up, and its columns in the entity as far as they still hold a temporary one.
    fn take_key(&mut self, given: &Given<'_>) {
        let Ok(mut key) = self.key.to_values() else {
            return;
        };
        let mut is_replaced = false;
        for (value, column) in key.iter_mut().zip(E::TABLE.key) {
            if let Some(real) = given.replacement(E::TABLE, *column, value) {
                if (self.entity.encode(*column)).is_ok_and(|present| present == *value) {
                    self.assign(*column, real.clone(), None);
                }
                *value = real;
                is_replaced = true;
            }
        }
        if is_replaced && let Some(key) = E::Key::from_values(&key) {
            self.key = key;
        }
    }

    /// Replaces temporary keys in the columns that refer to other entities.
    pub(crate) fn replace_references(&mut self, replacement: Replacement<'_>) {
        let table = E::TABLE;
        for column in (0..table.columns.len()).filter(|column| table.refers(*column)) {
            let value = self.entity.encode(column).ok();
            if let Some(key) = value.and_then(|value| replacement(table, column, &value)) {
                self.assign(column, key, None);
            }
        }
    }

    /// The same for a column that is the application's: what it has set since stays, and is to be saved.
    fn assign_written(&mut self, column: usize, value: Value, snapshot: Option<&mut Snapshot>) {
        match snapshot {
            Some(snapshot) if self.entity.encode(column).ok() != snapshot[column] => {
                snapshot[column] = Some(value);
            }
            snapshot => self.assign(column, value, snapshot),
        }
    }

    /// The row holds this value whether or not the field can: one that is too narrow keeps what it has, and
    /// the next read of the row says so.
    fn assign(&mut self, column: usize, value: Value, snapshot: Option<&mut Snapshot>) {
        drop(self.entity.assign(column, value.as_ref()));
        if let Some(snapshot) = snapshot {
            snapshot[column] = Some(value);
        }
    }

    /// Whether a plan that writes this entity is in flight.
    pub(crate) const fn is_in_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// Refuses what needs to know what the row holds, while a plan in flight may have written it.
    pub(crate) fn check_answered(&self) -> Result<()> {
        if !self.is_in_flight() {
            return Ok(());
        }
        let message = "a save of this entity is not answered yet: end its transaction, or await a find, first";
        let error = Error::new(ErrorKind::Refused, message).with_table(E::TABLE.name);
        Err(self.keyed(error))
    }

    pub(in crate::tracker) fn keyed(&self, error: Error) -> Error {
        match self.key.to_values() {
            Ok(key) if !key.iter().any(is_temporary) => error.with_key(key),
            _ => error,
        }
    }
}

fn replace_temporary(table: &'static TableDef, snapshot: &mut Snapshot, given: &Given<'_>) {
    for (column, value) in snapshot.iter_mut().enumerate() {
        let key = (value.as_ref()).and_then(|value| given.replacement(table, column, value));
        if key.is_some() {
            *value = key;
        }
    }
}

/// The sets of unique columns in which some of these changes are.
fn unique_changes(
    table: &'static TableDef,
    original: &Snapshot,
    changes: &[ColumnChange],
) -> Vec<UniqueChange> {
    // One that was only marked is written as it is.
    let changed = |column: &usize| {
        (changes.iter()).find(|change| {
            change.column == *column && original[*column].as_ref() != Some(&change.value)
        })
    };
    let sets =
        (table.unique_keys()).filter(|set| set.iter().any(|column| changed(column).is_some()));
    let before = |column: &usize| original[*column].clone().unwrap_or_default();
    sets.map(|columns| UniqueChange {
        columns,
        freed: columns.iter().map(before).collect(),
        taken: (columns.iter())
            .map(|column| changed(column).map_or_else(|| before(column), |it| it.value.clone()))
            .collect(),
    })
    .collect()
}

/// The rows to which these changes end a reference, if the database would let the row follow or refuse their deletion.
fn left_rows(
    table: &'static TableDef,
    original: &Snapshot,
    changes: &[ColumnChange],
) -> Vec<RowKey> {
    use ForeignKeyAction::{Cascade, Restrict};

    let changes = |column: &usize| changes.iter().any(|change| change.column == *column);
    (table.foreign_keys())
        .filter(|key| matches!(key.reference.on_delete, Cascade | Restrict))
        .filter(|key| key.columns.iter().any(changes))
        // What is not known may be one, NULL is none.
        .filter(|key| !(key.columns.iter()).any(|column| original[*column] == Some(Value::Null)))
        .map(|key| RowKey {
            table: (key.reference.table)(),
            key: (key.columns.iter())
                .map(|column| original[*column].clone().unwrap_or_default())
                .collect(),
        })
        .collect()
}

/// The rows to which these changes make the row refer.
fn joined_rows(
    table: &'static TableDef,
    original: &Snapshot,
    changes: &[ColumnChange],
) -> Vec<RowKey> {
    let changed = |column| changes.iter().find(|change| change.column == column);
    let value = |column: usize| match changed(column) {
        Some(change) => change.value.clone(),
        None => original[column].clone().unwrap_or_default(),
    };
    (table.foreign_keys())
        .filter(|key| (key.columns.iter()).any(|column| changed(*column).is_some()))
        .map(|key| RowKey {
            table: (key.reference.table)(),
            key: key.columns.iter().map(|column| value(*column)).collect(),
        })
        .collect()
}

/// The application changed a column that is not its to change.
fn kept(table: &'static TableDef, column: usize) -> Error {
    let message = if table.is_key(column) {
        "the primary key of a tracked entity was changed: add a new entity and remove this one"
    } else {
        "the version is kept by the library: to save against one that was read earlier, attach the entity with it"
    };
    Error::new(ErrorKind::Refused, message)
        .with_table(table.name)
        .with_column(table.columns[column].name)
}

pub(crate) fn snapshot<E: Entity>(entity: &E) -> Snapshot {
    (0..E::TABLE.columns.len())
        .map(|column| entity.encode(column).ok())
        .collect()
}

pub(crate) fn known(snapshot: &Snapshot) -> Vec<Value> {
    (snapshot.iter())
        .map(|value| value.clone().unwrap_or_default())
        .collect()
}
