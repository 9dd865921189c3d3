//! Values as SQLite stores them, and the Rust types that one column can hold.
//!
//! A [`Value`] is one of SQLite's five storage classes. [`ColumnType`] says how a Rust type becomes one
//! and is read back; it never changes a value silently: what cannot be kept exactly is refused with a
//! [`ValueError`], which the layers above complete with table, column and key.
//!
//! | field | stored as |
//! |---|---|
//! | `i8` to `i64`, `u8` to `u32` | INTEGER |
//! | `bool` | INTEGER, 0 or 1 |
//! | `f32`, `f64` | REAL; infinities too, NaN is refused, `-0.0` comes back as the equal `0.0` |
//! | `String`, `Box<str>`, `Arc<str>`, `Cow<'static, str>`, `char` | TEXT; NUL characters are refused |
//! | `Vec<u8>` | BLOB |
//! | `Uuid` | BLOB of 16 bytes |
//! | `IpAddr`, `Ipv4Addr`, `Ipv6Addr` | TEXT |
//! | dates: chrono's `NaiveDate`, the `Date` of `time` and of `jiff::civil` | TEXT, `2013-01-31` |
//! | times of day: chrono's `NaiveTime`, the `Time` of `time` and of `jiff::civil` | TEXT, `10:00:00.000000000`; leap seconds are refused |
//! | instants, and dates with a time: chrono's `DateTime<Utc>`, `DateTime<FixedOffset>`, `NaiveDateTime`; time's `UtcDateTime`, `OffsetDateTime`, `PrimitiveDateTime`; jiff's `Timestamp`, `civil::DateTime` | TEXT, `2013-01-31 10:00:00.000000000` in UTC, so that text sorts as time; years from 0000 to 9999. An offset is not kept, only the instant |
//! | durations: of `std`, `time`, chrono's `TimeDelta`, jiff's `SignedDuration` | INTEGER, nanoseconds |
//! | `serde_json::Value`, and any serde type with `#[entity(json)]` | TEXT, JSON; NaN and infinities in it, for which JSON has no word, are refused |
//! | `Decimal`, `BigDecimal` with `#[entity(scale = 2)]` | INTEGER of units, see [`Scaled`] |
//! | `u64`, `u128` with `#[entity(padded)]` | TEXT of 20 or 39 digits, see [`Padded`] |
//! | an enum with `derive(EntityEnum)` | TEXT or INTEGER |
//! | a struct around one of these with `derive(EntityNewtype)` | the same |
//! | [`Value`] | any class: for columns of other programs that hold a mixture |
//! | an `Option` of these | the same, or NULL |
//! | a [`Deferred`] of these | the same, read only where it is asked for |

mod any;
mod calendar;
mod deferred;
mod from_json;
mod json;
mod key;
mod padded;
mod scalar;
mod scaled;
mod text;

use std::{borrow::Cow, fmt};

pub(crate) use self::{json::to_json, text::check_text};

pub use self::{
    deferred::Deferred,
    json::Json,
    key::{KeyColumn, KeyOrigin, PrimaryKey, TEMPORARY_KEYS},
    padded::{Padded, PaddedNumber},
    scaled::{DecimalNumber, Scaled},
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
    /// In the place of a [`Deferred`] column that was not read. No row holds it, and nothing stores it.
    Unread,
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
    /// In the place of a [`Deferred`] column that was not read. No row holds it.
    Unread,
}

/// A row of a result while it is being read.
pub trait Row {
    /// How many columns it has.
    fn width(&self) -> usize;

    /// The value of the column at `index`, counted from 0; NULL beyond the last.
    fn value(&self, index: usize) -> ValueRef<'_>;

    /// What `find` makes of the names of all columns. It is asked once for a statement, however many rows that has.
    #[doc(hidden)]
    fn places(&self, _find: FindPlaces<'_>) -> Result<&[usize], ValueError> {
        Err(ValueError::fixed("the columns of this row have no names"))
    }
}

/// Finds the positions of columns among the names of all.
#[doc(hidden)]
pub type FindPlaces<'a> = &'a dyn Fn(&[&str]) -> Result<Vec<usize>, ValueError>;

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
    /// ANY: values of every class, kept as they are. In a table that is not STRICT this is a BLOB, for there ANY would
    /// turn text that looks like a number into one.
    Any,
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
            Self::Any => "ANY",
        }
    }
}

/// What a column may hold beside NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneOf {
    /// Whatever its type stores.
    Any,
    /// One of these texts.
    Texts(&'static [&'static str]),
    /// One of these integers.
    Integers(&'static [i64]),
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

    pub(crate) const fn fixed(message: &'static str) -> Self {
        Self(Cow::Borrowed(message))
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
    note = "use i8 to i64, u8 to u32, bool, f32, f64, char, String, Vec<u8>, Uuid, a chrono type, Duration, an IP address, serde_json::Value, or an Option of these",
    note = "for an enum without data derive `EntityEnum`; for several columns derive `EntityEmbed` and write #[entity(embed)] on the field; for any type that serde knows write #[entity(json)] on the field",
    note = "SQLite has no unsigned 64-bit integer: use i64, or write #[entity(padded)] on a u64 or u128, which is then text that sorts as the number",
    note = "for a decimal number write #[entity(scale = 2)] on the field: it is an integer then, exact with two digits after the point",
    note = "the types of the crates jiff and time need the feature `jiff` or `time` of anabranch"
)]
pub trait ColumnType: Sized {
    /// How the column is declared.
    const STORAGE: Storage;
    /// Whether the column may hold NULL.
    const NULLABLE: bool = false;
    /// Whether values may be large: their entities are read on threads rather than inline.
    const LARGE: bool = false;
    /// The values that a CHECK of the column allows.
    const ONE_OF: OneOf = OneOf::Any;
    /// The least and the greatest integer of the type, if those are fewer than SQLite has.
    const RANGE: Option<(i64, i64)> = None;

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
    note = "use i8 to i64, u8 to u32, bool, f32, f64, char, String, Vec<u8>, Uuid, a chrono type, Duration, an IP address or serde_json::Value",
    note = "for an enum without data derive `EntityEnum`; for several columns derive `EntityEmbed` and write #[entity(embed)] on the field; for any type that serde knows write #[entity(json)] on the field",
    note = "SQLite has no unsigned 64-bit integer: use i64, or write #[entity(padded)] on a u64 or u128, which is then text that sorts as the number",
    note = "for a decimal number write #[entity(scale = 2)] on the field: it is an integer then, exact with two digits after the point",
    note = "the types of the crates jiff and time need the feature `jiff` or `time` of anabranch"
)]
pub trait Scalar: ColumnType {}

impl<T: Scalar> ColumnType for Option<T> {
    const STORAGE: Storage = T::STORAGE;
    const NULLABLE: bool = true;
    const LARGE: bool = T::LARGE;
    const ONE_OF: OneOf = T::ONE_OF;
    const RANGE: Option<(i64, i64)> = T::RANGE;

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
            Self::Unread => ValueRef::Unread,
        }
    }

    /// Whether this is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl ValueRef<'_> {
    /// The storage class, as `typeof()` would name it, if there is a value.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "integer",
            Self::Real(_) => "real",
            Self::Text(_) => "text",
            Self::Blob(_) => "blob",
            Self::Unread => "a column that was not read",
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
            ValueRef::Unread => Value::Unread,
        })
    }
}

impl Row for [Value] {
    fn width(&self) -> usize {
        self.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        self.get(index).map_or(ValueRef::Null, Value::as_ref)
    }
}
