//! Fields set by name, from a JSON object.

use serde_json::Map;

use crate::{
    entity::{Entity, TableDef},
    error::{Error, ErrorKind, Result},
    tracker::{
        Record, Tracked, Tracker,
        record::{Life, known, snapshot},
    },
    value::{JsonValue, Value, ValueError},
};

impl Tracker {
    /// Sets the fields that an object names; all of them, or none.
    pub(crate) fn set_values<E: Entity>(
        &mut self,
        handle: Tracked<E>,
        values: &JsonValue,
    ) -> Result<()> {
        let record = self.to_be_set(handle)?;
        let JsonValue::Object(members) = values else {
            let message = "values are set from a struct or a JSON object, which names the fields";
            return Err(Error::new(ErrorKind::Value, message).with_table(E::TABLE.name));
        };
        let mut named = Named::<E>::default();
        named
            .members("", members)
            .and_then(|()| record.check_given(&named.values))
            .map_err(|error| record.keyed(error))?;
        self.set_given(handle, named.values)
    }

    /// Whether columns can be set to these.
    pub(crate) fn check_given<E: Entity>(
        &self,
        handle: Tracked<E>,
        values: &[(usize, Value)],
    ) -> Result<()> {
        let record = self.to_be_set(handle)?;
        record
            .check_given(values)
            .map_err(|error| record.keyed(error))
    }

    /// Sets columns that were checked; all of them, or none.
    pub(crate) fn set_given<E: Entity>(
        &mut self,
        handle: Tracked<E>,
        values: Vec<(usize, Value)>,
    ) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        self.touch(handle);
        let record = (self.set_of(handle)).and_then(|set| set.record_mut(handle.place));
        record.map_or(Ok(()), |record| record.set_given(values))
    }

    fn to_be_set<E: Entity>(&self, handle: Tracked<E>) -> Result<&Record<E>> {
        let record = self.record(handle).ok_or_else(|| {
            refused::<E>("is not tracked by this context: the handle is stale, or of another one")
        })?;
        if record.life == Life::Removed {
            return Err(refused::<E>("is to be deleted: reset it first"));
        }
        Ok(record)
    }
}

/// The columns that were named, with what is to be stored there.
struct Named<E> {
    values: Vec<(usize, Value)>,
    entity: std::marker::PhantomData<fn() -> E>,
}

impl<E> Default for Named<E> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            entity: std::marker::PhantomData,
        }
    }
}

impl<E: Entity> Named<E> {
    /// The members of an object; `within` is the path of the embedded struct that it stands for, with a dot.
    fn members(&mut self, within: &str, members: &Map<String, JsonValue>) -> Result<()> {
        for (name, value) in members {
            let path = format!("{within}{name}");
            match column(E::TABLE, &path) {
                Some(column) => self.column(column, value)?,
                None => self.embedded(&format!("{path}."), value)?,
            }
        }
        Ok(())
    }

    fn column(&mut self, column: usize, value: &JsonValue) -> Result<()> {
        let table = E::TABLE;
        if table.is_given(column) {
            return Ok(());
        }
        let failed =
            |error: &ValueError| Error::value(table.name, table.columns[column].name, error);
        if self.values.iter().any(|(known, _)| *known == column) {
            return Err(failed(&ValueError::new(
                "is named twice: by its field and by its column",
            )));
        }
        let value = E::encode_json(column, value).map_err(|error| failed(&error))?;
        // Null for a deferred column: it was not loaded where the JSON comes from.
        if value != Value::Unread {
            self.values.push((column, value));
        }
        Ok(())
    }

    /// A struct that is embedded: an object, or null for all of its columns.
    fn embedded(&mut self, within: &str, value: &JsonValue) -> Result<()> {
        let table = E::TABLE;
        let columns = table.columns.iter().enumerate();
        let mut inside = columns
            .filter(|(_, column)| column.field.starts_with(within))
            .peekable();
        let failed = |message: &'static str| {
            Error::value(table.name, "", &ValueError::new(message))
                .with_column(within.trim_end_matches('.').to_owned())
        };
        match value {
            _ if inside.peek().is_none() => Err(failed("no field or column has this name")),
            JsonValue::Object(members) => self.members(within, members),
            JsonValue::Null => inside.try_for_each(|(column, _)| self.column(column, value)),
            _ => Err(failed("is several columns: an object is needed")),
        }
    }
}

impl<E: Entity> Record<E> {
    /// The key is as it was, and nothing is on its way that decides about the version.
    fn check_given(&self, values: &[(usize, Value)]) -> Result<()> {
        let table = E::TABLE;
        for (column, value) in values {
            let checked =
                if table.is_key(*column) && self.entity.encode(*column).as_ref() != Ok(value) {
                    Err(refused::<E>(
                        "is the key, which stays: add a new entity and remove this one",
                    ))
                } else if table.version == Some(*column) {
                    self.check_answered()
                } else {
                    continue;
                };
            checked.map_err(|error| error.with_column(table.columns[*column].name))?;
        }
        Ok(())
    }

    /// Sets all of these, or none.
    fn set_given(&mut self, values: Vec<(usize, Value)>) -> Result<()> {
        let table = E::TABLE;
        let before = known(&snapshot(&self.entity));
        let mut row = before.clone();
        for (column, value) in &values {
            row[*column] = value.clone();
        }
        let columns = || (values.iter().map(|(column, _)| *column)).filter(|at| !table.is_key(*at));
        for (set, column) in columns().enumerate() {
            if let Err((column, error)) = self.entity.assign_from(column, &row[..]) {
                for column in columns().take(set) {
                    drop(self.entity.assign_from(column, &before[..]));
                }
                let error = Error::value(table.name, table.columns[column].name, &error);
                return Err(self.keyed(error));
            }
        }
        // The next save checks against this version.
        for (column, value) in values {
            if table.version == Some(column)
                && self.life == Life::Stored
                && let Value::Integer(version) = value
            {
                self.checks = Some(version);
            }
        }
        Ok(())
    }
}

/// The column of a field, or the one that has this name itself.
fn column(table: &TableDef, name: &str) -> Option<usize> {
    let columns = || table.columns.iter();
    (columns().position(|column| column.field == name))
        .or_else(|| columns().position(|column| column.name == name))
}

fn refused<E: Entity>(message: &'static str) -> Error {
    Error::new(ErrorKind::Refused, message).with_table(E::TABLE.name)
}
