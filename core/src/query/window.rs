//! Functions of the rows around a row.

use crate::{
    entity::{Column, Entity},
    query::{Expr, Nullable, OrderBy, Orders, Part, part::Node},
    sql::{Frame, Term},
};

/// The rows around a row, for [`Expr::over`](Column::over): those that are equal to it in some columns, in some order.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Over, dense_rank, rank, row_number};
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
/// let by_price = || Over::all().order_by(Item::PRICE.desc());
/// let places = Item::query()
///     .order_by(Item::ID.asc())
///     .select((
///         Item::NAME,
///         rank().over(by_price()),
///         dense_rank().over(by_price()),
///         row_number().over(Over::all().partition_by(Item::PRICE).order_by(Item::ID.asc())),
///         Item::NAME.lag(1).over(Over::all().order_by(Item::ID.asc())),
///         Item::NAME.lead(1).over(Over::all().order_by(Item::ID.asc())),
///         Item::PRICE.sum().over(Over::all()),
///     ))
///     .all(&db)
///     .await?;
/// let (name, rank, dense, number, before, after, sum) = &places[0];
/// assert_eq!((&name[..], *rank, *dense, *number), ("tea", 3, 2, 1));
/// assert_eq!((before.as_deref(), after.as_deref(), *sum), (None, Some("cake"), Some(17)));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Over<E> {
    pub(super) nodes: Vec<Node>,
    pub(super) order: Vec<OrderBy<E>>,
    pub(super) frame: Option<Frame>,
}

/// Where a frame begins or ends, seen from the row that it is of.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Bound, Over, cume_dist, ntile, percent_rank};
///
/// # #[derive(Debug, Entity)]
/// # struct Day { #[entity(id)] id: i64, rain: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Day>().await?;
/// # let mut ctx = db.context();
/// # for rain in [1, 2, 4, 8] { ctx.add(Day { id: 0, rain }); }
/// # ctx.save_changes().await?;
/// let all = || Over::all().order_by(Day::ID.asc());
/// let days = Day::query()
///     .order_by(Day::ID.asc())
///     .select((
///         Day::RAIN.sum().over(all().rows(Bound::Preceding(1), Bound::CurrentRow)),
///         Day::RAIN.sum().over(all().range(Bound::CurrentRow, Bound::Following(2))),
///         Day::RAIN.last_value().over(all().groups(Bound::Unbounded, Bound::Unbounded)),
///         (Day::RAIN.first_value().over(all()), Day::RAIN.nth_value(2).over(all())),
///         (ntile(2).over(all()), percent_rank().over(all()), cume_dist().over(all())),
///     ))
///     .all(&db)
///     .await?;
/// assert_eq!(days[1], (Some(3), Some(14), Some(8), (Some(1), Some(2)), (1, 1.0 / 3.0, 0.5)));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// With the first row, or the last.
    Unbounded,
    /// So many before it.
    Preceding(u32),
    /// With it.
    CurrentRow,
    /// So many after it.
    Following(u32),
}

impl<E: Entity> Over<E> {
    /// All rows of the result.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            nodes: Vec::new(),
            order: Vec::new(),
            frame: None,
        }
    }

    /// Of these, only the rows from one bound to the other, counted in the order:
    /// `Over::all().order_by(Day::DATE.asc()).rows(Bound::Preceding(6), Bound::CurrentRow)` for the last seven.
    #[must_use]
    pub fn rows(self, from: Bound, to: Bound) -> Self {
        self.framed("ROWS", from, to)
    }

    /// The same, counted in what is sorted by, which is one number: those that are less by so much, and more.
    #[must_use]
    pub fn range(self, from: Bound, to: Bound) -> Self {
        self.framed("RANGE", from, to)
    }

    /// The same, counted in groups of rows that are equal in the order.
    #[must_use]
    pub fn groups(self, from: Bound, to: Bound) -> Self {
        self.framed("GROUPS", from, to)
    }

    fn framed(mut self, unit: &'static str, from: Bound, to: Bound) -> Self {
        self.frame = Some(Frame {
            unit,
            from: from.as_sql("UNBOUNDED PRECEDING"),
            to: to.as_sql("UNBOUNDED FOLLOWING"),
            excluded: self.frame.and_then(|frame| frame.excluded),
        });
        self
    }

    /// Of these, not the row itself: for the sum of the others.
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
    /// use anabranch::query::Over;
    ///
    /// let by_price = || Over::all().order_by(Item::PRICE.asc());
    /// let others = Item::PRICE.sum().over(Over::all().exclude_current_row());
    /// let less = Item::PRICE.sum().over(by_price().exclude_group());
    /// let up_to = Item::PRICE.sum().over(by_price().exclude_ties());
    /// let sums = Item::query().order_by(Item::ID.asc()).select((others, less, up_to)).all(&db).await?;
    /// assert_eq!(sums, [(Some(14), None, Some(3)), (Some(10), Some(3), Some(10)), (Some(10), Some(3), Some(10))]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn exclude_current_row(self) -> Self {
        self.excluding("CURRENT ROW")
    }

    /// Of these, neither the row itself nor those that are equal to it in the order.
    #[must_use]
    pub fn exclude_group(self) -> Self {
        self.excluding("GROUP")
    }

    /// Of these, not those that are equal to the row in the order; but the row itself.
    #[must_use]
    pub fn exclude_ties(self) -> Self {
        self.excluding("TIES")
    }

    /// Without bounds it is of those that there are without a frame: all, or those up to the row in the order.
    fn excluding(mut self, rows: &'static str) -> Self {
        if self.frame.is_none() {
            self = self.range(Bound::Unbounded, Bound::CurrentRow);
        }
        if let Some(frame) = &mut self.frame {
            frame.excluded = Some(rows);
        }
        self
    }

    /// Those that are equal to it in this too.
    #[must_use]
    pub fn partition_by<T, P: Part>(mut self, expression: Column<E, T, P>) -> Self {
        self.nodes.push(expression.node());
        self
    }

    /// Numbered in this order; an aggregate is then of those up to the row.
    #[must_use]
    pub fn order_by(mut self, orders: impl Orders<E>) -> Self {
        self.order.extend(orders.orders());
        self
    }
}

