//! The columns of a struct with embedded structs in it, put together at compile time: a derive sees only the name of
//! an embedded struct's type, not its fields.

use crate::{
    entity::{ColumnDef, Group},
    value::OneOf,
};

/// A field of the struct, or of a variant of the enum.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// One column.
    Column(ColumnDef),
    /// The columns of an embedded struct.
    Embedded {
        field: &'static str,
        prefix: &'static str,
        columns: &'static [ColumnDef],
        is_optional: bool,
    },
}

impl Part {
    /// How many columns it has.
    #[must_use]
    pub const fn width(&self) -> usize {
        match self {
            Self::Column(_) => 1,
            Self::Embedded { columns, .. } => columns.len(),
        }
    }
}

/// How many columns there are.
#[must_use]
pub const fn width(parts: &[Part]) -> usize {
    start(parts, parts.len())
}

/// The position of the first column of the part at `index`.
#[must_use]
pub const fn start(parts: &[Part], index: usize) -> usize {
    let mut start = 0;
    let mut part = 0;
    while part < index {
        start += parts[part].width();
        part += 1;
    }
    start
}

/// How long the text is that holds all new names.
#[must_use]
pub const fn text_len(parts: &[Part]) -> usize {
    let mut len = 0;
    let mut part = 0;
    while part < parts.len() {
        if let Part::Embedded {
            field,
            prefix,
            columns,
            ..
        } = parts[part]
        {
            let mut column = 0;
            while column < columns.len() {
                len += prefix.len() + columns[column].name.len();
                len += field.len() + 1 + columns[column].field.len();
                column += 1;
            }
        }
        part += 1;
    }
    len
}

/// All new names, one after the other: of each embedded column its name, and the path to its field.
#[must_use]
pub const fn text<const LEN: usize>(parts: &[Part]) -> [u8; LEN] {
    let mut text = [0; LEN];
    let mut end = 0;
    let mut part = 0;
    while part < parts.len() {
        if let Part::Embedded {
            field,
            prefix,
            columns,
            ..
        } = parts[part]
        {
            let mut column = 0;
            while column < columns.len() {
                end = push(&mut text, end, prefix);
                end = push(&mut text, end, columns[column].name);
                end = push(&mut text, end, field);
                end = push(&mut text, end, ".");
                end = push(&mut text, end, columns[column].field);
                column += 1;
            }
        }
        part += 1;
    }
    text
}

const fn push<const LEN: usize>(text: &mut [u8; LEN], mut end: usize, more: &str) -> usize {
    let more = more.as_bytes();
    let mut at = 0;
    while at < more.len() {
        text[end] = more[at];
        end += 1;
        at += 1;
    }
    end
}

/// All columns; `text` is that of the same parts.
///
/// # Panics
///
/// At compile time, if two columns have one name (case does not count), or an optional embedded struct has no field
/// that is never NULL: `Some` of all `None` could not be told from `None`.
#[must_use]
pub const fn columns<const COUNT: usize>(
    parts: &[Part],
    text: &'static [u8],
) -> [ColumnDef; COUNT] {
    let mut all = [NOTHING; COUNT];
    let mut rest = text;
    let mut next = 0;
    let mut part = 0;
    while part < parts.len() {
        match parts[part] {
            Part::Column(column) => {
                all[next] = column;
                next += 1;
            }
            Part::Embedded {
                field,
                prefix,
                columns,
                is_optional,
            } => {
                assert!(
                    !is_optional || has_required(columns),
                    "an optional embedded struct needs a field that is never NULL: remove the Option of one, or that of the struct"
                );
                let mut column = 0;
                while column < columns.len() {
                    let inner = columns[column];
                    let (name, after) = rest.split_at(prefix.len() + inner.name.len());
                    let (path, after) = after.split_at(field.len() + 1 + inner.field.len());
                    rest = after;
                    all[next] = ColumnDef {
                        name: utf8(name),
                        field: utf8(path),
                        nullable: inner.nullable || is_optional,
                        group: if is_optional {
                            group(column, columns.len())
                        } else {
                            inner.group
                        },
                        ..inner
                    };
                    next += 1;
                    column += 1;
                }
            }
        }
        part += 1;
    }
    assert_distinct(&all);
    all
}

const NOTHING: ColumnDef = ColumnDef::new("", crate::value::Storage::Integer);

/// The columns of an enum with data: but for the first, which says which variant it is, each is NULL in other variants;
/// and they are right only together.
#[must_use]
pub const fn of_variants<const COUNT: usize>(
    mut columns: [ColumnDef; COUNT],
    kinds: OneOf,
) -> [ColumnDef; COUNT] {
    columns[0].one_of = kinds;
    let mut column = 0;
    while column < COUNT {
        columns[column].group = group(column, COUNT);
        columns[column].nullable = column > 0;
        column += 1;
    }
    columns
}

/// The group of the column at `column` of one of `count`.
const fn group(column: usize, count: usize) -> Group {
    Group {
        before: column,
        after: count - column - 1,
    }
}

/// The position of the column of a field, or of the path to one.
///
/// # Panics
///
/// At compile time, if there is no such field.
#[must_use]
pub const fn position(columns: &[ColumnDef], field: &str) -> usize {
    let mut column = 0;
    while column < columns.len() {
        if is_equal(columns[column].field.as_bytes(), field.as_bytes(), false) {
            return column;
        }
        column += 1;
    }
    panic!(
        "the embedded struct has no such field: name one that it has, as in `index(columns(home.city))`"
    )
}

const fn has_required(columns: &[ColumnDef]) -> bool {
    let mut column = 0;
    while column < columns.len() {
        if !columns[column].nullable {
            return true;
        }
        column += 1;
    }
    false
}

const fn assert_distinct(columns: &[ColumnDef]) {
    let mut column = 0;
    while column < columns.len() {
        let mut other = 0;
        while other < column {
            assert!(
                !is_equal(
                    columns[column].name.as_bytes(),
                    columns[other].name.as_bytes(),
                    true
                ),
                "two columns have the same name (case does not count): give one of the embedded structs another prefix"
            );
            other += 1;
        }
        column += 1;
    }
}

const fn is_equal(one: &[u8], other: &[u8], ignores_case: bool) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        let is_same = if ignores_case {
            one[at].eq_ignore_ascii_case(&other[at])
        } else {
            one[at] == other[at]
        };
        if !is_same {
            return false;
        }
        at += 1;
    }
    true
}

const fn utf8(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("names are put together from names"),
    }
}
