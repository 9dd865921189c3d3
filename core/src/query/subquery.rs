//! Queries inside of queries.

use crate::{
    entity::{Column, Entity},
    query::{Condition, Expr, Nullable, Part, Query, Selection, condition::Invalid, part::Node},
    sql::{Predicate, Term},
};

/// # Asking other queries
impl<E: Entity, T: Nullable, P: Part> Column<E, T, P> {
    /// One of the values that another query selects. NULL is none of them.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[derive(Debug, Entity)]
    /// # struct Sale { #[entity(id)] id: i64, item: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Item, Sale)>().await?;
    /// let dear = Sale::query().filter(Sale::PRICE.gt(100)).select(Sale::ITEM);
    /// let items = Item::query().filter(Item::ID.is_in_query(dear)).all(&db).await?;
    /// # assert!(items.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn is_in_query<F: Entity, S>(self, query: Query<F, S>) -> Condition<E>
    where
        S: Selection<F>,
        S::Output: Nullable<Required = T::Required>,
    {
        let node = self.node();
        let shape = node.shape.and(query.shape()).around();
        let predicate = (node.term).and_then(|term| {
            let select = Box::new(one_value(query)?);
            Ok(Predicate::InSelect { term, select })
        });
        Condition::shaped(predicate, shape)
    }

    /// None of the values that another query selects; also where this is NULL, unlike with SQL's `NOT IN`.
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
    /// let discounts = Item::query().select(Item::DISCOUNT); // one of them is NULL
    /// assert_eq!(Item::query().filter(Item::PRICE.not_in_query(discounts)).count(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    pub fn not_in_query<F: Entity, S>(self, query: Query<F, S>) -> Condition<E>
    where
        S: Selection<F>,
        S::Output: Nullable<Required = T::Required>,
    {
        self.is_in_query(query).not()
    }
}

/// Another query finds a row.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::exists;
///
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
/// let if_any_is_dear = exists(Item::query().filter(Item::PRICE.gt(100)));
/// assert_eq!(Item::query().filter(if_any_is_dear).count(&db).await?, 0);
/// # Ok(()) }
/// ```
pub fn exists<E: Entity, F: Entity, S: Selection<F>>(query: Query<F, S>) -> Condition<E> {
    let shape = query.shape().around();
    let select = shape.check().and_then(|()| query.into_inner_select());
    let exists = select.map(|select| Predicate::Exists(Box::new(select)));
    Condition::shaped(exists, shape)
}

/// # As a value
impl<F: Entity, S: Selection<F>> Query<F, S>
where
    S::Output: Nullable,
{
    /// The one value that the query selects, as an expression over the rows of another; NULL if it finds none. Of
    /// several rows it is the first.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, price: f64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # for price in [1.0, 2.0, 6.0] {
    /// #     ctx.add(Item { id: 0, price });
    /// # }
    /// # ctx.save_changes().await?;
    /// let mean = Item::query().select(Item::PRICE.avg()).as_value();
    /// let dear = Item::query().filter(Item::PRICE.nullable().gt(mean)).count(&db).await?;
    /// assert_eq!(dear, 1);
    /// # Ok(()) }
    /// ```
    pub fn as_value<E: Entity>(self) -> Expr<E, <S::Output as Nullable>::Nullable> {
        let shape = self.shape().around();
        let mut node = Node::of(one_value(self).map(|select| Term::Select(Box::new(select))));
        node.shape = shape;
        node.into_expr()
    }
}

fn one_value<F: Entity, S: Selection<F>>(
    query: Query<F, S>,
) -> Result<crate::sql::Select, Invalid> {
    if S::width() != 1 || !S::FLAT {
        return Err(Invalid::Refused(
            "a query that is a value selects one expression",
        ));
    }
    query.into_inner_select()
}
