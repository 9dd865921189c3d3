//! Values as the database compares them: keys, references and unique columns are looked up by these.

use std::borrow::Cow;

use crate::{
    entity::{ColumnDef, TableDef},
    value::Value,
};

/// A value as it is compared in some column. NULL has none: it equals nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Identity<'a> {
    /// A key that the writer is asked for.
    Position(usize),
    Integer(i64),
    Real(u64),
    Text(Cow<'a, str>),
    Blob(&'a [u8]),
}

/// The values in some columns; mostly it is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Identities<'a> {
    One(Identity<'a>),
    Several(Vec<Identity<'a>>),
}

impl<'a> Identity<'a> {
    /// What a value is in a column. A reference is compared as the column that it refers to is.
    pub(crate) fn of(value: &'a Value, column: &ColumnDef) -> Option<Self> {
        match value {
            Value::Null | Value::Unread => None,
            Value::Integer(value) => Some(Self::Integer(*value)),
            // The two zeros are equal.
            Value::Real(value) => Some(Self::Real((value + 0.0).to_bits())),
            Value::Text(value) => Some(Self::Text(folded(value, column))),
            Value::Blob(value) => Some(Self::Blob(value)),
        }
    }
}

impl<'a> Identities<'a> {
    /// An integer, which every column compares alike.
    pub(crate) const fn integer(value: i64) -> Self {
        Self::One(Identity::Integer(value))
    }

    /// All of them, unless one is NULL.
    pub(crate) fn of(
        mut values: impl ExactSizeIterator<Item = Option<Identity<'a>>>,
    ) -> Option<Self> {
        if values.len() == 1 {
            return values.next()?.map(Self::One);
        }
        values.collect::<Option<_>>().map(Self::Several)
    }

    /// Values as they are compared in these columns of a table.
    pub(crate) fn within(table: &TableDef, columns: &[usize], values: &'a [Value]) -> Option<Self> {
        let values = values.iter().zip(columns);
        Self::of(values.map(|(value, column)| Identity::of(value, &table.columns[*column])))
    }
}

/// The same text for all that a column's collation takes to be equal.
fn folded<'a>(text: &'a str, column: &ColumnDef) -> Cow<'a, str> {
    let Some(collation) = column.collate else {
        return Cow::Borrowed(text);
    };
    let is = |name: &str| collation.eq_ignore_ascii_case(name);
    if is("BINARY") {
        return Cow::Borrowed(text);
    }
    // One that is not known takes more to be equal than BINARY does: probably what the others do.
    let text = if is("NOCASE") {
        text
    } else {
        text.trim_end_matches(' ')
    };
    if is("RTRIM") || !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use crate::{
        entity::{ColumnDef, Identity},
        value::{Storage, Value},
    };

    fn is_equal(collate: Option<&'static str>, one: &str, other: &str) -> bool {
        let column = ColumnDef {
            collate,
            ..ColumnDef::new("name", Storage::Text)
        };
        let (one, other) = (Value::Text(one.into()), Value::Text(other.into()));
        Identity::of(&one, &column) == Identity::of(&other, &column)
    }

    #[test]
    fn text_is_equal_as_its_collation_says() {
        for (collate, cases, ends) in [
            (None, false, false),
            (Some("binary"), false, false),
            (Some("nocase"), true, false),
            (Some("RTRIM"), false, true),
            (Some("of_the_application"), true, true),
        ] {
            assert_eq!(is_equal(collate, "Ada", "aDA"), cases, "{collate:?}");
            assert_eq!(is_equal(collate, "Ada", "Ada  "), ends, "{collate:?}");
            assert!(!is_equal(collate, "Ä", "ä"), "{collate:?}");
            assert!(is_equal(collate, "Ada", "Ada"), "{collate:?}");
        }
    }

    #[test]
    fn the_two_zeros_are_one_and_null_is_none() {
        let column = ColumnDef::new("x", Storage::Real);
        let of = |value: &Value| format!("{:?}", Identity::of(value, &column));
        assert_eq!(of(&Value::Real(0.0)), of(&Value::Real(-0.0)));
        assert_eq!(Identity::of(&Value::Null, &column), None);
    }
}
