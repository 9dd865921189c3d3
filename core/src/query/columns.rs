//! What a typed column can be asked: the methods of [`Column`].

use crate::{
    entity::{Column, Entity},
    query::{Condition, Operand, OrderBy, Part, Text, condition::Invalid, part::Node},
    sql::{Comparison, Direction, Pattern, Predicate, Term},
    value::{ColumnType, Value, ValueError, check_text},
};

/// # Comparing
///
/// Whatever the column's type can be compared with is an [`Operand`]. `None` is NULL. How NULLs are treated stands at
/// [`Condition`].
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// let count = |condition: Condition<Item>| Item::query().filter(condition).count(&db);
/// assert_eq!(count(Item::PRICE.eq(7).and(Item::PRICE.ne(3))).await?, 2);
/// assert_eq!(count(Item::PRICE.between(3, 5).and(Item::PRICE.lt(4))).await?, 1);
/// assert_eq!(count(Item::PRICE.ge(3).and(Item::PRICE.le(7))).await?, 3);
/// assert_eq!(count(Item::NAME.is_in(["tea", "jam"]).and(Item::NAME.gt("k"))).await?, 1);
/// assert_eq!(count(Item::DISCOUNT.not_in([2])).await?, 2); // the one that is NULL too
/// assert_eq!(count(Item::DISCOUNT.is_null()).await?, 1);
/// assert_eq!(count(Item::DISCOUNT.is_not_null()).await?, 2);
/// assert_eq!(count(Item::DISCOUNT.eq(Item::PRICE)).await?, 1);
/// let dearest = Item::query().order_by([Item::PRICE.desc(), Item::NAME.asc()]).first(&db).await?;
/// assert_eq!(dearest.map(|item| item.name).as_deref(), Some("cake"));
/// # Ok(()) }
/// ```
impl<E: Entity, T, P: Part> Column<E, T, P> {
    /// Equal to the value, or to the other expression. `eq(None)` is [`Column::is_null`]; of two expressions that are
    /// both NULL each is equal to the other.
    pub fn eq(self, value: impl Operand<E, T>) -> Condition<E> {
        self.compared(value, equal)
    }

    /// Not equal: also the rows where the column is NULL, unlike SQL's `<>`. `ne(None)` is [`Column::is_not_null`].
    pub fn ne(self, value: impl Operand<E, T>) -> Condition<E> {
        self.compared(value, |term, with, is_required| {
            opposite(equal(term, with, is_required), is_required)
        })
    }

    /// Less than the other; NULL is not less than anything, nor anything than `None`.
    pub fn lt(self, value: impl Operand<E, T>) -> Condition<E> {
        self.ordered(Comparison::Less, value)
    }

    /// Less than the other, or equal; never for NULL.
    pub fn le(self, value: impl Operand<E, T>) -> Condition<E> {
        self.ordered(Comparison::LessOrEqual, value)
    }

    /// Greater than the other; never for NULL.
    pub fn gt(self, value: impl Operand<E, T>) -> Condition<E> {
        self.ordered(Comparison::Greater, value)
    }

    /// Greater than the other, or equal; never for NULL.
    pub fn ge(self, value: impl Operand<E, T>) -> Condition<E> {
        self.ordered(Comparison::GreaterOrEqual, value)
    }

    /// From `low` to `high`, both included; never for NULL.
    pub fn between(self, low: impl Operand<E, T>, high: impl Operand<E, T>) -> Condition<E> {
        let bounds = low.node().and_then(|low| Ok(vec![low, high.node()?]));
        self.condition(bounds, |term, mut bounds, _| {
            match (bounds.pop(), bounds.pop()) {
                (Some(high), Some(low)) if !low.is_null() && !high.is_null() => {
                    Predicate::Between { term, low, high }
                }
                _ => Predicate::Constant(false),
            }
        })
    }

    /// One of the values, of which there may be any number. No value selects no row; `None` among them selects
    /// the rows where the column is NULL.
    pub fn is_in(self, values: impl IntoIterator<Item = impl Operand<E, T>>) -> Condition<E> {
        self.condition(nodes(values), |term, values, _| one_of(term, values))
    }

