//! What a column holds, and which Rust types read and write all of it.

use anabranch::value::{ColumnType, ValueRef};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use rusqlite::{Connection, Result, types};
use uuid::Uuid;

use crate::entities::{
    catalog::{Affinity, Column, Table},
    choices::Choices,
};

/// A Rust type that a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RustType {
    Bool,
    I64,
    F64,
    Date,
    Time,
    DateTime,
    Uuid,
    String,
    Bytes,
    /// Any class: `anabranch::value::Value`.
    Any,
}

/// What the rows hold in one column.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) nulls: bool,
    /// Whether there is any value beside NULL.
    pub(crate) values: bool,
    /// Whether a text contains a NUL character.
    pub(crate) nul: bool,
    /// Whether all values are among those that a CHECK lists.
    pub(crate) chosen: bool,
    /// The types that keep every value.
    types: Vec<RustType>,
}

impl RustType {
    const ALL: [Self; 10] = [
        Self::Bool,
        Self::I64,
        Self::F64,
        Self::Date,
        Self::Time,
        Self::DateTime,
        Self::Uuid,
        Self::String,
        Self::Bytes,
        Self::Any,
    ];

    /// As it is written in a struct.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::Date => "NaiveDate",
            Self::Time => "NaiveTime",
            Self::DateTime => "DateTime<Utc>",
            Self::Uuid => "Uuid",
            Self::String => "String",
            Self::Bytes => "Vec<u8>",
            Self::Any => "Value",
        }
    }

    /// Whether a column of a key can have it.
    pub(crate) const fn is_key(self) -> bool {
        matches!(self, Self::I64 | Self::String | Self::Uuid | Self::Any)
    }

    /// Whether the stored value is read, and written again as it is now.
    fn keeps(self, value: ValueRef<'_>, affinity: Affinity) -> bool {
        match self {
            Self::Bool => keeps::<bool>(value),
            Self::I64 => keeps::<i64>(value),
            // SQLite makes an integer again of a whole number.
            Self::F64 if affinity.is_number() => f64::decode(value).is_ok(),
            Self::F64 => keeps::<f64>(value),
            Self::Date => keeps::<NaiveDate>(value),
            Self::Time => keeps::<NaiveTime>(value),
            Self::DateTime => keeps::<DateTime<Utc>>(value),
            Self::Uuid => is_uuid(value) && keeps::<Uuid>(value),
            // Also with a NUL character, which can be read though not written.
            Self::String => String::decode(value).is_ok(),
            Self::Bytes => matches!(value, ValueRef::Blob(_)),
            Self::Any => value.to_value().is_ok(),
        }
    }

    /// Whether SQLite leaves values of this type alone on their way into the column.
    pub(crate) const fn suits(self, affinity: Affinity) -> bool {
        match self {
            Self::I64 | Self::Bool => !matches!(affinity, Affinity::Text | Affinity::Real),
            Self::F64 => !matches!(affinity, Affinity::Text),
            Self::String => matches!(affinity, Affinity::Text | Affinity::None),
            Self::Date | Self::Time | Self::DateTime | Self::Uuid | Self::Bytes => true,
            Self::Any => matches!(affinity, Affinity::None),
        }
    }
}

/// Of 16 bytes some are a hash or a key; a UUID says in two places that it is one.
fn is_uuid(value: ValueRef<'_>) -> bool {
    let ValueRef::Blob(bytes) = value else {
        return false;
    };
    Uuid::from_slice(bytes).is_ok_and(|uuid| {
        (1..=8).contains(&uuid.get_version_num()) && uuid.get_variant() == uuid::Variant::RFC4122
    })
}

fn keeps<T: ColumnType>(value: ValueRef<'_>) -> bool {
    T::decode(value)
        .and_then(|read| read.encode())
        .is_ok_and(|written| written.as_ref() == value)
}

impl Held {
    fn new() -> Self {
        Self {
            nulls: false,
            values: false,
            nul: false,
            chosen: true,
            types: RustType::ALL.to_vec(),
        }
    }

    /// Whether this type reads and writes all values.
    pub(crate) fn fits(&self, rust_type: RustType) -> bool {
        self.types.contains(&rust_type)
    }