impl Bound {
    fn as_sql(self, unbounded: &str) -> String {
        match self {
            Self::Unbounded => unbounded.to_owned(),
            Self::Preceding(rows) => format!("{rows} PRECEDING"),
            Self::CurrentRow => "CURRENT ROW".to_owned(),
            Self::Following(rows) => format!("{rows} FOLLOWING"),
        }
    }
}

/// The number of the row among those it is [`over`](Column::over), from 1.
#[must_use]
pub fn row_number<E: Entity>() -> Expr<E, i64> {
    window_function("row_number")
}

/// The same, with one number for rows that are equal in the order, and a gap after them.
#[must_use]
pub fn rank<E: Entity>() -> Expr<E, i64> {
    window_function("rank")
}

/// The same without gaps.
#[must_use]
pub fn dense_rank<E: Entity>() -> Expr<E, i64> {
    window_function("dense_rank")
}

/// The number of the part in which the row is, if they are dealt into so many of equal size.
#[must_use]
pub fn ntile<E: Entity>(parts: u32) -> Expr<E, i64> {
    let call = Term::Call {
        function: "ntile",
        args: vec![Term::Number(parts.max(1).into())],
    };
    Node::of(Ok(call)).into_expr()
}

/// How many of the rows come before it, as a share of all others: from 0 to 1.
#[must_use]
pub fn percent_rank<E: Entity>() -> Expr<E, f64> {
    window_function("percent_rank")
}

/// How many of the rows come before it or are equal to it, as a share of all.
#[must_use]
pub fn cume_dist<E: Entity>() -> Expr<E, f64> {
    window_function("cume_dist")
}

fn window_function<E: Entity, T>(function: &'static str) -> Expr<E, T> {
    let call = Term::Call {
        function,
        args: Vec::new(),
    };
    Node::of(Ok(call)).into_expr()
}

/// # Looking at other rows
impl<E: Entity, T: Nullable, P: Part> Column<E, T, P> {
    /// The value of the row so many before this one, among those it is [`over`](Column::over); NULL if there is none.
    pub fn lag(self, rows: u32) -> Expr<E, T::Nullable> {
        let rows = Node::of(Ok(Term::Number(rows.into())));
        self.call_with("lag", [rows])
    }

    /// The value of the row so many after this one; NULL if there is none.
    pub fn lead(self, rows: u32) -> Expr<E, T::Nullable> {
        let rows = Node::of(Ok(Term::Number(rows.into())));
        self.call_with("lead", [rows])
    }

    /// The value of the first of the rows that it is [`over`](Column::over).
    pub fn first_value(self) -> Expr<E, T::Nullable> {
        self.call("first_value")
    }

    /// The value of the last of them; with an order that is the row itself, unless a frame says otherwise.
    pub fn last_value(self) -> Expr<E, T::Nullable> {
        self.call("last_value")
    }

    /// The value of the one at this place, the first being 1; NULL if there are fewer.
    pub fn nth_value(self, place: u32) -> Expr<E, T::Nullable> {
        let place = Node::of(Ok(Term::Number(place.max(1).into())));
        self.call_with("nth_value", [place])
    }
}
