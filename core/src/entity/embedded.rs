//! Embedded structs: one field of an entity that is several columns.

use crate::{
    entity::{Column, ColumnDef},
    value::{JsonValue, Row, Value, ValueError, ValueRef},
};

/// A struct, or an enum with data, whose fields are columns of the entity that has a field of it. Derive it with
/// `EntityEmbed`.
///
/// # Examples
///
/// ```
/// # use anabranch::prelude::*;
/// #[derive(Debug, Clone, PartialEq, EntityEmbed)]
/// enum Payment {
///     Cash,
///     Card { number: String, expires: Option<i64> },
///     Transfer(String),
/// }
///
/// #[derive(Debug, Entity)]
/// struct Order {
///     #[entity(id)]
///     id: i64,
///     #[entity(embed)]
///     payment: Payment, // payment_kind, payment_card_number, payment_card_expires, payment_transfer
/// }
///
/// let paid_by_card = Order::PAYMENT.then(Payment::KIND).eq("Card".to_owned());
/// let card = Order::PAYMENT.then(Payment::CARD_NUMBER).eq("4711".to_owned());
/// # let _ = Order::query().filter(paid_by_card).filter(card);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be embedded",
    label = "no struct or enum with `EntityEmbed`",
    note = "write #[derive(EntityEmbed)] on it, or remove #[entity(embed)] from the field"
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

    /// Replaces the field of the column at `column` of these from a row in which they begin at `first`; see
    /// [`Entity::assign_from`](crate::entity::Entity::assign_from).
    ///
    /// # Errors
    ///
    /// The index in the row of the column whose value does not fit its field, and why.
    fn assign_from<R: Row + ?Sized>(
        &mut self,
        column: usize,
        row: &R,
        first: usize,
    ) -> Result<(), (usize, ValueError)> {
        (self.assign(column, row.value(first + column))).map_err(|error| (first + column, error))
    }

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
        entity::Embedded,
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
        match (field, value) {
            (Some(field), value) => field.assign(column, value),
            (None, ValueRef::Null) => Ok(()),
            (None, _) => Err(ValueError::new(
                "the embedded struct is None: it can only be set as a whole",
            )),
        }
    }

    pub fn assign_from<T: Embedded, R: Row + ?Sized>(
        field: &mut Option<T>,
        row: &R,
        first: usize,
    ) -> Result<(), (usize, ValueError)> {
        *field = decode(row, first)?;
        Ok(())
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

/// What the code of a derive needs for an enum with data.
#[doc(hidden)]
pub mod variant {
    use std::ops::Range;

    use crate::value::{JsonValue, Row, Value, ValueError, ValueRef};

    /// The column at `column` of `count` when it is not of the variant that is there.
    pub const fn encode_other(column: usize, count: usize) -> Result<Value, ValueError> {
        if column < count {
            Ok(Value::Null)
        } else {
            Err(no_column())
        }
    }

    /// The kind is what it is, unless the whole is replaced.
    pub fn assign_kind(kind: &str, value: ValueRef<'_>) -> Result<(), ValueError> {
        if value == ValueRef::Text(kind.as_bytes()) {
            return Ok(());
        }
        Err(ValueError::new(
            "another variant is there: the enum can only be set as a whole",
        ))
    }

    /// The columns of other variants are NULL.
    pub fn assign_other(
        column: usize,
        count: usize,
        value: ValueRef<'_>,
    ) -> Result<(), ValueError> {
        match value {
            _ if column >= count => Err(no_column()),
            ValueRef::Null => Ok(()),
            _ => Err(ValueError::new(
                "is of another variant than is there: the enum can only be set as a whole",
            )),
        }
    }

    /// The kind as it is stored, if it is one of these.
    pub fn encode_kind(kinds: &[&str], json: &JsonValue) -> Result<Value, ValueError> {
        match json.as_str() {
            Some(kind) if kinds.contains(&kind) => Ok(Value::Text(kind.to_owned())),
            _ => Err(ValueError::new(format!(
                "the value given is no variant: one of {} is needed",
                kinds.join(", ")
            ))),
        }
    }

    /// That every column but the first and those of the variant is NULL. What is there would come to light when the
    /// variant changes.
    pub fn check_others<R: Row + ?Sized>(
        row: &R,
        first: usize,
        own: Range<usize>,
        count: usize,
    ) -> Result<(), (usize, ValueError)> {
        let mut others = (1..own.start).chain(own.end..count);
        match others.find(|column| row.value(first + column) != ValueRef::Null) {
            None => Ok(()),
            Some(column) => Err((
                first + column,
                ValueError::new("NULL is expected: the row is of another variant"),
            )),
        }
    }

    const fn no_column() -> ValueError {
        ValueError::fixed("there is no such column")
    }
}
