//! The values of rows, from entities and keys.

use chrono::Utc;

use crate::{
    entity::{Entity, TableDef, encode, encode_column},
    error::{Error, ErrorKind, Result},
    flush::first_values,
    sql::ChunkKey,
    tracker::{is_temporary, was_given},
    value::{ColumnType as _, KeyOrigin, PrimaryKey as _, Value},
};

/// Makes the values of new rows.
#[derive(Debug)]
pub(in crate::bulk) struct NewRows {
    /// The columns that are written, in the order of the placeholders.
    pub(in crate::bulk) columns: Vec<usize>,
    /// The key that the writer gives, and its position among them.
    writer_key: Option<(usize, usize)>,
    /// The largest key that rows of this chunk bring along.
    above: i64,
    /// The time of the chunk.
    now: Option<Value>,
}

impl NewRows {
    pub(in crate::bulk) fn of(table: &'static TableDef) -> Self {
        let columns: Vec<usize> = table.written_columns().collect();
        let writer_key = table.writer_key().and_then(|key| {
            let at = columns.iter().position(|column| *column == key)?;
            Some((at, key))
        });
        Self {
            columns,
            writer_key,
            above: 0,
            now: None,
        }
    }

    /// Adds the values of a row.
    pub(in crate::bulk) fn push<E: Entity>(
        &mut self,
        mut entity: E,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let table = E::TABLE;
        let is_new = entity.key().is_unset();
        if is_new
            && table.key_origin == KeyOrigin::Context
            && table.shared_key().is_none()
            && let Some(key) = E::Key::generate()
        {
            entity.set_key(key);
        }
        let mut row = encode(&entity)?;
        let now = &mut self.now;
        first_values(table, &mut row, || time(now))?;
        for column in &self.columns {
            let value = &row[*column];
            match self.writer_key {
                Some((_, key)) if key == *column => {
                    if is_new {
                        values.push(Value::Null);
                        continue;
                    }
                    if let Value::Integer(key) = *value
                        && key < i64::MAX
                    {
                        self.above = self.above.max(key);
                    }
                }
                _ => {}
            }
            check(table, *column, value)?;
            values.push(std::mem::take(&mut row[*column]));
        }
        Ok(())
    }

    /// The key that the writer gives to rows of the chunk; the next chunk has a time of its own.
    pub(in crate::bulk) fn finish(&mut self, table: &'static TableDef) -> Option<ChunkKey> {
        self.now = None;
        let above = std::mem::take(&mut self.above);
        let (at, key) = self.writer_key?;
        Some(ChunkKey {
            at,
            column: table.columns[key].name,
            above,
        })
    }
}

/// Adds the values of these columns, as they are.
pub(in crate::bulk) fn push_columns<E: Entity>(
    entity: &E,
    columns: &[usize],
    values: &mut Vec<Value>,
) -> Result<()> {
    for column in columns {
        let value = encode_column(entity, *column)?;
        check(E::TABLE, *column, &value)?;
        values.push(value);
    }
    Ok(())
}

/// The time of a chunk.
pub(in crate::bulk) fn time(now: &mut Option<Value>) -> Result<Value> {
    if let Some(now) = now {
        return Ok(now.clone());
    }
    let time =
        (Utc::now().encode()).map_err(|error| Error::new(ErrorKind::Value, error.to_string()))?;
    Ok(now.insert(time).clone())
}

/// No row has a temporary key, which is that of an entity that a context has not saved yet, nor a value that was not read.
pub(in crate::bulk) fn check(table: &'static TableDef, column: usize, value: &Value) -> Result<()> {
    let refused = |message: &'static str| {
        Err(Error::new(ErrorKind::Value, message)
            .with_table(table.name)
            .with_column(table.columns[column].name))
    };
    let number = match *value {
        Value::Integer(number) => number,
        Value::Unread => {
            return refused(
                "the deferred column is not loaded: load it, or name the columns to set",
            );
        }
        _ => return Ok(()),
    };
    if !is_temporary(value) || (table.key_source(column).is_none() && !was_given(number)) {
        return Ok(());
    }
    refused("holds a temporary key: save the entity that has it first")
}
