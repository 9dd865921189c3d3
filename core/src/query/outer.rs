//! What a subquery says about the row around it.

use crate::{
    entity::{Column, Entity},
    query::{Condition, Expr, Fetch, Part, Relation, condition::Invalid, route::Ends},
    sql::Term,
};

/// In a query inside of another: an expression over the row around it, for which the inner one is asked anew.
///
/// The row is the nearest of entity `E` around the query, or the relation's condition, in which it stands. That is also
/// so where both are of one entity: what is written without `outer` is of the inner row.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{exists, outer};
///
/// # #[derive(Debug, Entity)]
/// # #[entity(table = "orders")]
/// # struct Order { #[entity(id)] id: i64, item: String, day: i64 }
/// # #[derive(Debug, Entity)]
/// # struct Price { #[entity(id)] id: i64, item: String, since: i64, amount: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<(Order, Price)>().await?;
/// # let mut ctx = db.context();
/// # for (item, day) in [("tea", 3), ("tea", 9), ("jam", 9)] { ctx.add(Order { id: 0, item: item.into(), day }); }
/// # for (since, amount) in [(1, 4), (7, 5)] { ctx.add(Price { id: 0, item: "tea".into(), since, amount }); }
/// # ctx.save_changes().await?;
/// // The price of the item on the day of the order.
/// let prices = || {
///     Price::query()
///         .filter(Price::ITEM.eq(outer(Order::ITEM)))
///         .filter(Price::SINCE.le(outer(Order::DAY)))
/// };
/// let price = prices().order_by(Price::SINCE.desc()).limit(1).select(Price::AMOUNT).as_value();
/// let orders = Order::query().order_by(Order::ID.asc());
/// let amounts = orders.clone().select((Order::ITEM, price)).all(&db).await?;
/// assert_eq!(amounts.iter().map(|(_, amount)| *amount).collect::<Vec<_>>(), [Some(4), Some(5), None]);
/// assert_eq!(orders.filter(!exists(prices())).count(&db).await?, 1);
/// # Ok(()) }
/// ```
///
/// A query that runs with an `outer` for which there is no row around fails with kind
/// [`ErrorKind::Refused`](crate::error::ErrorKind::Refused): so do queries by themselves, and the conditions of what is
/// read along of a declared to-many relation, which is another statement.
#[must_use]
pub fn outer<F: Entity, E: Entity, T, P: Part>(expression: Column<E, T, P>) -> Expr<F, T> {
    let mut node = expression.node().map(|term| Term::Outer {
        table: E::TABLE.name,
        term: Box::new(term),
    });
    node.term = node.term.and_then(|term| match &term {
        Term::Outer { term: inner, .. } if inner.aggregates() || inner.looks_around() => {
            Err(Invalid::Refused(
                "of the row around a query neither aggregates nor windows are taken: select them in a query `as_value`",
            ))
        }
        _ => Ok(term),
    });
    node.into_expr()
}

/// # Made for one query
impl<E: Entity, T: Entity> Relation<E, Vec<T>> {
    /// Those for which a condition is true, whatever it is: of the entity's row it speaks as of the one
    /// [`outer`](crate::query::outer).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::outer;
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Visit { #[entity(id)] id: i64, at: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Season { #[entity(id)] id: i64, name: String, begins: i64, ends: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Visit, Season)>().await?;
    /// # let mut ctx = db.context();
    /// # for at in [1, 5, 9] { ctx.add(Visit { id: 0, at }); }
    /// # ctx.add(Season { id: 0, name: "spring".into(), begins: 0, ends: 6 });
    /// # ctx.save_changes().await?;
    /// fn visits() -> Fetch<Season, Vec<Visit>> {
    ///     Relation::when(Visit::AT.between(outer(Season::BEGINS), outer(Season::ENDS)))
    /// }
    /// let seasons = Season::query().with(visits()).all(&db).await?;
    /// assert_eq!(seasons[0].1.len(), 2);
    /// let counts = Season::query().filter(visits().any(Visit::AT.gt(3))).select((Season::NAME, visits().count()));
    /// assert_eq!(counts.all(&db).await?, [("spring".to_owned(), 2)]);
    /// # Ok(()) }
    /// ```
    pub fn when(condition: Condition<T>) -> Fetch<E, Vec<T>> {
        Self::new(Ends::When).fetch().filter(condition)
    }
}

/// Whether every row is there that is named.
pub(in crate::query) const fn check(missing: Option<&'static str>) -> Result<(), Invalid> {
    match missing {
        Some(table) => Err(Invalid::NoRowAround { table }),
        None => Ok(()),
    }
}
