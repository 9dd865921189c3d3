//! The first of several values whose condition is true.

use std::marker::PhantomData;

use crate::{
    entity::{Column, Entity},
    query::{
        Condition, Expr, Operand,
        condition::{Invalid, Shape},
        part::Node,
    },
    sql::{Predicate, Term},
    value::{ColumnType, Value, ValueError},
};

/// Values under conditions; made by [`case`].
#[must_use = "it is an expression once `otherwise` or `end` is called"]
#[derive(Debug)]
pub struct Case<E, T> {
    branches: Result<Vec<(Predicate, Term)>, Invalid>,
    shape: Shape,
    of: PhantomData<fn() -> (E, T)>,
}

/// An expression whose value depends on conditions, the first of which that is true decides.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::case;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for price in [3, 30, 300] {
/// #     ctx.add(Item { id: 0, price });
/// # }
/// # ctx.save_changes().await?;
/// let class = case::<Item, String>()
///     .when(Item::PRICE.lt(10), "cheap")
///     .when(Item::PRICE.lt(100), "fair")
///     .otherwise("dear");
/// let classes = Item::query().order_by(Item::ID.asc()).select(class).all(&db).await?;
/// assert_eq!(classes, ["cheap", "fair", "dear"]);
/// # Ok(()) }
/// ```
pub const fn case<E: Entity, T>() -> Case<E, T> {
    Case {
        branches: Ok(Vec::new()),
        shape: Shape::FLAT,
        of: PhantomData,
    }
}

impl<E: Entity, T: ColumnType> Case<E, T> {
    /// The value where this condition is the first that is true.
    pub fn when(mut self, condition: Condition<E>, value: impl Operand<E, T>) -> Self {
        let (predicate, shape) = condition.into_parts();
        let node = checked(value.node());
        self.shape = self.shape.and(shape).and(node.shape);
        self.branches = self.branches.and_then(|mut branches| {
            branches.push((predicate?, node.term?));
            Ok(branches)
        });
        self
    }

    /// The expression, with this value where no condition is true.
    pub fn otherwise(self, value: impl Operand<E, T>) -> Expr<E, T> {
        self.ending(checked(value.node()))
    }

    fn ending(self, node: Node) -> Expr<E, T> {
        let shape = self.shape.and(node.shape).around();
        let term = self.branches.and_then(|branches| {
            let otherwise = node.term?;
            if branches.is_empty() {
                return Ok(otherwise);
            }
            Ok(Term::Case {
                branches,
                otherwise: Box::new(otherwise),
            })
        });
        let mut node = Node::of(term);
        node.shape = shape;
        node.into_expr()
    }
}

impl<E: Entity, T: ColumnType> Case<E, Option<T>>
where
    Option<T>: ColumnType,
{
    /// The expression, NULL where no condition is true.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::{Case, case};
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
    /// let dear: Case<Item, Option<String>> = case().when(Item::PRICE.gt(5), "dear");
    /// let first = Item::query().order_by(Item::ID.asc()).select(dear.or_null()).first(&db).await?;
    /// assert_eq!(first, Some(None));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn or_null(self) -> Expr<E, Option<T>> {
        self.ending(Node::of(Ok(Term::Value(Value::Null))))
    }
}

/// A value that cannot be stored belongs to no column here.
pub(in crate::query) fn checked(node: Result<Node, ValueError>) -> Node {
    node.unwrap_or_else(|error| Node::of(Err(Invalid::Value(error))))
}

/// # Conditions as values
impl<E: Entity> Condition<E> {
    /// Whether it is true, as an expression.
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
    /// let dear = Item::PRICE.gt(5).as_bool();
    /// let dears = Item::query().order_by(Item::ID.asc()).select(dear.clone()).all(&db).await?;
    /// assert_eq!(dears, [false, true, true]);
    /// assert_eq!(Item::query().filter(dear.is_true()).count(&db).await?, 2);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn as_bool(self) -> Expr<E, bool> {
        let (predicate, shape) = self.into_parts();
        let mut node = Node::of(predicate.map(|predicate| Term::Test(Box::new(predicate))));
        node.shape = shape.around();
        node.into_expr()
    }
}

/// # Values as conditions
impl<E: Entity, P: crate::query::Part> Column<E, bool, P> {
    /// It is true.
    pub fn is_true(self) -> Condition<E> {
        self.eq(true)
    }
}
