//! Sort orders of one entity.

use std::{fmt, iter, marker::PhantomData};

use crate::sql::OrderTerm;

/// A column of entity `E` to sort by, and the direction; made by [`Column::asc`](crate::entity::Column::asc) and
/// [`Column::desc`](crate::entity::Column::desc).
///
/// It is an iterator's worth of itself, so that [`Query::order_by`](crate::query::Query::order_by) takes one,
/// an array, a list, or an `Option`.
#[must_use = "an order does nothing until a query sorts by it"]
pub struct OrderBy<E> {
    term: OrderTerm,
    entity: PhantomData<fn() -> E>,
}

impl<E> OrderBy<E> {
    pub(in crate::query) const fn new(term: OrderTerm) -> Self {
        Self {
            term,
            entity: PhantomData,
        }
    }

    pub(in crate::query) const fn term(self) -> OrderTerm {
        self.term
    }
}

impl<E> IntoIterator for OrderBy<E> {
    type Item = Self;
    type IntoIter = iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        iter::once(self)
    }
}

impl<E> Clone for OrderBy<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for OrderBy<E> {}

impl<E> fmt::Debug for OrderBy<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.term.column, self.term.direction.as_sql())
    }
}
