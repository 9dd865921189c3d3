//! What a condition asks, an order sorts by, and a selection reads: a column, or what is computed from columns.

use crate::{
    entity::{Column, Entity, Stored},
    query::{
        Operand,
        case::checked,
        condition::{Invalid, Shape},
        nullable::Nullable,
    },
    sql::Term,
};

/// An expression over rows of entity `E` that gives a `T`: what the methods of columns make of them, and of each other.
///
/// ```
/// # use anabranch::prelude::*;
/// #[derive(Debug, Entity)]
/// struct Line {
///     #[entity(id)]
///     id: i64,
///     price: i64,
///     amount: i64,
/// }
///
/// fn total() -> Expr<Line, i64> {
///     Line::PRICE * Line::AMOUNT
/// }
/// let large = Line::query().filter(total().gt(100)).order_by(total().desc());
/// ```
pub type Expr<E, T> = Column<E, T, Computed>;

/// A value as an expression: what is the same in every row.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::value;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// let labelled = Item::query().select((value::<_, String>("item"), Item::NAME));
/// ```
pub fn value<E: Entity, T>(value: impl Operand<E, T>) -> Expr<E, T> {
    checked(value.node()).into_expr()
}

/// What tells an [`Expr`] from a column.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Computed};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// let dozen: Column<Item, i64, Computed> = Item::PRICE * 12; // an `Expr<Item, i64>`
/// ```
#[derive(Debug, Clone)]
pub struct Computed {
    /// Or what is wrong with it.
    term: Result<Term, Invalid>,
    shape: Shape,
    /// The first of its columns, for errors to name.
    column: &'static str,
}

/// Whether a [`Column`] is one of the table, or computed. There are no others.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Part};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// fn is_dear<E: Entity, P: Part>(price: Column<E, i64, P>) -> Condition<E> {
///     price.gt(100)
/// }
/// let dear = is_dear(Item::PRICE).or(is_dear(Item::PRICE * 12));
/// ```
pub trait Part: Clone + Send + Sync + 'static {
    /// All that is known of it.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn node<E: Entity>(self) -> Node;
}

/// An expression in the making.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(in crate::query) term: Result<Term, Invalid>,
    pub(in crate::query) shape: Shape,
    pub(in crate::query) column: &'static str,
    /// Whether it is a column that is never NULL.
    pub(in crate::query) is_required: bool,
}

#[allow(private_interfaces, reason = "as in the trait")]
impl Part for Stored {
    fn node<E: Entity>(self) -> Node {
        let column = &E::TABLE.columns[self.0];
        Node {
            term: Ok(Term::Column(column.name)),
            shape: Shape::default(),
            column: column.name,
            is_required: !column.nullable,
        }
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl Part for Computed {
    fn node<E: Entity>(self) -> Node {
        Node {
            term: self.term,
            shape: self.shape,
            column: self.column,
            is_required: false,
        }
    }
}

impl<E: Entity, T, P: Part> Column<E, T, P> {
    pub(in crate::query) fn node(self) -> Node {
        self.part.node::<E>()
    }

    /// The same as an expression, such as two branches of an `if` have in common.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
    /// fn price(by_the_dozen: bool) -> Expr<Item, i64> {
    ///     if by_the_dozen { Item::PRICE * 12 } else { Item::PRICE.expr() }
    /// }
    /// ```
    pub fn expr(self) -> Expr<E, T> {
        self.node().into_expr()
    }

    /// The same, as one that may be NULL: to be compared with what may be.
    pub fn nullable(self) -> Expr<E, T::Nullable>
    where
        T: Nullable,
    {
        self.node().into_expr()
    }
}

impl Node {
    /// The value of an operand, or another expression, of which it is not known what it is of.
    pub(in crate::query) const fn of(term: Result<Term, Invalid>) -> Self {
        Self {
            term,
            shape: Shape::FLAT,
            column: "",
            is_required: false,
        }
    }

    pub(in crate::query) fn into_expr<E, T>(self) -> Expr<E, T> {
        let term = match self.shape.check() {
            Ok(()) => self.term,
            Err(invalid) => Err(invalid),
        };
        Column::of(Computed {
            term,
            shape: self.shape,
            column: self.column,
        })
    }

    /// Something made of this expression.
    pub(in crate::query) fn map(self, make: impl FnOnce(Term) -> Term) -> Self {
        Self {
            term: self.term.map(make),
            shape: self.shape.around(),
            column: self.column,
            is_required: false,
        }
    }

    /// Something made of this expression and others.
    pub(in crate::query) fn with(
        self,
        others: impl IntoIterator<Item = Self>,
        make: impl FnOnce(Term, Vec<Term>) -> Term,
    ) -> Self {
        let mut shape = self.shape;
        let mut column = self.column;
        let mut terms = Ok(Vec::new());
        for other in others {
            shape = shape.and(other.shape);
            if column.is_empty() {
                column = other.column;
            }
            terms = match (terms, other.term) {
                (Ok(mut terms), Ok(term)) => {
                    terms.push(term);
                    Ok(terms)
                }
                (Err(invalid), _) | (_, Err(invalid)) => Err(invalid),
            };
        }
        Self {
            term: self.term.and_then(|term| Ok(make(term, terms?))),
            shape: shape.around(),
            column,
            is_required: false,
        }
    }
}