    /// None of the values. No value selects every row; rows where the column is NULL are selected unless `None` is
    /// among the values, unlike with SQL's `NOT IN`.
    pub fn not_in(self, values: impl IntoIterator<Item = impl Operand<E, T>>) -> Condition<E> {
        self.condition(nodes(values), |term, values, is_required| {
            opposite(one_of(term, values), is_required)
        })
    }

    /// NULL.
    pub fn is_null(self) -> Condition<E>
    where
        T: ColumnType,
    {
        self.asked(null)
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
        OrderBy::new(self.node(), Direction::Ascending)
    }

    /// Largest first, NULLs after everything else.
    pub fn desc(self) -> OrderBy<E>
    where
        T: ColumnType,
    {
        OrderBy::new(self.node(), Direction::Descending)
    }

    fn ordered(self, comparison: Comparison, value: impl Operand<E, T>) -> Condition<E> {
        self.compared(value, |term, with, _| ordered(term, comparison, with))
    }

    /// A condition of this expression and one operand; it is told whether neither of them is ever NULL.
    fn compared(
        self,
        operand: impl Operand<E, T>,
        predicate: impl FnOnce(Term, Term, bool) -> Predicate,
    ) -> Condition<E> {
        let node = self.node();
        match operand.node() {
            Err(error) => Condition::invalid(node.blamed::<E>(error)),
            Ok(operand) => {
                let shape = node.shape.and(operand.shape);
                let is_value = matches!(operand.term, Ok(Term::Value(_)));
                let is_required = node.is_required && (is_value || operand.is_required);
                let predicate =
                    (node.term).and_then(|term| Ok(predicate(term, operand.term?, is_required)));
                Condition::shaped(predicate, shape)
            }
        }
    }

    /// The same with any number of operands.
    fn condition(
        self,
        operands: Result<Vec<Node>, ValueError>,
        predicate: impl FnOnce(Term, Vec<Term>, bool) -> Predicate,
    ) -> Condition<E> {
        let node = self.node();
        let operands = match operands {
            Ok(operands) => operands,
            Err(error) => return Condition::invalid(node.blamed::<E>(error)),
        };
        let shape = (operands.iter()).fold(node.shape, |shape, operand| shape.and(operand.shape));
        let terms: Result<Vec<_>, _> = operands.into_iter().map(|operand| operand.term).collect();
        let predicate = (node.term).and_then(|term| Ok(predicate(term, terms?, node.is_required)));
        Condition::shaped(predicate, shape)
    }

    pub(in crate::query) fn asked(self, predicate: impl FnOnce(Term) -> Predicate) -> Condition<E> {
        let node = self.node();
        Condition::shaped(node.term.map(predicate), node.shape)
    }
}

/// # Searching text
///
/// All of these are SQLite's LIKE: the 26 letters of ASCII match in either case, all other characters only
/// themselves (`Ä` is not `ä`). A pattern may have 50,000 bytes. An index serves `starts_with`, and `like` with a
/// pattern that starts with letters, only if it collates NOCASE. To tell upper from lower case see
/// [`starts_with_exact`](Self::starts_with_exact).
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// let count = |condition: Condition<Item>| Item::query().filter(condition).count(&db);
/// assert_eq!(count(Item::NAME.contains("A")).await?, 3);
/// assert_eq!(count(Item::NAME.starts_with("te").or(Item::NAME.ends_with("ke"))).await?, 2);
/// assert_eq!(count(Item::NAME.like("_a%")).await?, 2);
/// assert_eq!(count(Item::NAME.not_like("_a%")).await?, 1);
/// # Ok(()) }
/// ```
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
        let raw = |pattern: &str| Pattern::Raw(pattern.to_owned());
        self.searched(pattern.as_ref(), raw, opposite)
    }

    fn matches(self, text: &str, pattern: impl FnOnce(&str) -> Pattern) -> Condition<E> {
        self.searched(text, pattern, |predicate, _| predicate)
    }

    fn searched(
        self,
        text: &str,
        pattern: impl FnOnce(&str) -> Pattern,
        finish: impl FnOnce(Predicate, bool) -> Predicate,
    ) -> Condition<E> {
        let node = self.node();
        match check_text(text) {
            Err(error) => Condition::invalid(node.blamed::<E>(error)),
            Ok(()) => {
                let is_required = node.is_required;
                let predicate =
                    (node.term).map(|term| finish(like(term, pattern(text)), is_required));
                Condition::shaped(predicate, node.shape)
            }
        }
    }
}

