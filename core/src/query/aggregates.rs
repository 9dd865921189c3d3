//! What is made of many rows.

use crate::{
    entity::{Column, Entity},
    query::{
        Condition, Expr, Nullable, Number, OrderBy, Over, Part, Summed, Text, condition::Shape,
        part::Node,
    },
    sql::{Aggregate, OrderTerm, Term, Window},
    value::{ColumnType, Value, check_text},
};

/// How many rows there are: of a group, or of all.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::count;
///
/// # #[derive(Debug, Entity)]
/// # struct Order { #[entity(id)] id: i64, city: String, total: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Order>().await?;
/// # let mut ctx = db.context();
/// # for (city, total) in [("Rome", 3), ("Rome", 4), ("Bern", 5)] {
/// #     ctx.add(Order { id: 0, city: city.into(), total });
/// # }
/// # ctx.save_changes().await?;
/// let cities: Vec<(String, i64, Option<i64>)> = Order::query()
///     .group_by(Order::CITY)
///     .having(count().gt(1))
///     .order_by(Order::CITY.asc())
///     .select((Order::CITY, count(), Order::TOTAL.sum()))
///     .all(&db)
///     .await?;
/// assert_eq!(cities, [("Rome".to_owned(), 2, Some(7))]);
/// # Ok(()) }
/// ```
#[must_use]
pub fn count<E: Entity>() -> Expr<E, i64> {
    Node::of(Ok(aggregate("count", Vec::new()))).into_expr()
}

/// # Making one of many
///
/// Of the rows of a [group](crate::query::Query::group_by), or of all that a query finds. NULLs do not count. None of
/// these can be filtered by: [`having`](crate::query::Query::having) does that.
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
/// let made = Item::query()
///     .select((Item::PRICE.min(), Item::PRICE.max(), Item::PRICE.sum(), Item::DISCOUNT.avg()))
///     .one(&db)
///     .await?;
/// assert_eq!(made, (Some(3), Some(7), Some(17), Some(4.5)));
/// let counted = Item::query()
///     .select((Item::DISCOUNT.count(), Item::PRICE.count_distinct(), Item::NAME.min().count()))
///     .one(&db)
///     .await;
/// assert!(counted.is_err()); // no aggregate of an aggregate
/// let names = Item::query().filter(Item::PRICE.lt(5)).select(Item::NAME.join(", ")).one(&db).await?;
/// assert_eq!(names.as_deref(), Some("tea"));
/// # Ok(()) }
/// ```
impl<E: Entity, T: ColumnType, P: Part> Column<E, T, P> {
    /// How many rows have a value.
    pub fn count(self) -> Expr<E, i64> {
        self.aggregate("count", false)
    }

    /// How many different values there are.
    pub fn count_distinct(self) -> Expr<E, i64> {
        self.aggregate("count", true)
    }

    /// The least value; NULL if there is none.
    pub fn min(self) -> Expr<E, T::Nullable>
    where
        T: Nullable,
    {
        self.aggregate("min", false)
    }

    /// The greatest value; NULL if there is none.
    pub fn max(self) -> Expr<E, T::Nullable>
    where
        T: Nullable,
    {
        self.aggregate("max", false)
    }

    /// The sum of all values; NULL if there is none. More than 64 bits are an error of the query.
    pub fn sum(self) -> Expr<E, Option<T::Sum>>
    where
        T: Summed,
    {
        self.aggregate("sum", false)
    }

    /// The mean of all values; NULL if there is none.
    pub fn avg(self) -> Expr<E, Option<f64>>
    where
        T: Number,
    {
        self.aggregate("avg", false)
    }

    /// All texts, with the separator between them, in no particular order; NULL if there is none.
    pub fn join(self, separator: impl AsRef<str>) -> Expr<E, T::Nullable>
    where
        T: Text + Nullable,
    {
        let separator = separator.as_ref();
        let mut node = self.node();
        if let Err(error) = check_text(separator) {
            node.term = Err(node.blamed::<E>(error));
        }
        let separator = Term::Value(Value::Text(separator.to_owned()));
        node.map(|term| aggregate("group_concat", vec![term, separator]))
            .into_expr()
    }

    fn aggregate<V>(self, function: &'static str, distinct: bool) -> Expr<E, V> {
        let made = |term| {
            Term::Aggregate(Box::new(Aggregate {
                function,
                distinct,
                of: vec![term],
                filter: None,
            }))
        };
        self.node().map(made).into_expr()
    }
}

fn aggregate(function: &'static str, of: Vec<Term>) -> Term {
    Term::Aggregate(Box::new(Aggregate {
        function,
        distinct: false,
        of,
        filter: None,
    }))
}

/// # Narrowing an aggregate
impl<E: Entity, T> Expr<E, T> {
    /// An aggregate of those rows alone that fulfil the condition: `count().only(Order::TOTAL.gt(100))`.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::count;
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
    /// let counts = Item::query().select((count(), count().only(Item::PRICE.gt(5)))).one(&db).await?;
    /// assert_eq!(counts, (3, 2));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn only(self, condition: Condition<E>) -> Self {
        let mut node = self.node();
        let (predicate, shape) = condition.into_parts();
        node.shape = node.shape.and(shape).around();
        node.term = node.term.and_then(|term| match term {
            Term::Aggregate(mut aggregate) => {
                let predicate = predicate?;
                aggregate.filter = Some(match aggregate.filter.take() {
                    Some(first) => first.and(predicate),
                    None => predicate,
                });
                Ok(Term::Aggregate(aggregate))
            }
            _ => Err(crate::query::condition::Invalid::Refused(
                "`only` is of an aggregate: sum, min, max, avg, count, join",
            )),
        });
        node.into_expr()
    }

    /// An aggregate, or a function such as [`row_number`](crate::query::row_number), of the rows around each row, which stay rows of their own.
    #[must_use]
    pub fn over(self, rows: Over<E>) -> Self {
        let (order, shapes): (Vec<_>, Vec<_>) =
            rows.order.into_iter().map(OrderBy::into_parts).unzip();
        let mut node = self.node();
        node.shape = shapes.into_iter().fold(node.shape, Shape::and);
        let frame = rows.frame;
        let mut node = node.with(rows.nodes, |function, partition| {
            Term::Window(Box::new(Window {
                function,
                partition,
                order: Vec::new(),
                frame,
            }))
        });
        let order: Result<Vec<OrderTerm>, _> = order.into_iter().collect();
        node.term = node.term.and_then(|term| match term {
            Term::Window(mut window) => {
                window.order = order?;
                Ok(Term::Window(window))
            }
            other => Ok(other),
        });
        node.into_expr()
    }
}
