//! From values to arguments: temporary keys become questions to the writer.

use std::slice;

use chrono::Utc;

use crate::{
    entity::TableDef,
    error::{Error, ErrorKind, Result},
    flush::{Action, PlannedRow, UniqueTaken},
    sql::Arg,
    tracker::{
        Change, Changed, Changes, ColumnChange, RowKey, TemporaryKey, TemporaryKeys, UniqueChange,
        is_temporary, was_given,
    },
    value::{ColumnType, Value},
};

/// Knows the temporary keys of the entities that a save inserts.
#[derive(Debug)]
pub(crate) struct Resolver {
    keys: TemporaryKeys,
    /// The time of the save, once it was asked for.
    now: Option<Value>,
}

impl Resolver {
    pub(crate) fn new(changes: &Changes) -> Result<Self> {
        let mut keys = Vec::new();
        for change in &changes.0 {
            let table = change.table;
            if let Changed::Inserted { values } = &change.changed
                && let Some(column) = table.writer_key()
                && let value @ Value::Integer(key) = &values[column]
                && is_temporary(value)
            {
                keys.push(TemporaryKey { key: *key, table });
            }
        }
        TemporaryKeys::new(keys)
            .map(|keys| Self { keys, now: None })
            .map_err(|twice| {
                refused(
                    twice.table,
                    twice.table.key[0],
                    "holds the temporary key of another entity",
                )
            })
    }

    /// The keys that are asked for, and the time of the save if any row holds it.
    pub(crate) fn into_parts(self) -> (TemporaryKeys, Option<Value>) {
        (self.keys, self.now)
    }

    pub(crate) fn plan(&mut self, change: Change) -> Result<PlannedRow> {
        let Change {
            table,
            place,
            changed,
        } = change;
        let action = match changed {
            Changed::Inserted { values } => self.insert(table, values)?,
            Changed::Updated {
                key,
                version,
                columns,
                unique,
                left,
                joined,
            } => {
                check_key(table, &key)?;
                let unique = (unique.into_iter())
                    .map(|change| self.unique(table, change))
                    .collect::<Result<_>>()?;
                self.update(table, key, version, columns, (unique, left, joined))?
            }
            Changed::Deleted { values } => {
                for column in table.key {
                    check_key(table, slice::from_ref(&values[*column]))?;
                }
                Action::Delete { values }
            }
        };
        Ok(PlannedRow {
            table,
            place,
            action,
            may_be_gone: false,
        })
    }

    fn update(
        &mut self,
        table: &'static TableDef,
        key: Vec<Value>,
        version: Option<i64>,
        changes: Vec<ColumnChange>,
        (unique, left, joined): (Vec<UniqueTaken>, Vec<RowKey>, Vec<RowKey>),
    ) -> Result<Action> {
        let mut columns = Vec::with_capacity(changes.len() + 1);
        let mut values = Vec::with_capacity(changes.len() + 1);
        for change in changes {
            if table.updated_at == Some(change.column) {
                continue;
            }
            columns.push(change.column);
            values.push(self.argument(table, change.column, change.value)?);
        }
        if let Some(column) = table.updated_at {
            columns.push(column);
            values.push(Arg::Value(self.now()?));
        }
        Ok(Action::Update {
            key,
            version,
            columns,
            values,
            unique,
            left,
            joined,
        })
    }

    fn unique(&self, table: &'static TableDef, change: UniqueChange) -> Result<UniqueTaken> {
        let UniqueChange {
            columns,
            freed,
            taken,
        } = change;
        let taken = (columns.iter().zip(taken))
            .map(|(column, value)| self.argument(table, *column, value))
            .collect::<Result<_>>()?;
        Ok(UniqueTaken {
            columns,
            freed,
            taken,
        })
    }

    /// One time for the whole save.
    fn now(&mut self) -> Result<Value> {
        if let Some(now) = &self.now {
            return Ok(now.clone());
        }
        let now = (Utc::now().encode())
            .map_err(|error| Error::new(ErrorKind::Value, error.to_string()))?;
        self.now = Some(now.clone());
        Ok(now)
    }

    fn insert(&mut self, table: &'static TableDef, mut values: Vec<Value>) -> Result<Action> {
        let FirstValues {
            version,
            created_at,
            updated_at,
        } = first_values(table, &mut values, || self.now())?;
        let values = (values.into_iter().enumerate())
            .map(|(column, value)| self.argument(table, column, value))
            .collect::<Result<Vec<_>>>()?;
        Ok(Action::Insert {
            values,
            version,
            created_at,
            updated_at,
        })
    }

    fn argument(&self, table: &'static TableDef, column: usize, value: Value) -> Result<Arg> {
        let Value::Integer(key) = value else {
            return Ok(Arg::Value(value));
        };
        if !is_temporary(&value) {
            return Ok(Arg::Value(value));
        }
        let source = match table.key_source(column) {
            Some(source) => source,
            // A number like any other: one hash in 65,536 is in that range.
            None if !was_given(key) => return Ok(Arg::Value(value)),
            None => {
                return Err(refused(
                    table,
                    column,
                    "holds a temporary key: only a column declared as a reference gets the real one at save",
                ));
            }
        };
        self.keys
            .position(source, key)
            .map(Arg::Key)
            .ok_or_else(|| {
                refused(
                    table,
                    column,
                    "holds a temporary key that is not of an entity added to this context",
                )
            })
    }
}

/// What the library writes in a new row.
#[derive(Debug)]
pub(crate) struct FirstValues {
    pub(crate) version: Option<i64>,
    /// The columns that get the time of the save.
    pub(crate) created_at: Option<usize>,
    pub(crate) updated_at: Option<usize>,
}

/// Completes the values of all columns of a new row: its version, its commit number, and the times that are unset.
pub(crate) fn first_values(
    table: &'static TableDef,
    values: &mut [Value],
    mut now: impl FnMut() -> Result<Value>,
) -> Result<FirstValues> {
    let mut version = None;
    if let Some(column) = table.version {
        let first = match values[column] {
            Value::Integer(version) if version > 0 => version,
            _ => 1,
        };
        values[column] = Value::Integer(first);
        version = Some(first);
    }
    if let Some(column) = table.commit_seq {
        values[column] = Value::Integer(0);
    }
    let is_unset = |column: &usize| table.columns[*column].is_unset_time(&values[*column]);
    let created_at = table.created_at.filter(is_unset);
    let updated_at = table.updated_at.filter(is_unset);
    for column in [created_at, updated_at].into_iter().flatten() {
        values[column] = now()?;
    }
    Ok(FirstValues {
        version,
        created_at,
        updated_at,
    })
}

/// No row has a temporary key.
fn check_key(table: &'static TableDef, key: &[Value]) -> Result<()> {
    match key.iter().position(is_temporary) {
        Some(at) if table.key_source(table.key[at]).is_some() => Err(refused(
            table,
            table.key[at],
            "holds a temporary key, which no row has",
        )),
        _ => Ok(()),
    }
}

fn refused(table: &'static TableDef, column: usize, message: &'static str) -> Error {
    Error::new(ErrorKind::Value, message)
        .with_table(table.name)
        .with_column(table.columns[column].name)
}
