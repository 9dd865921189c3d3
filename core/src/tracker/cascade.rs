//! What the database did by itself when rows were deleted: tracked entities follow, as their references declare.
//!
//! | `on_delete` | an entity whose row referred to a deleted one |
//! |---|---|
//! | `Cascade` | is gone, and those that referred to it follow |
//! | `SetNull` | refers to nothing; what was changed locally stays |
//! | `SetDefault` | is no longer tracked: only the database knows its new reference |
//! | `NoAction`, `Restrict` | there is none: the delete would have been refused |
//!
//! What counts is the row as it was read or last written, not what the entity was changed to since. An entity that is
//! still to be inserted is no row, and stays.

use std::collections::{HashMap, HashSet};

use crate::{
    entity::{Entity, ForeignKey, ForeignKeyAction},
    tracker::{Record, RowKey, Tracker, record::Life, set::EntitySet},
    value::{PrimaryKey, Value, ValueRef},
};

/// Keys of rows that are gone.
pub(crate) type Keys = HashSet<Vec<KeyPart>>;

/// A value as keys are compared.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyPart {
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl KeyPart {
    /// `None` for NULL, which refers to nothing; no key is a REAL.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null | Value::Real(_) => None,
            Value::Integer(value) => Some(Self::Integer(*value)),
            Value::Text(value) => Some(Self::Text(value.clone())),
            Value::Blob(value) => Some(Self::Blob(value.clone())),
        }
    }
}

/// A reference whose target lost rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broken<'a> {
    pub(crate) columns: &'a [usize],
    pub(crate) on_delete: ForeignKeyAction,
    pub(crate) gone: &'a Keys,
    /// The commit that changed the rows.
    pub(crate) commit_seq: Option<i64>,
}

impl Tracker {
    /// Follows the database after these rows were deleted.
    pub(crate) fn cascade(&mut self, deleted: &[RowKey], commit_seq: Option<i64>) {
        let mut deleted = deleted.to_vec();
        while !deleted.is_empty() {
            let mut gone: HashMap<&'static str, Keys> = HashMap::new();
            for row in deleted.drain(..) {
                let key: Option<Vec<_>> = row.key.iter().map(KeyPart::of).collect();
                gone.entry(row.table.name).or_default().extend(key);
            }
            for set in &mut self.sets {
                let table = set.table();
                for ForeignKey { columns, reference } in table.foreign_keys() {
                    let Some(gone) = gone.get((reference.table)().name) else {
                        continue;
                    };
                    let keys = set.follow(Broken {
                        columns,
                        on_delete: reference.on_delete,
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
        use ForeignKeyAction::{NoAction, Restrict, SetDefault, SetNull};

        if matches!(broken.on_delete, NoAction | Restrict) {
            return Vec::new();
        }
        let taken = self.take_where(|record| {
            let refers: Option<Vec<_>> = (broken.columns.iter())
                .map(|column| KeyPart::of(&record.row_value(*column)?))
                .collect();
            if record.life == Life::New || !refers.is_some_and(|key| broken.gone.contains(&key)) {
                return false;
            }
            if broken.on_delete == SetNull {
                record.refer_to_nothing(broken);
            }
            broken.on_delete != SetNull
        });
        if broken.on_delete == SetDefault {
            return Vec::new();
        }
        (taken.iter())
            .filter_map(|record| record.key.to_values().ok())
            .collect()
    }
}

impl<E: Entity> Record<E> {
    /// What the row holds in a column, as far as that is known.
    fn row_value(&self, column: usize) -> Option<Value> {
        match &self.original {
            Some(original) => original[column].clone(),
            None => self.entity.encode(column).ok(),
        }
    }

    /// The row's reference became NULL. So does the entity's, unless it was changed meanwhile.
    fn refer_to_nothing(&mut self, broken: Broken<'_>) {
        for column in broken.columns {
            if !self.differs_itself(*column) {
                // A field that cannot be NULL is of a table whose column cannot be either: it was not set.
                drop(self.entity.assign(*column, ValueRef::Null));
            }
            if let Some(original) = &mut self.original {
                original[*column] = Some(Value::Null);
            }
        }
        if let (Some(column), Some(number)) = (E::TABLE.commit_seq, broken.commit_seq) {
            drop(self.entity.assign(column, ValueRef::Integer(number)));
            if let Some(original) = &mut self.original {
                original[column] = Some(Value::Integer(number));
            }
        }
    }
}
