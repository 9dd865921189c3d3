//! What becomes of entities that lost a race: ours over the row, the row as it is, or column by column.
//!
//! A conflict carries the row as the database has it, so that all of this needs no database. Nothing is changed
//! before everything is known to work.

use std::fmt;

use crate::{
    entity::{self, Column, Entity},
    error::{Conflict, Error, ErrorKind, Result},
    tracker::{
        Place, Record, Tracker,
        handle::position,
        record::{Life, Snapshot, known, snapshot},
        set::EntitySet,
    },
    value::{ColumnType, PrimaryKey, Value},
};

/// Whose values are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Winner {
    /// The context's.
    Client,
    /// The database's.
    Store,
}

/// One thing that a merge cannot decide by itself: a column that was changed on both sides to different values, or a
/// row that was changed on one side and deleted on the other.
#[derive(Clone, Copy)]
pub struct Clash<'a> {
    conflict: &'a Conflict,
    column: Option<usize>,
}

impl<'a> Clash<'a> {
    /// The entity, with all its values as they are now.
    #[must_use]
    pub const fn conflict(&self) -> &'a Conflict {
        self.conflict
    }

    /// The column's name; `None` if it is about the row as a whole.
    #[must_use]
    pub fn column(&self) -> Option<&'static str> {
        Some(self.conflict.columns[self.column?])
    }

    /// Whether it is about this column, or about the optional embedded struct or the enum of which it is part.
    #[must_use]
    pub fn is<E: Entity, T: ColumnType>(&self, column: Column<E, T>) -> bool {
        self.conflict.table == E::TABLE.name
            && self.column == Some(E::TABLE.group(column.index()).start)
    }

    /// The column's value as it was read; NULL if that is not known.
    #[must_use]
    pub fn original(&self) -> Option<&'a Value> {
        self.conflict.original.get(self.column?)
    }

    /// The column's value in the context.
    #[must_use]
    pub fn current(&self) -> Option<&'a Value> {
        self.conflict.current.get(self.column?)
    }

    /// The column's value in the database.
    #[must_use]
    pub fn database(&self) -> Option<&'a Value> {
        self.conflict.database.as_ref()?.get(self.column?)
    }
}

/// No values.
impl fmt::Debug for Clash<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clash")
            .field("entity", &self.conflict.entity)
            .field("column", &self.column())
            .finish_non_exhaustive()
    }
}

/// What is done with one entity.
#[derive(Debug)]
pub(crate) enum Resolution {
    /// It stays as it is, over the row; these columns are taken from the row.
    Ours(Vec<usize>),
    /// It becomes what the row is.
    Theirs,
}

/// How an entity and its row went apart.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// The columns that only the row changed.
    pub(crate) theirs: Vec<usize>,
    /// The columns that both changed, to different values.
    pub(crate) clashing: Vec<usize>,
}

impl Tracker {
    pub(crate) fn client_wins(&mut self, error: &Error) -> Result<()> {
        self.resolve_each(error, || Resolution::Ours(Vec::new()))
    }

    pub(crate) fn store_wins(&mut self, error: &Error) -> Result<()> {
        self.resolve_each(error, || Resolution::Theirs)
    }

    fn resolve_each(&mut self, error: &Error, resolution: impl Fn() -> Resolution) -> Result<()> {
        let resolved = self.contested(error)?.into_iter();
        self.resolve(
            resolved
                .map(|(place, conflict)| (place, conflict, resolution()))
                .collect(),
        )
    }

    /// Takes what can be taken of both sides, and lets the clashes be decided.
    pub(crate) fn merge_with(
        &mut self,
        error: &Error,
        mut decide: impl FnMut(&Clash<'_>) -> Winner,
    ) -> Result<()> {
        let mut resolved = Vec::new();
        for (place, conflict) in self.contested(error)? {
            let resolution = self.merged(place, conflict, &mut decide)?;
            resolved.push((place, conflict, resolution));
        }
        self.resolve(resolved)
    }

    /// The same if nothing clashes.
    pub(crate) fn merge(&mut self, error: &Error) -> Result<()> {
        let mut clashing = Vec::new();
        for (place, conflict) in self.contested(error)? {
            let mut clashes = false;
            self.merged(place, conflict, &mut |_: &Clash<'_>| {
                clashes = true;
                Winner::Client
            })?;
            if clashes {
                clashing.extend(self.conflict(place, conflict.database.clone()));
            }
        }
        if clashing.is_empty() {
            self.merge_with(error, |_| Winner::Client)
        } else {
            Err(Error::unmerged(clashing))
        }
    }