    fn add(&mut self, value: ValueRef<'_>, affinity: Affinity, choices: Option<&Choices>) {
        if value == ValueRef::Null {
            self.nulls = true;
            return;
        }
        self.values = true;
        self.nul |= matches!(value, ValueRef::Text(text) if text.contains(&0));
        self.chosen &= choices.is_none_or(|choices| choices.allow(value));
        self.types
            .retain(|rust_type| rust_type.keeps(value, affinity));
    }
}

/// Looks at every row of a table; `choices` are those of its columns.
pub(crate) fn held(
    connection: &Connection,
    table: &Table,
    choices: &[Option<Choices>],
) -> Result<Vec<Held>> {
    let columns: Vec<_> = (table.columns.iter())
        .map(|column| quoted(&column.name))
        .collect();
    let sql = format!(
        "SELECT {} FROM main.{}",
        columns.join(", "),
        quoted(&table.name)
    );
    let mut statement = connection.prepare(&sql)?;
    let mut held: Vec<_> = table.columns.iter().map(|_| Held::new()).collect();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for (at, held) in held.iter_mut().enumerate() {
            let value = value(row.get_ref(at)?);
            held.add(value, table.columns[at].affinity, choices[at].as_ref());
        }
    }
    Ok(held)
}

const fn value(value: types::ValueRef<'_>) -> ValueRef<'_> {
    match value {
        types::ValueRef::Null => ValueRef::Null,
        types::ValueRef::Integer(value) => ValueRef::Integer(value),
        types::ValueRef::Real(value) => ValueRef::Real(value),
        types::ValueRef::Text(value) => ValueRef::Text(value),
        types::ValueRef::Blob(value) => ValueRef::Blob(value),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The type for a column; `None` if none reads all that it holds.
pub(crate) fn rust_type(column: &Column, held: &Held) -> Option<RustType> {
    let fitting = preferred(column, held);
    fitting.into_iter().find(|&rust_type| held.fits(rust_type))
}

/// The types to try, the best first.
fn preferred(column: &Column, held: &Held) -> Vec<RustType> {
    use RustType::{Any, Bool, Bytes, Date, DateTime, F64, I64, String, Time, Uuid};
    let declared = column.declared.to_ascii_uppercase();
    let says = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    let mut types = Vec::new();
    if says(&["BOOL"]) || declared == "BIT" || is_bool_by_check(column) {
        types.push(Bool);
    }
    if !held.values {
        types.push(declared_type(&declared, column.affinity));
    }
    // What is declared as a decimal may be whole for now.
    if is_decimal(&declared) && !is_whole(&declared) {
        types.push(F64);
    }
    types.extend([I64, F64, Uuid]);
    let names_a_date = column.name.to_ascii_lowercase().contains("date");
    if says(&["DATE"]) || (names_a_date && column.affinity == Affinity::Text) {
        types.push(Date);
    }
    if says(&["TIME"]) {
        types.push(Time);
    }
    types.extend([DateTime, String, Bytes, Any]);
    types
}

/// The type of a column that holds nothing yet.
fn declared_type(declared: &str, affinity: Affinity) -> RustType {
    const TEXTS: [&str; 7] = ["DATE", "TIME", "STRING", "UUID", "GUID", "JSON", "ENUM"];
    match affinity {
        Affinity::Integer => RustType::I64,
        Affinity::Text => RustType::String,
        Affinity::Real => RustType::F64,
        Affinity::None if declared == "BLOB" => RustType::Bytes,
        Affinity::Numeric if is_whole(declared) => RustType::I64,
        Affinity::Numeric if is_decimal(declared) => RustType::F64,
        Affinity::Numeric if TEXTS.iter().any(|word| declared.contains(word)) => RustType::String,
        Affinity::None | Affinity::Numeric => RustType::Any,
    }
}

/// As `NUMERIC(10)`, or `DECIMAL(10, 0)`.
fn is_whole(declared: &str) -> bool {
    let Some((_, inside)) = declared.split_once('(') else {
        return false;
    };
    let inside = inside.trim_end_matches(')');
    is_decimal(declared)
        && (inside.split_once(',')).map_or(!inside.is_empty(), |(_, scale)| scale.trim() == "0")
}

fn is_decimal(declared: &str) -> bool {
    ["DEC", "NUM", "MONEY", "CURRENCY"]
        .iter()
        .any(|word| declared.contains(word))
}

/// Whether a CHECK allows 0 and 1 alone.
fn is_bool_by_check(column: &Column) -> bool {
    (column.checks.iter())
        .filter_map(|check| Choices::parse(check, &column.name))
        .any(|choices| choices.are_bool())
}
