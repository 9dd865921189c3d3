//! What a typed column can be asked: the methods of [`Column`].

use std::{borrow::Cow, sync::Arc};

use crate::{
    entity::{Column, Entity},
    query::{Condition, Operand, OrderBy},
    sql::{Comparison, Direction, OrderTerm, Pattern, Predicate},
    value::{ColumnType, Scalar, Value, ValueError, check_text},
};

/// A column type whose values are text to be searched: `String`, `Box<str>` and their like, and an `Option` of these.
#[diagnostic::on_unimplemented(
    message = "a column of type `{Self}` holds no text to be searched",
    label = "not a text column"
)]
pub trait Text: ColumnType {}

impl Text for String {}

impl Text for Box<str> {}

impl Text for Arc<str> {}

impl Text for Cow<'static, str> {}

impl<T: Text + Scalar> Text for Option<T> {}

/// # Comparing
///
/// Every value that the column's type can be compared with is an [`Operand`]. `None` is NULL. How NULLs are
/// treated stands at [`Condition`].
impl<E: Entity, T> Column<E, T> {
    /// Equal to the value. `eq(None)` is [`Column::is_null`].
    pub fn eq(self, value: impl Operand<T>) -> Condition<E> {
        self.condition(value.encode(), equal)
    }

    /// Not equal to the value: also the rows where the column is NULL, unlike SQL's `<>`. `ne(None)` is
    /// [`Column::is_not_null`].
    pub fn ne(self, value: impl Operand<T>) -> Condition<E> {
        self.condition(value.encode(), |column, value| {
            self.opposite(equal(column, value))
        })
    }

    /// Less than the value; NULL is not less than anything, nor anything than `None`.
    pub fn lt(self, value: impl Operand<T>) -> Condition<E> {
        self.ordered(Comparison::Less, value)
    }

    /// Less than the value, or equal; never for NULL.
    pub fn le(self, value: impl Operand<T>) -> Condition<E> {
        self.ordered(Comparison::LessOrEqual, value)
    }

    /// Greater than the value; never for NULL.
    pub fn gt(self, value: impl Operand<T>) -> Condition<E> {
        self.ordered(Comparison::Greater, value)
    }

    /// Greater than the value, or equal; never for NULL.
    pub fn ge(self, value: impl Operand<T>) -> Condition<E> {
        self.ordered(Comparison::GreaterOrEqual, value)
    }

    /// From `low` to `high`, both included; never for NULL.
    pub fn between(self, low: impl Operand<T>, high: impl Operand<T>) -> Condition<E> {
        let bounds = low
            .encode()
            .and_then(|low| high.encode().map(|high| (low, high)));
        self.condition(bounds, |column, (low, high)| {
            if low.is_null() || high.is_null() {
                Predicate::Constant(false)
            } else {
                Predicate::Between { column, low, high }
            }
        })
    }

    /// One of the values, of which there may be any number. No value selects no row; `None` among them selects
    /// the rows where the column is NULL.
    pub fn is_in(self, values: impl IntoIterator<Item = impl Operand<T>>) -> Condition<E> {
        self.condition(encode_all(values), one_of)
    }

    /// None of the values. No value selects every row; rows where the column is NULL are selected unless `None` is
    /// among the values, unlike with SQL's `NOT IN`.
    pub fn not_in(self, values: impl IntoIterator<Item = impl Operand<T>>) -> Condition<E> {
        self.condition(encode_all(values), |column, values| {
            self.opposite(one_of(column, values))
        })
    }

    /// NULL.
    pub fn is_null(self) -> Condition<E> {
        Condition::new(null(self.definition().name))
    }

    /// Not NULL.
    pub fn is_not_null(self) -> Condition<E> {
        self.is_null().not()
    }

    /// Smallest first, NULLs before everything else.
    pub fn asc(self) -> OrderBy<E> {
        self.sorted(Direction::Ascending)
    }

    /// Largest first, NULLs after everything else.
    pub fn desc(self) -> OrderBy<E> {
        self.sorted(Direction::Descending)
    }

    fn ordered(self, comparison: Comparison, value: impl Operand<T>) -> Condition<E> {
        self.condition(value.encode(), |column, value| match value {
            Value::Null => Predicate::Constant(false),
            value => Predicate::Compare {
                column,
                comparison,
                value,
            },
        })
    }

