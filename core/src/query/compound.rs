//! Rows of several queries in one result.

use std::{fmt, future::Future};

use futures_util::TryFutureExt as _;

use crate::{
    entity::Entity,
    error::Result,
    query::{
        Query, Selection,
        condition::{Invalid, Shape},
        including, outer,
        run::{decode_count, decode_whole, read},
    },
    sql::{self, Cost, Direction, Executor, Read, Select, SetOperation, Statement},
};

/// The rows of several queries that read the same types; made by [`Query::union`] and its like.
///
/// Its columns are those of the first. The operations are done in the order in which they are called.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Compound;
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
/// let prices = |query: Query<Item>| query.select(Item::PRICE);
/// let dear = || prices(Item::query().filter(Item::PRICE.gt(5)));
/// let with_discount = || prices(Item::query().filter(Item::DISCOUNT.is_not_null()));
///
/// let all: Compound<Item, _> = prices(Item::query()).union_all(dear());
/// assert_eq!(all.clone().order_by_position_desc(0).offset(3).limit(2).all(&db).await?, [7, 3]);
/// assert_eq!(all.clone().order_by_position(0).first(&db).await?, Some(3));
/// assert_eq!(all.count(&db).await?, 5);
/// assert_eq!(dear().intersect(with_discount()).all(&db).await?, [7]);
/// assert_eq!(prices(Item::query()).except(dear()).all(&db).await?, [3]);
/// // One after the other.
/// let rest = prices(Item::query()).union_all(dear()).except(with_discount()).union(dear()).intersect(dear());
/// assert_eq!(rest.all(&db).await?, [7]);
/// # Ok(()) }
/// ```
#[must_use = "a query does nothing until it is run"]
pub struct Compound<E, S> {
    first: Query<E, S>,
    others: Result<Vec<(SetOperation, Select)>, Invalid>,
    /// How deep the deepest of the others is.
    shape: Shape,
    order: Vec<(usize, Direction)>,
    limit: Option<u64>,
    offset: u64,
}

/// # With another query
///
/// Both read the same types, of whatever entities, each with one statement.
impl<E: Entity, S: Selection<E>> Query<E, S> {
    /// The rows of both, equal ones once.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Customer { #[entity(id)] id: i64, city: String }
    /// # #[derive(Debug, Entity)]
    /// # struct Supplier { #[entity(id)] id: i64, city: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Customer, Supplier)>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Customer { id: 0, city: "Rome".into() });
    /// # ctx.add(Supplier { id: 0, city: "Rome".into() });
    /// # ctx.add(Supplier { id: 0, city: "Bern".into() });
    /// # ctx.save_changes().await?;
    /// let cities = Customer::query()
    ///     .select(Customer::CITY)
    ///     .union(Supplier::query().select(Supplier::CITY))
    ///     .order_by_position(0)
    ///     .all(&db)
    ///     .await?;
    /// assert_eq!(cities, ["Bern", "Rome"]);
    /// # Ok(()) }
    /// ```
    pub fn union<F: Entity, R>(self, other: Query<F, R>) -> Compound<E, S>
    where
        R: Selection<F, Output = S::Output>,
    {
        self.compound().and(SetOperation::Union, other)
    }

    /// The rows of both.
    pub fn union_all<F: Entity, R>(self, other: Query<F, R>) -> Compound<E, S>
    where
        R: Selection<F, Output = S::Output>,
    {
        self.compound().and(SetOperation::UnionAll, other)
    }

    /// The rows that both find, each once.
    pub fn intersect<F: Entity, R>(self, other: Query<F, R>) -> Compound<E, S>
    where
        R: Selection<F, Output = S::Output>,
    {
        self.compound().and(SetOperation::Intersect, other)
    }

    /// The rows that the other does not find, each once.
    pub fn except<F: Entity, R>(self, other: Query<F, R>) -> Compound<E, S>
    where
        R: Selection<F, Output = S::Output>,
    {
        self.compound().and(SetOperation::Except, other)
    }

    fn compound(self) -> Compound<E, S> {
        Compound {
            first: self,
            others: Ok(Vec::new()),
            shape: Shape::FLAT,
            order: Vec::new(),
            limit: None,
            offset: 0,
        }
    }
}

pub(in crate::query) fn part<E: Entity, S: Selection<E>>(
    query: Query<E, S>,
) -> Result<Select, Invalid> {
    if !S::FLAT {
        return Err(Invalid::Refused(
            "what to-many relations lead to cannot be read by a part of a compound query",
        ));
    }
    query.into_inner_select()
}

