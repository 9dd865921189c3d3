//! Values as SQLite stores them, and the Rust types that one column can hold.
//!
//! A [`Value`] is one of SQLite's five storage classes. [`ColumnType`] says how a Rust type becomes one
//! and is read back; it never changes a value silently: what cannot be kept exactly is refused with a
//! [`ValueError`], which the layers above complete with table, column and key.

mod date_time;
mod from_json;
mod json;
mod key;
mod scalar;
mod to_json;

use std::{borrow::Cow, fmt};

pub(crate) use self::{scalar::check_text, to_json::to_json};

pub use self::{
    json::Json,
    key::{KeyColumn, KeyOrigin, PrimaryKey, TEMPORARY_KEYS},
};

/// A JSON value, as a field is set from it.
pub type JsonValue = serde_json::Value;

/// A value in one of SQLite's storage classes.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit IEEE 754 number; never NaN.
    Real(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A borrowed value, as a row hands it out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit IEEE 754 number.
    Real(f64),
    /// Text, not yet known to be UTF-8: other programs may have stored anything.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// A row of a result while it is being read.
pub trait Row {
    /// The value of the column at `index`, counted from 0; NULL beyond the last.
    fn value(&self, index: usize) -> ValueRef<'_>;
}

/// How a column is declared; the names are those of STRICT tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// INTEGER.
    Integer,
    /// REAL.
    Real,
    /// TEXT.
    Text,
    /// BLOB.
    Blob,
}

impl Storage {
    /// The type name in a table definition.
    #[must_use]
    pub const fn as_sql(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Text => "TEXT",
            Self::Blob => "BLOB",
        }
    }
}

/// Why a value cannot be stored in, or read from, a column. Never contains the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError(Cow<'static, str>);

impl ValueError {
    /// An error with this message: lower case, no full stop, and no value in it.
    #[must_use]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(message.into())
    }

    /// The stored value is of a class that the field cannot hold.
    #[must_use]
    pub fn unexpected(expected: &str, found: ValueRef<'_>) -> Self {
        Self(format!("expected {expected}, found {}", found.class()).into())
    }

    /// The same of a value that is not stored but was given.
    fn given(self) -> Self {
        let words = [
            ("the stored value", "the value given"),
            ("the stored integer", "the integer given"),
            ("the stored number", "the number given"),
            ("the stored text", "the text given"),
        ];
        match words.iter().find(|(stored, _)| self.0.contains(stored)) {
            Some((stored, given)) => Self(self.0.replace(stored, given).into()),
            None => self,
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ValueError {}

/// A Rust type that one column can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a column",
    label = "not a column type",
    note = "use i8 to i64, u8 to u32, bool, f32, f64, String, Vec<u8>, Uuid, a chrono type, serde_json::Value, or an Option of these",
    note = "for an enum without data derive `EntityEnum`; for any type that serde knows write #[entity(json)] on the field",
    note = "SQLite has no unsigned 64-bit integer: use i64, or a String for larger numbers"
)]
pub trait ColumnType: Sized {
    /// How the column is declared.
    const STORAGE: Storage;
    /// Whether the column may hold NULL.
    const NULLABLE: bool = false;
    /// Whether values may be large: their entities are read on threads rather than inline.
    const LARGE: bool = false;

    /// The value to store.
    ///
    /// # Errors
    ///
    /// When SQLite could not keep the value exactly (NaN, text with a NUL, a date out of range).
    fn encode(&self) -> Result<Value, ValueError>;

    /// Reads a stored value.
    ///
    /// # Errors
    ///
    /// When the stored value does not fit this type.
    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError>;

    /// Reads a JSON value with which a field is to be set: an integer, a number, a string or an array of bytes, as
    /// the column stores it, unless the type says otherwise.
    ///
    /// # Errors
    ///
    /// When the value does not fit this type.
    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        let stored = from_json::stored(Self::STORAGE, json)?;
        Self::decode(stored.as_ref()).map_err(ValueError::given)
    }
}

/// A [`ColumnType`] other than `Option`: what an `Option` may hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a column",
    label = "not a column type",
    note = "use i8 to i64, u8 to u32, bool, f32, f64, String, Vec<u8>, Uuid, a chrono type or serde_json::Value",
    note = "for an enum without data derive `EntityEnum`; for any type that serde knows write #[entity(json)] on the field",
    note = "SQLite has no unsigned 64-bit integer: use i64, or a String for larger numbers"
)]
pub trait Scalar: ColumnType {}

impl<T: Scalar> ColumnType for Option<T> {
    const STORAGE: Storage = T::STORAGE;
    const NULLABLE: bool = true;
    const LARGE: bool = T::LARGE;

    fn encode(&self) -> Result<Value, ValueError> {
        self.as_ref().map_or(Ok(Value::Null), T::encode)
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::decode(value).map(Some),
        }
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        if json.is_null() {
            return Ok(None);
        }
        T::from_json(json).map(Some)
    }
}

impl Value {
    /// Borrows the value.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Blob(value) => ValueRef::Blob(value),
        }
    }

    /// Whether this is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl ValueRef<'_> {
    /// The storage class, as `typeof()` would name it.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "integer",
            Self::Real(_) => "real",
            Self::Text(_) => "text",
            Self::Blob(_) => "blob",
        }
    }

    /// An owned copy.
    ///
    /// # Errors
    ///
    /// When text is not UTF-8.
    pub fn to_value(self) -> Result<Value, ValueError> {
        Ok(match self {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Integer(value),
            ValueRef::Real(value) => Value::Real(value),
            ValueRef::Text(_) => Value::Text(String::decode(self)?),
            ValueRef::Blob(value) => Value::Blob(value.to_vec()),
        })
    }
}

impl Row for [Value] {
    fn value(&self, index: usize) -> ValueRef<'_> {
        self.get(index).map_or(ValueRef::Null, Value::as_ref)
    }
}