    fn sorted(self, direction: Direction) -> OrderBy<E> {
        OrderBy::new(OrderTerm {
            column: self.definition().name,
            direction,
        })
    }

    fn condition<V>(
        self,
        operand: Result<V, ValueError>,
        predicate: impl FnOnce(&'static str, V) -> Predicate,
    ) -> Condition<E> {
        let column = self.definition().name;
        match operand {
            Ok(operand) => Condition::new(predicate(column, operand)),
            Err(error) => Condition::invalid(E::TABLE.name, column, error),
        }
    }

    /// The complement, in SQL's own words where no NULL can come between.
    fn opposite(self, predicate: Predicate) -> Predicate {
        let nullable = self.definition().nullable;
        match predicate {
            Predicate::Compare {
                column,
                comparison: Comparison::Equal,
                value,
            } => Predicate::Compare {
                column,
                comparison: if nullable {
                    Comparison::Distinct
                } else {
                    Comparison::NotEqual
                },
                value,
            },
            Predicate::In {
                column,
                values,
                negated: false,
            } if !nullable => Predicate::In {
                column,
                values,
                negated: true,
            },
            Predicate::Like {
                column,
                pattern,
                negated: false,
            } if !nullable => Predicate::Like {
                column,
                pattern,
                negated: true,
            },
            other => other.complement(),
        }
    }
}

/// # Searching text
///
/// All of these are SQLite's LIKE: the 26 letters of ASCII match in either case, all other characters only
/// themselves (`Ä` is not `ä`). A pattern may have 50,000 bytes. An index serves `starts_with`, and `like` with a
/// pattern that starts with letters, only if it collates NOCASE.
impl<E: Entity, T: Text> Column<E, T> {
    /// Contains the text; `%` and `_` in it are characters like any other.
    pub fn contains(self, text: impl AsRef<str>) -> Condition<E> {
        self.matches(text.as_ref(), Pattern::containing)
    }

    /// Starts with the text; `%` and `_` in it are characters like any other.
    pub fn starts_with(self, text: impl AsRef<str>) -> Condition<E> {
        self.matches(text.as_ref(), Pattern::starting_with)
    }

    /// Ends with the text; `%` and `_` in it are characters like any other.
    pub fn ends_with(self, text: impl AsRef<str>) -> Condition<E> {
        self.matches(text.as_ref(), Pattern::ending_with)
    }

    /// Matches the pattern, in which `%` stands for any text and `_` for any one character; nothing escapes them.
    pub fn like(self, pattern: impl AsRef<str>) -> Condition<E> {
        self.matches(pattern.as_ref(), |pattern| Pattern::Raw(pattern.to_owned()))
    }

    /// Does not match the pattern: also the rows where the column is NULL.
    pub fn not_like(self, pattern: impl AsRef<str>) -> Condition<E> {
        let pattern = pattern.as_ref();
        self.condition(check_text(pattern), |column, ()| {
            self.opposite(like(column, Pattern::Raw(pattern.to_owned())))
        })
    }

    fn matches(self, text: &str, pattern: impl FnOnce(&str) -> Pattern) -> Condition<E> {
        self.condition(check_text(text), |column, ()| like(column, pattern(text)))
    }
}

fn equal(column: &'static str, value: Value) -> Predicate {
    match value {
        Value::Null => null(column),
        value => Predicate::Compare {
            column,
            comparison: Comparison::Equal,
            value,
        },
    }
}

fn one_of(column: &'static str, mut values: Vec<Value>) -> Predicate {
    let given = values.len();
    values.retain(|value| !value.is_null());
    let with_null = values.len() < given;
    if values.is_empty() {
        return if with_null {
            null(column)
        } else {
            Predicate::Constant(false)
        };
    }
    let found = Predicate::In {
        column,
        values,
        negated: false,
    };
    if with_null {
        found.or(null(column))
    } else {
        found
    }
}

const fn null(column: &'static str) -> Predicate {
    Predicate::Null {
        column,
        negated: false,
    }
}

const fn like(column: &'static str, pattern: Pattern) -> Predicate {
    Predicate::Like {
        column,
        pattern,
        negated: false,
    }
}

fn encode_all<T>(
    values: impl IntoIterator<Item = impl Operand<T>>,
) -> Result<Vec<Value>, ValueError> {
    values.into_iter().map(Operand::encode).collect()
}