    fn merged(
        &self,
        place: Place,
        conflict: &Conflict,
        decide: &mut impl FnMut(&Clash<'_>) -> Winner,
    ) -> Result<Resolution> {
        let set = &self.sets[place.set()];
        let Some(now) = set.conflict(place, conflict.database.clone()) else {
            return Ok(Resolution::Theirs);
        };
        let mut ask = |column| {
            decide(&Clash {
                conflict: &now,
                column,
            })
        };
        let whole = |winner| match winner {
            Winner::Client => Resolution::Ours(Vec::new()),
            Winner::Store => Resolution::Theirs,
        };
        let Some(row) = &now.database else {
            let nothing_here = now.deletes || !set.is_changed(place);
            return Ok(if nothing_here {
                Resolution::Theirs
            } else {
                whole(ask(None))
            });
        };
        if now.deletes {
            return Ok(whole(ask(None)));
        }
        let Comparison {
            mut theirs,
            clashing,
        } = set.compare(place, row)?;
        theirs.extend((clashing.into_iter()).filter(|column| ask(Some(*column)) == Winner::Store));
        Ok(Resolution::Ours(theirs))
    }

    /// The entities that an error is about.
    fn contested<'e>(&self, error: &'e Error) -> Result<Vec<(Place, &'e Conflict)>> {
        if error.conflicts().is_empty() {
            return Err(Error::new(
                ErrorKind::Refused,
                "the error is no conflict of entities: there is nothing to resolve; a session that conflicts is run again from its start",
            ));
        }
        let mut found = Vec::with_capacity(error.conflicts().len());
        for conflict in error.conflicts() {
            let place = self.place_of(conflict).ok_or_else(|| {
                about(
                    conflict,
                    "is not tracked any more: there is nothing to resolve",
                )
            })?;
            self.sets[place.set()].check_answered(place)?;
            found.push((place, conflict));
        }
        Ok(found)
    }

    fn place_of(&self, conflict: &Conflict) -> Option<Place> {
        let set = self.sets.iter().position(|set| {
            let table = set.table();
            (table.name, table.entity) == (conflict.table, conflict.entity)
        })?;
        let (index, serial) = self.sets[set].stored(&conflict.key)?;
        Some(Place {
            set: position(set),
            index,
            serial,
        })
    }

    fn resolve(&mut self, resolved: Vec<(Place, &Conflict, Resolution)>) -> Result<()> {
        for (place, conflict, resolution) in &resolved {
            let row = conflict.database.as_deref();
            self.sets[place.set()].check_resolution(*place, row, resolution)?;
        }
        for (place, conflict, resolution) in resolved {
            let row = conflict.database.as_deref();
            if self.sets[place.set()].resolve(place, row, resolution)? {
                self.listed.push(place);
            }
        }
        Ok(())
    }
}

impl<E: Entity> EntitySet<E> {
    /// Where the entity with this key is that has, or had, a row.
    pub(in crate::tracker) fn stored(&self, key: &[Value]) -> Option<(u32, u64)> {
        let key = E::Key::from_values(key)?;
        let at = |index: &u32| Some((*index, self.slots[*index as usize].as_ref()?));
        let (index, record) = (self.live.get(&key).and_then(at))
            .filter(|(_, record)| record.life == Life::Stored)
            .or_else(|| self.removed.get(&key).and_then(at))?;
        Some((index, record.serial))
    }

    /// Whether [`EntitySet::resolve`] will work.
    pub(in crate::tracker) fn check_resolution(
        &self,
        place: Place,
        row: Option<&[Value]>,
        resolution: &Resolution,
    ) -> Result<()> {
        let Some(row) = row else { return Ok(()) };
        let entity: E = entity::decode(row)?;
        match resolution {
            Resolution::Ours(_) => Ok(()),
            Resolution::Theirs => self.check_free(place, &entity.key()),
        }
    }

