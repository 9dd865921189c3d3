//! What a derive supplies about a struct: its table, and how it is written and read.

mod column;
#[doc(hidden)]
pub mod demand;
mod embedded;
mod identity;
#[doc(hidden)]
pub mod layout;
mod per_table;
#[cfg(test)]
pub(crate) mod samples;
mod table;
mod types;

pub use anabranch_macros::{Entity, EntityEmbed, EntityEnum, EntityNewtype};

pub use self::{
    column::{Column, CommitSeq, Stored},
    demand::References,
    embedded::{Embedded, optional, variant},
    table::{
        ColumnDef, DefaultValue, FilterDef, ForeignKey, ForeignKeyAction, Generated, Group,
        IndexDef, IndexedBy, Reference, TableDef,
    },
    types::EntityTypes,
};
pub(crate) use self::{
    identity::{Identities, Identity},
    per_table::PerTable,
    table::tombstones_of,
};

use std::any::TypeId;

use crate::{
    error::{Conflict, Error, ErrorKind},
    value::{JsonValue, PrimaryKey, Row, Value, ValueError, ValueRef},
};

/// A struct that is kept in a table of its own. Derive it; do not write it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    label = "not an entity",
    note = "write #[derive(Entity)] on the struct"
)]
pub trait Entity: Sized + Send + Sync + 'static {
    /// The type of the primary key.
    type Key: PrimaryKey;
    /// The table.
    const TABLE: &'static TableDef;

    /// Adds the types of the columns, as far as a derive knows them.
    #[doc(hidden)]
    fn column_types(types: &mut Vec<Option<TypeId>>) {
        types.extend(Self::TABLE.columns.iter().map(|_| None));
    }

    /// The primary key.
    fn key(&self) -> Self::Key;

    /// Replaces the primary key.
    fn set_key(&mut self, key: Self::Key);

    /// The value to store in the column at `column`.
    ///
    /// # Errors
    ///
    /// When SQLite could not keep the field's value exactly.
    fn encode(&self, column: usize) -> Result<Value, ValueError>;

    /// Replaces the field of the column at `column`.
    ///
    /// # Errors
    ///
    /// When the value does not fit the field.
    fn assign(&mut self, column: usize, value: ValueRef<'_>) -> Result<(), ValueError>;

    /// Replaces the field of the column at `column` from a row that has all columns in the table's order. What is only
    /// right as a whole is replaced as a whole: an embedded struct that may be `None`, an enum with data.
    ///
    /// # Errors
    ///
    /// The index of the column whose value does not fit its field, and why; then the field is as it was.
    fn assign_from<R: Row + ?Sized>(
        &mut self,
        column: usize,
        row: &R,
    ) -> Result<(), (usize, ValueError)> {
        (self.assign(column, row.value(column))).map_err(|error| (column, error))
    }

    /// The value to store in the column at `column` for a JSON value that its field is to be set from.
    ///
    /// # Errors
    ///
    /// When the JSON value does not fit the field, or SQLite could not keep it exactly.
    fn encode_json(column: usize, json: &JsonValue) -> Result<Value, ValueError>;

    /// Reads an entity from a row that has all columns in the table's order.
    ///
    /// # Errors
    ///
    /// The index of the column whose stored value does not fit its field, and why.
    fn decode<R: Row + ?Sized>(row: &R) -> Result<Self, (usize, ValueError)>;
}

/// Reads an entity from a row with all columns; an error names table, column and key.
///
/// # Errors
///
/// Kind [`ErrorKind::Decode`] when a stored value does not fit its field.
pub fn decode<E: Entity, R: Row + ?Sized>(row: &R) -> Result<E, Error> {
    E::decode(row).map_err(|(column, error)| {
        let table = E::TABLE;
        let failed = Error::new(ErrorKind::Decode, error.to_string())
            .with_table(table.name)
            .with_column(table.columns[column].name);
        let key = table.key.iter().map(|column| row.value(*column).to_value());
        match key.collect() {
            Ok(key) => failed.with_key(key),
            Err(_) => failed,
        }
    })
}

impl Conflict {
    /// The entity as the database holds it now; `None` when the row is gone, or of another entity.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Decode`] when a stored value does not fit its field.
    pub fn database_as<E: Entity>(&self) -> Result<Option<E>, Error> {
        match &self.database {
            Some(values) if self.table == E::TABLE.name => decode(&values[..]).map(Some),
            _ => Ok(None),
        }
    }
}

/// The values of all columns, in the table's order.
///
/// # Errors
///
/// Kind [`ErrorKind::Value`], naming table and column, for a value that SQLite cannot keep, and for a deferred column that
/// is not loaded.
pub fn encode<E: Entity>(entity: &E) -> Result<Vec<Value>, Error> {
    let encoded = |column| match encode_column(entity, column)? {
        Value::Unread => Err(Error::value(
            E::TABLE.name,
            E::TABLE.columns[column].name,
            &ValueError::fixed("is not loaded: set it, so that the whole row is known"),
        )),
        value => Ok(value),
    };
    (0..E::TABLE.columns.len()).map(encoded).collect()
}

/// The value of one column; [`Value::Unread`] of a deferred one that is not loaded.
///
/// # Errors
///
/// Kind [`ErrorKind::Value`], naming table and column, for a value that SQLite cannot keep.
pub fn encode_column<E: Entity>(entity: &E, column: usize) -> Result<Value, Error> {
    entity
        .encode(column)
        .map_err(|error| Error::value(E::TABLE.name, E::TABLE.columns[column].name, &error))
}
