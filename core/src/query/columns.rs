//! What a typed column can be asked: the methods of [`Column`].

use std::{borrow::Cow, sync::Arc};

use crate::{
    entity::{Column, Entity},
    query::{Condition, Operand, OrderBy, Part},
    sql::{Comparison, Direction, OrderTerm, Pattern, Predicate, Term},
    value::{ColumnType, Scalar, Value, ValueError, check_text},
};

/// A column type whose values are text to be searched: `String`, `Box<str>` and their like, a newtype of one, and an
/// `Option` of these.
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
impl<E: Entity, T, P: Part> Column<E, T, P> {
    /// Equal to the value. `eq(None)` is [`Column::is_null`].
    pub fn eq(self, value: impl Operand<T>) -> Condition<E> {
        self.condition(value.encode(), equal)
    }

    /// Not equal to the value: also the rows where the column is NULL, unlike SQL's `<>`. `ne(None)` is
    /// [`Column::is_not_null`].
    pub fn ne(self, value: impl Operand<T>) -> Condition<E> {
        self.opposite(value.encode(), equal)
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
        self.condition(bounds, |term, (low, high)| {
            if low.is_null() || high.is_null() {
                Predicate::Constant(false)
            } else {
                Predicate::Between { term, low, high }
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
        self.opposite(encode_all(values), one_of)
    }

    /// NULL.
    pub fn is_null(self) -> Condition<E>
    where
        T: ColumnType,
    {
        self.condition(Ok(()), |term, ()| null(term))
    }

    /// Not NULL.
    pub fn is_not_null(self) -> Condition<E>
    where
        T: ColumnType,
    {
        self.is_null().not()
    }

    /// Smallest first, NULLs before everything else.
    pub fn asc(self) -> OrderBy<E>
    where
        T: ColumnType,
    {
        self.sorted(Direction::Ascending)
    }

    /// Largest first, NULLs after everything else.
    pub fn desc(self) -> OrderBy<E>
    where
        T: ColumnType,
    {
        self.sorted(Direction::Descending)
    }

    fn ordered(self, comparison: Comparison, value: impl Operand<T>) -> Condition<E> {
        self.condition(value.encode(), |term, value| {
            ordered(term, comparison, value)
        })
    }

    fn sorted(self, direction: Direction) -> OrderBy<E> {
        let column = self.definition().name;
        match self.part.term(column) {
            Ok(term) => OrderBy::new(OrderTerm { term, direction }),
            Err(error) => OrderBy::invalid(E::TABLE.name, column, error),
        }
    }

    fn condition<V>(
        self,
        operand: Result<V, ValueError>,
        predicate: impl FnOnce(Term, V) -> Predicate,
    ) -> Condition<E> {
        let column = self.definition().name;
        let both = operand.and_then(|operand| Ok((self.part.term(column)?, operand)));
        match both {
            Ok((term, operand)) => Condition::new(predicate(term, operand)),
            Err(error) => Condition::invalid(E::TABLE.name, column, error),
        }
    }

    fn opposite<V>(
        self,
        operand: Result<V, ValueError>,
        predicate: impl FnOnce(Term, V) -> Predicate,
    ) -> Condition<E> {
        let nullable = self.definition().nullable;
        self.condition(operand, |term, operand| {
            let nullable = nullable || !matches!(term, Term::Column(_));
            opposite(predicate(term, operand), nullable)
        })
    }
}

/// # Searching text
///
/// All of these are SQLite's LIKE: the 26 letters of ASCII match in either case, all other characters only
/// themselves (`Ä` is not `ä`). A pattern may have 50,000 bytes. An index serves `starts_with`, and `like` with a
/// pattern that starts with letters, only if it collates NOCASE.
impl<E: Entity, T: Text, P: Part> Column<E, T, P> {
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
        self.opposite(check_text(pattern), |term, ()| {
            like(term, Pattern::Raw(pattern.to_owned()))
        })
    }

    fn matches(self, text: &str, pattern: impl FnOnce(&str) -> Pattern) -> Condition<E> {
        self.condition(check_text(text), |term, ()| like(term, pattern(text)))
    }
}

/// The complement, in SQL's own words where no NULL can come between.
fn opposite(predicate: Predicate, nullable: bool) -> Predicate {
    match predicate {
        Predicate::Compare {
            term,
            comparison: Comparison::Equal,
            value,
        } => Predicate::Compare {
            term,
            comparison: if nullable {
                Comparison::Distinct
            } else {
                Comparison::NotEqual
            },
            value,
        },
        Predicate::In {
            term,
            values,
            negated: false,
        } if !nullable => Predicate::In {
            term,
            values,
            negated: true,
        },
        Predicate::Like {
            term,
            pattern,
            negated: false,
        } if !nullable => Predicate::Like {
            term,
            pattern,
            negated: true,
        },
        other => other.complement(),
    }
}

fn equal(term: Term, value: Value) -> Predicate {
    match value {
        Value::Null => null(term),
        value => compare(term, Comparison::Equal, value),
    }
}

fn ordered(term: Term, comparison: Comparison, value: Value) -> Predicate {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    // To SQLite all numbers are less than all texts. At a path there may be either, and only values of the operand's
    // own kind are meant; the second bound is one that an index serves too.
    let bound = match (&term, &value, comparison) {
        (_, Value::Null, _) => return Predicate::Constant(false),
        (Term::Path { .. }, Value::Text(_), Less | LessOrEqual) => Some(is_text(term.clone())),
        (Term::Path { .. }, Value::Integer(_) | Value::Real(_), Greater | GreaterOrEqual) => {
            Some(compare(term.clone(), Less, least_text()))
        }
        _ => None,
    };
    let compared = compare(term, comparison, value);
    match bound {
        Some(bound) => compared.and(bound),
        None => compared,
    }
}

fn is_text(term: Term) -> Predicate {
    compare(term, Comparison::GreaterOrEqual, least_text())
}

const fn least_text() -> Value {
    Value::Text(String::new())
}

const fn compare(term: Term, comparison: Comparison, value: Value) -> Predicate {
    Predicate::Compare {
        term,
        comparison,
        value,
    }
}

fn one_of(term: Term, mut values: Vec<Value>) -> Predicate {
    let given = values.len();
    values.retain(|value| !value.is_null());
    let with_null = values.len() < given;
    if values.is_empty() {
        return if with_null {
            null(term)
        } else {
            Predicate::Constant(false)
        };
    }
    let null = with_null.then(|| null(term.clone()));
    let found = Predicate::In {
        term,
        values,
        negated: false,
    };
    match null {
        Some(null) => found.or(null),
        None => found,
    }
}

const fn null(term: Term) -> Predicate {
    Predicate::Null {
        term,
        negated: false,
    }
}

/// LIKE takes numbers for text; at a path only texts are meant.
fn like(term: Term, pattern: Pattern) -> Predicate {
    let text = matches!(term, Term::Path { .. }).then(|| is_text(term.clone()));
    let matches = Predicate::Like {
        term,
        pattern,
        negated: false,
    };
    match text {
        Some(text) => matches.and(text),
        None => matches,
    }
}

pub(in crate::query) fn encode_all<T>(
    values: impl IntoIterator<Item = impl Operand<T>>,
) -> Result<Vec<Value>, ValueError> {
    values.into_iter().map(Operand::encode).collect()
}
