//! What the database did by itself when rows were deleted: tracked entities follow, as their references declare.
//!
//! | `on_delete` | an entity whose row referred to a deleted one |
//! |---|---|
//! | `Cascade` | is gone, and those that referred to it follow |
//! | `SetNull` | refers to nothing; what was changed locally stays. As `SetDefault` if a column is computed from it |
//! | `SetDefault` | is no longer tracked: only the database knows what the row holds |
//! | `NoAction`, `Restrict` | there is none: the delete would have been refused |
//!
//! What counts is the row as it was read or last written, not what the entity was changed to since. An entity that is
//! still to be inserted is no row, and stays. A plan is accepted step by step: what it writes after the delete is not
//! in the row yet.

use std::{borrow::Cow, collections::HashMap, mem};

use crate::{
    entity::{Entity, ForeignKey, ForeignKeyAction, Identities, Identity, TableDef},
    tracker::{Record, RowKey, Tracker, record::Life, set::EntitySet},
    value::{PrimaryKey, Value, ValueRef},
};

/// A reference whose target lost rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broken<'a> {
    pub(crate) columns: &'a [usize],
    pub(crate) on_delete: ForeignKeyAction,
    pub(crate) target: &'static TableDef,
    /// The keys of those rows, sorted.
    pub(crate) gone: &'a [Identities<'a>],
    /// The commit that changed the rows.
    pub(crate) commit_seq: Option<i64>,
}

impl Tracker {
    /// Follows the database after these rows were deleted.
    pub(crate) fn cascade(&mut self, mut deleted: Vec<RowKey>, commit_seq: Option<i64>) {
        while !deleted.is_empty() {
            let rows = mem::take(&mut deleted);
            let mut gone: HashMap<&'static str, Vec<Identities<'_>>> = HashMap::new();
            for RowKey { table, key } in &rows {
                let key = Identities::within(table, table.key, key);
                gone.entry(table.name).or_default().extend(key);
            }
            for keys in gone.values_mut() {
                keys.sort_unstable();
            }
            for set in &mut self.sets {
                let table = set.table();
                for ForeignKey { columns, reference } in table.foreign_keys() {
                    let target = (reference.table)();
                    let Some(gone) = gone.get(target.name) else {
                        continue;
                    };
                    let keys = set.follow(Broken {
                        columns,
                        on_delete: reference.on_delete,
                        target,
                        gone,
                        commit_seq,
                    });
                    deleted.extend(keys.into_iter().map(|key| RowKey { table, key }));
                }
            }
        }
    }
}

impl<E: Entity> EntitySet<E> {
    /// Does what the database did with the rows of a broken reference; the keys of those that it deleted.
    pub(crate) fn follow(&mut self, broken: Broken<'_>) -> Vec<Vec<Value>> {
        use ForeignKeyAction::{Cascade, NoAction, Restrict};

        if matches!(broken.on_delete, NoAction | Restrict) {
            return Vec::new();
        }
        let taken = self.take_where(|record| record.is_lost(broken));
        if broken.on_delete != Cascade {
            return Vec::new();
        }
        (taken.iter())
            .filter_map(|record| record.key.to_values().ok())
            .collect()
    }
}

/// Whether the database computes something from these columns, or may: their names are in the expression.
fn computes_from(table: &TableDef, columns: &[usize]) -> bool {
    let mut expressions = (table.columns.iter())
        .filter_map(|column| column.generated)
        .map(|generated| generated.expression.to_ascii_lowercase());
    expressions.any(|expression| {
        (columns.iter())
            .any(|column| expression.contains(&table.columns[*column].name.to_ascii_lowercase()))
    })
}

impl<E: Entity> Record<E> {
    /// Follows a broken reference; whether the row is gone, or not known any more.
    fn is_lost(&mut self, broken: Broken<'_>) -> bool {
        use ForeignKeyAction::{Cascade, SetNull};

        let is_inserted_later = self.flight.as_ref().is_some_and(|flight| flight.inserts);
        if self.life == Life::New || is_inserted_later || !self.refers(broken) {
            return false;
        }
        if broken.on_delete == Cascade {
            return true;
        }
        // To delete a row, only its key has to be known. What a later step writes comes back with what is computed.
        let is_removed = self.life == Life::Removed;
        if broken.on_delete == SetNull
            && (is_removed || self.flight.is_some() || !computes_from(E::TABLE, broken.columns))
        {
            self.refer_to_nothing(broken);
            return false;
        }
        !is_removed
            && !broken
                .columns
                .iter()
                .all(|column| self.is_rewritten(*column))
    }

    /// Whether the row refers to one that is gone.
    fn refers(&self, broken: Broken<'_>) -> bool {
        let Broken { target, gone, .. } = broken;
        // Most references are one column, and a context may track many.
        if let ([column], [key]) = (broken.columns, target.key) {
            let value = self.row_value(*column);
            let identity = (value.as_deref())
                .and_then(|value| Identity::of(value, &target.columns[*key]))
                .map(Identities::One);
            return identity.is_some_and(|identity| gone.binary_search(&identity).is_ok());
        }
        let values = broken.columns.iter().map(|column| self.row_value(*column));
        let values: Option<Vec<_>> = values.map(|value| value.map(Cow::into_owned)).collect();
        values.is_some_and(|values| {
            let identities = Identities::within(target, target.key, &values);
            identities.is_some_and(|identities| gone.binary_search(&identities).is_ok())
        })
    }

    /// What the row holds in a column, as far as that is known.
    fn row_value(&self, column: usize) -> Option<Cow<'_, Value>> {
        match &self.original {
            Some(original) => original[column].as_ref().map(Cow::Borrowed),
            None => self.entity.encode(column).ok().map(Cow::Owned),
        }
    }

    /// Whether a plan in flight writes the column in a step that is yet to be accepted.
    fn is_rewritten(&self, column: usize) -> bool {
        let (Some(flight), Some(original)) = (&self.flight, &self.original) else {
            return false;
        };
        let is_same = match &flight.written {
            Some(written) => written[column] == original[column],
            None => self.entity.encode(column).ok() == original[column],
        };
        !is_same || flight.forced.contains(&column)
    }

    /// The row's reference became NULL. So does the entity's, unless it was changed meanwhile.
    fn refer_to_nothing(&mut self, broken: Broken<'_>) {
        for column in broken.columns {
            if self.is_rewritten(*column) {
                continue;
            }
            if !self.differs_itself(*column) {
                // A field that cannot be NULL is of a table whose column cannot be either: it was not set.
                drop(self.entity.assign(*column, ValueRef::Null));
            }
            self.row_became(*column, &Value::Null);
        }
        if let (Some(column), Some(number)) = (E::TABLE.commit_seq, broken.commit_seq) {
            drop(self.entity.assign(column, ValueRef::Integer(number)));
            self.row_became(column, &Value::Integer(number));
        }
    }

    /// What is kept of the row follows, as does what it is going to be when a plan in flight is accepted.
    fn row_became(&mut self, column: usize, value: &Value) {
        let written = self
            .flight
            .as_mut()
            .and_then(|flight| flight.written.as_mut());
        for snapshot in self.original.as_mut().into_iter().chain(written) {
            snapshot[column] = Some(value.clone());
        }
    }
}