impl Node {
    /// A value that this could not store.
    pub(in crate::query) const fn blamed<E: Entity>(&self, error: ValueError) -> Invalid {
        Invalid::Operand {
            table: E::TABLE.name,
            column: self.column,
            error,
        }
    }
}

/// The complement, in SQL's own words where no NULL can come between.
fn opposite(predicate: Predicate, is_required: bool) -> Predicate {
    match predicate {
        Predicate::Compare {
            term,
            comparison: Comparison::Equal,
            with,
        } => Predicate::Compare {
            term,
            comparison: if is_required {
                Comparison::NotEqual
            } else {
                Comparison::Distinct
            },
            with,
        },
        Predicate::Compare {
            term,
            comparison: Comparison::Same,
            with,
        } => compare(term, Comparison::Distinct, with),
        Predicate::In {
            term,
            values,
            negated: false,
        } if is_required => Predicate::In {
            term,
            values,
            negated: true,
        },
        Predicate::Like {
            term,
            pattern,
            negated: false,
        } if is_required => Predicate::Like {
            term,
            pattern,
            negated: true,
        },
        other => other.complement(),
    }
}

fn equal(term: Term, with: Term, is_required: bool) -> Predicate {
    match with {
        Term::Value(Value::Null) => null(term),
        Term::Value(_) => compare(term, Comparison::Equal, with),
        with if is_required => compare(term, Comparison::Equal, with),
        // Both may be NULL.
        with => compare(term, Comparison::Same, with),
    }
}

fn ordered(term: Term, comparison: Comparison, with: Term) -> Predicate {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    // To SQLite all numbers are less than all texts. At a path there may be either, and only values of the operand's
    // own kind are meant; the second bound is one that an index serves too.
    let bound = match (&term, &with, comparison) {
        (_, Term::Value(Value::Null), _) => return Predicate::Constant(false),
        (term, Term::Value(Value::Text(_)), Less | LessOrEqual) if is_path(term) => {
            Some(is_text(term.clone()))
        }
        (term, Term::Value(Value::Integer(_) | Value::Real(_)), Greater | GreaterOrEqual)
            if is_path(term) =>
        {
            Some(compare(term.clone(), Less, least_text()))
        }
        _ => None,
    };
    let compared = compare(term, comparison, with);
    match bound {
        Some(bound) => compared.and(bound),
        None => compared,
    }
}

/// Whether it is what stands at a path inside of JSON, be it that of a related row.
pub(in crate::query) fn is_path(term: &Term) -> bool {
    match term {
        Term::Path { .. } => true,
        Term::At { term, .. } => is_path(term),
        _ => false,
    }
}

pub(in crate::query) fn is_text(term: Term) -> Predicate {
    compare(term, Comparison::GreaterOrEqual, least_text())
}

const fn least_text() -> Term {
    Term::Value(Value::Text(String::new()))
}

const fn compare(term: Term, comparison: Comparison, with: Term) -> Predicate {
    Predicate::Compare {
        term,
        comparison,
        with,
    }
}

fn one_of(term: Term, given: Vec<Term>) -> Predicate {
    let (mut values, mut others) = (Vec::new(), Vec::new());
    for operand in given {
        match operand {
            Term::Value(Value::Null) => others.push(null(term.clone())),
            Term::Value(value) => values.push(value),
            expression => others.push(equal(term.clone(), expression, false)),
        }
    }
    others.dedup();
    let found = (!values.is_empty()).then_some(Predicate::In {
        term,
        values,
        negated: false,
    });
    (found.into_iter().chain(others))
        .reduce(Predicate::or)
        .unwrap_or(Predicate::Constant(false))
}

pub(in crate::query) const fn null(term: Term) -> Predicate {
    Predicate::Null {
        term,
        negated: false,
    }
}

/// LIKE takes numbers for text; at a path only texts are meant.
fn like(term: Term, pattern: Pattern) -> Predicate {
    let text = is_path(&term).then(|| is_text(term.clone()));
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

pub(in crate::query) fn nodes<E, T>(
    values: impl IntoIterator<Item = impl Operand<E, T>>,
) -> Result<Vec<Node>, ValueError> {
    values.into_iter().map(Operand::node).collect()
}
