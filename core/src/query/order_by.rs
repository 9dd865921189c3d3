//! Sort orders of one entity.

use std::{fmt, iter, marker::PhantomData};

use crate::{
    query::{
        condition::{Invalid, Shape},
        part::Node,
    },
    sql::{Direction, OrderTerm},
};

/// A column of entity `E` to sort by, and the direction; made by [`Column::asc`](crate::entity::Column::asc) and
/// [`Column::desc`](crate::entity::Column::desc).
///
/// It is an iterator's worth of itself, so that [`Query::order_by`](crate::query::Query::order_by) takes one,
/// an array, a list, or an `Option`.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::OrderBy;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// /// What a user chose.
/// fn order(by: &str, descending: bool) -> OrderBy<Item> {
///     match (by, descending) {
///         ("price", false) => Item::PRICE.asc(),
///         ("price", true) => Item::PRICE.desc(),
///         _ => Item::NAME.asc(),
///     }
/// }
/// let items = Item::query().order_by([order("price", true), order("name", false)]);
/// ```
#[must_use = "an order does nothing until a query sorts by it"]
pub struct OrderBy<E> {
    term: Result<OrderTerm, Invalid>,
    shape: Shape,
    entity: PhantomData<fn() -> E>,
}

impl<E> OrderBy<E> {
    pub(in crate::query) fn new(node: Node, direction: Direction) -> Self {
        let term = match node.shape.check() {
            Ok(()) => node.term,
            Err(too_deep) => Err(too_deep),
        };
        Self {
            term: term.map(|term| OrderTerm { term, direction }),
            shape: node.shape,
            entity: PhantomData,
        }
    }

    pub(in crate::query) fn into_term(self) -> Result<OrderTerm, Invalid> {
        self.term
    }

    /// The term, and how deep it is.
    pub(in crate::query) fn into_parts(self) -> (Result<OrderTerm, Invalid>, Shape) {
        (self.term, self.shape)
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
        Self {
            term: self.term.clone(),
            shape: self.shape,
            entity: PhantomData,
        }
    }
}

impl<E> fmt::Debug for OrderBy<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.term {
            Ok(term) => term.fmt(f),
            Err(invalid) => invalid.fmt(f),
        }
    }
}

/// What [`Query::order_by`](crate::query::Query::order_by) takes: one order, an array, or any other list.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price) in [("tea", 3), ("cake", 7), ("jam", 7)] {
/// #     ctx.add(Item { id: 0, name: name.into(), price });
/// # }
/// # ctx.save_changes().await?;
/// use anabranch::query::Orders;
///
/// fn sorted(orders: impl Orders<Item>) -> Query<Item> {
///     Item::query().order_by(orders).order_by(Item::ID.asc()) // so that ties are always in the same order
/// }
/// let dearest = sorted([Item::PRICE.desc()]).select(Item::NAME).all(&db).await?;
/// let by_name = sorted(vec![Item::NAME.asc(), Item::PRICE.asc()]).select(Item::NAME).all(&db).await?;
/// assert_eq!((dearest[0].as_str(), by_name[0].as_str()), ("cake", "cake"));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` says no order",
    label = "neither ascending nor descending",
    note = "write `.asc()` or `.desc()` after the column; several are an array: `[Item::PRICE.desc(), Item::ID.asc()]`"
)]
pub trait Orders<E> {
    /// One after the other, the first counting most.
    fn orders(self) -> impl Iterator<Item = OrderBy<E>>;
}

#[diagnostic::do_not_recommend]
impl<E, I: IntoIterator<Item = OrderBy<E>>> Orders<E> for I {
    fn orders(self) -> impl Iterator<Item = OrderBy<E>> {
        self.into_iter()
    }
}