    /// Whether the entity has to be listed now.
    pub(in crate::tracker) fn resolve(
        &mut self,
        place: Place,
        row: Option<&[Value]>,
        resolution: Resolution,
    ) -> Result<bool> {
        let row: Option<E> = row.map(entity::decode).transpose()?;
        let Some(record) = self.record_mut(place) else {
            return Ok(false);
        };
        let listed = record.is_listed();
        match (resolution, row) {
            (Resolution::Theirs, Some(row)) => return Ok(self.refresh(place, row)),
            (Resolution::Ours(columns), Some(row)) => record.rebase(&row, &columns),
            (Resolution::Ours(_), None) if record.life == Life::Stored => {
                record.life = Life::New;
                record.original = None;
                record.forced.clear();
                record.checks = None;
            }
            (_, None) => {
                drop(self.take(place));
                return Ok(false);
            }
        }
        Ok(record.settle_list(listed))
    }
}

impl<E: Entity> Record<E> {
    /// Whether the next save checks against another version than the one that was read.
    fn is_stale(&self) -> bool {
        let read = (E::TABLE.version.zip(self.original.as_ref()))
            .map(|(version, original)| &original[version]);
        self.checks
            .is_some_and(|checks| read != Some(&Some(Value::Integer(checks))))
    }

    /// What differs from this row is what the next save writes; these columns are taken from it.
    fn rebase(&mut self, row: &E, columns: &[usize]) {
        let table = E::TABLE;
        let mut original = snapshot(row);
        // The row was found by this key, whatever the entity's own field says by now.
        let key = self.key.to_values().unwrap_or_default();
        for (column, value) in table.key.iter().zip(key) {
            original[*column] = Some(value);
        }
        for (column, value) in original.iter_mut().enumerate() {
            if *value == Some(Value::Unread) {
                *value = self.original_value(column);
            }
        }
        let values = known(&original);
        let created_at = (table.created_at).filter(|column| !self.differs_itself(*column));
        for column in 0..values.len() {
            let is_taken = table.keeps(column)
                || created_at == Some(column)
                || columns.contains(&table.group(column).start);
            if is_taken && !table.is_key(column) && original[column].is_some() {
                // It came from the field's own type, so it fits.
                drop(self.entity.assign_from(column, &values[..]));
            }
        }
        (self.forced).retain(|column| !columns.contains(&table.group(*column).start));
        self.checks = None;
        self.original = Some(original);
    }

    /// How the entity, as it was to be saved, and its row went apart.
    pub(in crate::tracker) fn compare(&self, row: &[Value]) -> Result<Comparison> {
        let row = entity::decode(row)?;
        Ok(self.compare_values(&snapshot::<E>(&row)))
    }

    fn compare_values(&self, row: &Snapshot) -> Comparison {
        let entity = snapshot(&self.entity);
        let written = self
            .flight
            .as_ref()
            .and_then(|flight| flight.written.as_ref());
        let current = written.unwrap_or(&entity);
        let original = self.original.as_ref().unwrap_or(&entity);
        let mut comparison = Comparison::default();
        // A form that was filled in from an older version: what it changes was not read from this row.
        let is_stale = self.is_stale();
        for column in (0..row.len()).filter(|column| !E::TABLE.keeps(*column)) {
            let group = E::TABLE.group(column);
            // What is right only together is one thing, of which the first column speaks.
            if group.start != column {
                continue;
            }
            let before = &original[group.clone()];
            let (now, there) = (&current[group.clone()], &row[group.clone()]);
            let is_unknown = |value: &Option<Value>| matches!(value, None | Some(Value::Unread));
            let unknown = before.iter().any(is_unknown) || (is_stale && now != before);
            // A deferred column that is not loaded goes with the row, and of one that was not read with it nothing is known.
            if [now, there].contains(&&[Some(Value::Unread)][..]) {
                continue;
            }
            if E::TABLE.updated_at == Some(column) {
                // Nobody changed it: the next save writes it anew.
                comparison.theirs.push(column);
                continue;
            }
            if !unknown && there == before {
                continue;
            }
            if !unknown && now == before && !group.clone().any(|column| self.is_forced(column)) {
                comparison.theirs.push(column);
            } else if now != there {
                comparison.clashing.push(column);
            }
        }
        comparison
    }
}

fn about(conflict: &Conflict, message: &'static str) -> Error {
    Error::new(ErrorKind::Refused, message)
        .with_table(conflict.table)
        .with_key(conflict.key.clone())
}
