//! Embedded structs: one field of an entity that is several columns.

use std::{cell::RefCell, rc::Rc};

use crate::{
    entity::{Column, ColumnDef, Entity},
    value::{JsonValue, Row, Value, ValueError, ValueRef},
};

thread_local! {
    /// The row of the column that is being assigned, and the column.
    static ROW: RefCell<Option<(Rc<[Value]>, usize)>> = const { RefCell::new(None) };
}

/// Assigns a column its value in a row of all columns. Knowing the others, an optional embedded struct that is absent
/// is made, and one that is absent in the row is dropped.
///
/// # Errors
///
/// When the value does not fit the field, or the struct cannot be made of its columns.
pub(crate) fn assign_from_row<E: Entity>(
    entity: &mut E,
    column: usize,
    row: &Rc<[Value]>,
) -> Result<(), ValueError> {
    /// Whatever happens, the next plain assignment has no row.
    struct Forget;

    impl Drop for Forget {
        fn drop(&mut self) {
            ROW.take();
        }
    }

    let _forget = Forget;
    ROW.set(Some((Rc::clone(row), column)));
    entity.assign(column, row[column].as_ref())
}

/// A struct whose fields are columns of the entity that has a field of it. Derive it with `EntityEmbed`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be embedded",
    label = "not an embedded struct",
    note = "write #[derive(EntityEmbed)] on the struct, or remove #[entity(embed)] from the field"
)]
pub trait Embedded: Sized + Send + Sync + 'static {
    /// The columns, in the order of the struct's fields, with names that are yet to be prefixed.
    const COLUMNS: &'static [ColumnDef];

    /// The value to store in the column at `column` of these.
    ///
    /// # Errors
    ///
    /// When SQLite could not keep the field's value exactly.
    fn encode(&self, column: usize) -> Result<Value, ValueError>;

    /// Replaces the field of the column at `column` of these.
    ///
    /// # Errors
    ///
    /// When the value does not fit the field.
    fn assign(&mut self, column: usize, value: ValueRef<'_>) -> Result<(), ValueError>;

    /// The value to store in the column at `column` of these when its field is given as JSON.
    ///
    /// # Errors
    ///
    /// When the JSON value does not fit the field.
    fn encode_json(column: usize, json: &JsonValue) -> Result<Value, ValueError>;

    /// Reads the struct from a row in which its columns begin at `first`.
    ///
    /// # Errors
    ///
    /// The index in the row of the column whose stored value does not fit its field, and why.
    fn decode<R: Row + ?Sized>(row: &R, first: usize) -> Result<Self, (usize, ValueError)>;
}

/// # Embedded structs
impl<E, T: Embedded> Column<E, T> {
    /// A column of the embedded struct: `Customer::ADDRESS.then(Address::CITY)`.
    #[must_use]
    pub const fn then<U>(self, inner: Column<T, U>) -> Column<E, U> {
        Column::new(self.index() + inner.index())
    }
}

/// # Optional embedded structs
impl<E, T: Embedded> Column<E, Option<T>> {
    /// A column of the embedded struct, which is NULL where there is none.
    #[must_use]
    pub const fn then<U>(self, inner: Column<T, U>) -> Column<E, U> {
        Column::new(self.index() + inner.index())
    }
}

/// What the code of a derive needs for a field that is an `Option` of an embedded struct.
#[doc(hidden)]
pub mod optional {
    use crate::{
        entity::{Embedded, embedded::ROW},
        value::{JsonValue, Row, Value, ValueError, ValueRef},
    };

    /// NULL in every column stands for `None`.
    pub fn encode<T: Embedded>(value: Option<&T>, column: usize) -> Result<Value, ValueError> {
        value.map_or(Ok(Value::Null), |value| value.encode(column))
    }

    pub fn assign<T: Embedded>(
        field: &mut Option<T>,
        column: usize,
        value: ValueRef<'_>,
    ) -> Result<(), ValueError> {
        if let Some((row, at)) = ROW.with_borrow(Clone::clone) {
            let whole = decode(&row[..], at - column);
            if field.is_none() || matches!(whole, Ok(None)) {
                *field = whole.map_err(|(_, error)| error)?;
                return Ok(());
            }
        }
        match (field, value) {
            (Some(field), value) => field.assign(column, value),
            (None, ValueRef::Null) => Ok(()),
            (None, _) => Err(ValueError::new(
                "the embedded struct is None: it can only be set as a whole",
            )),
        }
    }

    pub fn encode_json<T: Embedded>(column: usize, json: &JsonValue) -> Result<Value, ValueError> {
        if json.is_null() {
            return Ok(Value::Null);
        }
        T::encode_json(column, json)
    }

    pub fn decode<T: Embedded, R: Row + ?Sized>(
        row: &R,
        first: usize,
    ) -> Result<Option<T>, (usize, ValueError)> {
        let mut columns = first..first + T::COLUMNS.len();
        if columns.all(|column| row.value(column) == ValueRef::Null) {
            return Ok(None);
        }
        T::decode(row, first).map(Some)
    }
}
