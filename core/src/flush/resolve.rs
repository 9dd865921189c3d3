//! From values to arguments: temporary keys become questions to the writer.

use crate::{
    entity::TableDef,
    error::{Error, ErrorKind, Result},
    flush::{Action, PlannedRow},
    sql::Arg,
    tracker::{Change, Changed, Changes, TemporaryKey, TemporaryKeys, is_temporary, was_given},
    value::{KeyOrigin, Value},
};

/// Knows the temporary keys of the entities that a save inserts.
#[derive(Debug)]
pub(crate) struct Resolver {
    keys: TemporaryKeys,
}

impl Resolver {
    pub(crate) fn new(changes: &Changes) -> Result<Self> {
        let mut keys = Vec::new();
        for change in &changes.0 {
            let table = change.table;
            if let Changed::Inserted { values } = &change.changed
                && has_own_key(table)
                && let value @ Value::Integer(key) = &values[table.key]
                && is_temporary(value)
            {
                keys.push(TemporaryKey { key: *key, table });
            }
        }
        TemporaryKeys::new(keys)
            .map(|keys| Self { keys })
            .map_err(|twice| {
                let column = twice.table.key;
                refused(
                    twice.table,
                    column,
                    "holds the temporary key of another entity",
                )
            })
    }

    pub(crate) fn into_keys(self) -> TemporaryKeys {
        self.keys
    }

    pub(crate) fn plan(&self, change: Change) -> Result<PlannedRow> {
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
            } => {
                check_key(table, &key)?;
                let mut action = (Vec::new(), Vec::new(), Vec::new());
                for change in columns {
                    action.0.push(change.column);
                    action
                        .1
                        .push(self.argument(table, change.column, change.value)?);
                    action
                        .2
                        .extend(change.freed.map(|value| (change.column, value)));
                }
                let (columns, values, freed) = action;
                Action::Update {
                    key,
                    version,
                    columns,
                    values,
                    freed,
                }
            }
            Changed::Deleted { values } => {
                check_key(table, &values[table.key])?;
                Action::Delete { values }
            }
        };
        Ok(PlannedRow {
            table,
            place,
            action,
        })
    }

    fn insert(&self, table: &'static TableDef, mut values: Vec<Value>) -> Result<Action> {
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
        let values = (values.into_iter().enumerate())
            .map(|(column, value)| self.argument(table, column, value))
            .collect::<Result<Vec<_>>>()?;
        let key = match values[table.key] {
            Arg::Key(position) => Some(position),
            Arg::Value(_) => None,
        };
        Ok(Action::Insert {
            values,
            key,
            version,
        })
    }

    fn argument(&self, table: &'static TableDef, column: usize, value: Value) -> Result<Arg> {
        let Value::Integer(key) = value else {
            return Ok(Arg::Value(value));
        };
        if !is_temporary(&value) {
            return Ok(Arg::Value(value));
        }
        let target = match table.columns[column].references {
            Some(reference) => (reference.table)(),
            None if column == table.key && has_own_key(table) => table,
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
            .position(target, key)
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

/// Whether the writer gives keys of this table; one that refers to another table takes its key from there.
fn has_own_key(table: &TableDef) -> bool {
    table.key_origin == KeyOrigin::Writer && table.key_column().references.is_none()
}

fn check_key(table: &'static TableDef, key: &Value) -> Result<()> {
    if is_temporary(key) {
        return Err(refused(
            table,
            table.key,
            "holds a temporary key, which no row has",
        ));
    }
    Ok(())
}

fn refused(table: &'static TableDef, column: usize, message: &'static str) -> Error {
    Error::new(ErrorKind::Value, message)
        .with_table(table.name)
        .with_column(table.columns[column].name)
}