/// # Building it
impl<E: Entity, S: Selection<E>> Compound<E, S> {
    /// The rows of both, equal ones once.
    pub fn union<F: Entity, R>(self, other: Query<F, R>) -> Self
    where
        R: Selection<F, Output = S::Output>,
    {
        self.and(SetOperation::Union, other)
    }

    /// The rows of both.
    pub fn union_all<F: Entity, R>(self, other: Query<F, R>) -> Self
    where
        R: Selection<F, Output = S::Output>,
    {
        self.and(SetOperation::UnionAll, other)
    }

    /// The rows that both have, each once.
    pub fn intersect<F: Entity, R>(self, other: Query<F, R>) -> Self
    where
        R: Selection<F, Output = S::Output>,
    {
        self.and(SetOperation::Intersect, other)
    }

    /// The rows that the other does not find, each once.
    pub fn except<F: Entity, R>(self, other: Query<F, R>) -> Self
    where
        R: Selection<F, Output = S::Output>,
    {
        self.and(SetOperation::Except, other)
    }

    fn and<F: Entity, R: Selection<F>>(
        mut self,
        operation: SetOperation,
        other: Query<F, R>,
    ) -> Self {
        self.shape = self.shape.and(other.shape());
        let other = part(other);
        self.others = self.others.and_then(|mut others| {
            others.push((operation, other?));
            Ok(others)
        });
        self
    }

    /// Sorts by the column at this position, the first being 0, smallest first; where it is equal, by those given before.
    pub fn order_by_position(self, position: usize) -> Self {
        self.sorted(position, Direction::Ascending)
    }

    /// The same, largest first.
    pub fn order_by_position_desc(self, position: usize) -> Self {
        self.sorted(position, Direction::Descending)
    }

    fn sorted(mut self, position: usize, direction: Direction) -> Self {
        if position >= S::width() {
            self.others = self.others.and(Err(Invalid::Refused(
                "a compound query has no column at the position that it is to be sorted by",
            )));
        }
        self.order.push((position, direction));
        self
    }

    /// No more than this many rows.
    pub const fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Leaves out this many rows at the beginning.
    pub const fn offset(mut self, rows: u64) -> Self {
        self.offset = rows;
        self
    }

    /// The statement; displaying it shows its text.
    ///
    /// # Errors
    ///
    /// When one of the queries is invalid.
    pub fn sql(&self) -> Result<Statement> {
        Ok(self.clone().into_whole()?.into_rows())
    }

    /// The tree of a statement of its own.
    fn into_whole(self) -> Result<sql::Compound> {
        let tree = self.into_tree()?;
        outer::check(tree.around())?;
        Ok(tree)
    }

    /// How deep it is as a part of another query.
    pub(in crate::query) fn shape(&self) -> Shape {
        self.shape.and(self.first.shape())
    }

    pub(in crate::query) fn into_tree(self) -> Result<sql::Compound, Invalid> {
        if !S::FLAT {
            part(self.first.clone())?;
        }
        let (first, others) = (self.first.into_inner_select()?, self.others?);
        including::check_compound(&first, &others, &self.order)?;
        Ok(sql::Compound {
            first,
            others,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
        })
    }
}

/// # Running it
impl<E: Entity, S: Selection<E>> Compound<E, S> {
    /// Reads all rows.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn all<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Vec<S::Output>>> + Send {
        let prepared = self.into_whole();
        let prepared = prepared.map(|compound| Read {
            statement: compound.into_rows(),
            cost: Cost::Any,
            entity: None,
            decode: decode_whole::<E, S>,
        });
        read(executor, prepared, Ok)
    }

    /// Reads the first row, in the order asked for, if there is any.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn first<'c>(
        mut self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<S::Output>>> + Send {
        self.limit = Some(self.limit.map_or(1, |limit| limit.min(1)));
        self.all(executor).map_ok(|rows| rows.into_iter().next())
    }

    /// Counts the rows.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn count<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<u64>> + Send {
        let prepared = self.into_whole();
        let prepared = prepared.map(|compound| Read {
            statement: compound.into_count(),
            cost: Cost::Any,
            entity: None,
            decode: decode_count,
        });
        read(executor, prepared, |rows| Ok(rows.into_iter().sum()))
    }
}

impl<E, S: Clone> Clone for Compound<E, S> {
    fn clone(&self) -> Self {
        Self {
            first: self.first.clone(),
            others: self.others.clone(),
            shape: self.shape,
            order: self.order.clone(),
            limit: self.limit,
            offset: self.offset,
        }
    }
}

impl<E: Entity, S: Selection<E>> fmt::Debug for Compound<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sql() {
            Ok(statement) => write!(f, "Compound({statement})"),
            Err(error) => write!(f, "Compound({error:?})"),
        }
    }
}
