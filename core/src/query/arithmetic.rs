//! Computing with numbers.

use std::{
    ops::{Add, Div, Mul, Neg, Rem, Sub},
    time::Duration,
};

use chrono::TimeDelta;

use crate::{
    entity::{Column, Entity},
    query::{Expr, Nullable, Operand, Part, part::Node},
    sql::Term,
    value::{DecimalNumber, Scalar, Scaled},
};

/// A column type whose values can be added up.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Summed};
///
/// fn total<E: Entity, T: Summed>(column: Column<E, T>) -> Expr<E, Option<T::Sum>> {
///     column.sum()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` cannot be added up",
    label = "not a number",
    note = "numbers, decimals with a `scale`, durations, and an Option of these can"
)]
pub trait Summed: Nullable {
    /// The type of a sum of any number of them.
    type Sum: Scalar;
}

/// A column type whose values can be multiplied and divided: integers and floating-point numbers.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Number};
///
/// fn size<E: Entity, T: Number>(column: Column<E, T>) -> Expr<E, T> {
///     column.abs()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` cannot be multiplied or divided",
    label = "not a plain number",
    note = "integers, f32, f64, and an Option of these can"
)]
pub trait Number: Summed {}

macro_rules! numbers {
    ($($type:ty => $sum:ty),*) => {$(
        impl Summed for $type {
            type Sum = $sum;
        }

        impl Number for $type {}
    )*};
}

numbers!(i8 => i64, i16 => i64, i32 => i64, i64 => i64, u8 => i64, u16 => i64, u32 => i64, f32 => f64, f64 => f64);

impl Summed for Duration {
    type Sum = Self;
}

impl Summed for TimeDelta {
    type Sum = Self;
}

impl<T: DecimalNumber, const SCALE: u32> Summed for Scaled<T, SCALE>
where
    Self: Scalar,
{
    type Sum = Self;
}

impl<T: Summed + Scalar> Summed for Option<T> {
    type Sum = T::Sum;
}

impl<T: Number + Scalar> Number for Option<T> {}

macro_rules! operators {
    ($($trait:ident $method:ident $symbol:literal $bound:ident => $output:ty, $doc:literal;)*) => {$(
        #[doc = $doc]
        impl<E: Entity, T: $bound, P: Part, R: Operand<E, T>> $trait<R> for Column<E, T, P> {
            type Output = Expr<E, $output>;

            fn $method(self, other: R) -> Self::Output {
                infix(self.node(), $symbol, other)
            }
        }
    )*};
}

operators! {
    Add add " + " Summed => T, "A sum of integers beyond 64 bits, or beyond the type of a smaller integer, is an error when it is read. To go beyond that type take `as_integer` first.";
    Sub sub " - " Summed => T, "A difference. One that the type does not have, such as a `u32` below 0, is an error when it is read.";
    Mul mul " * " Number => T, "A product of integers beyond 64 bits, or beyond the type of a smaller integer, is an error when it is read.";
    Div div " / " Number => T::Nullable, "Between integers without the remainder; NULL if the divisor is 0.";
    Rem rem " % " Number => T::Nullable, "The remainder of integers; NULL if the divisor is 0.";
}

impl<E: Entity, T: Summed, P: Part> Neg for Column<E, T, P> {
    type Output = Expr<E, T>;

    fn neg(self) -> Self::Output {
        let zero = Term::Number(0);
        let negated = |term| Term::Infix {
            left: Box::new(zero),
            operator: " - ",
            right: Box::new(term),
        };
        self.node().map(negated).into_expr()
    }
}

/// # Numbers
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
/// let third = Item::PRICE.as_real() / 3.0;
/// let computed = Item::query()
///     .filter(Item::NAME.eq("cake"))
///     .select((third.clone().round(2), third.as_integer(), (Item::PRICE - 10).abs()))
///     .one(&db)
///     .await?;
/// assert_eq!(computed, (Some(2.33), Some(2), 3));
/// # Ok(()) }
/// ```
impl<E: Entity, T: Number, P: Part> Column<E, T, P> {
    /// Without its sign.
    pub fn abs(self) -> Expr<E, T> {
        self.call("abs")
    }

    /// Rounded to so many digits after the point, halves away from zero.
    pub fn round(self, digits: u8) -> Expr<E, T::Like<f64>> {
        let digits = Node::of(Ok(Term::Number(digits.into())));
        self.call_with("round", [digits])
    }

    /// As a floating-point number, so that a division keeps its fraction.
    pub fn as_real(self) -> Expr<E, T::Like<f64>> {
        self.cast("REAL")
    }

    /// As an integer, without a fraction.
    pub fn as_integer(self) -> Expr<E, T::Like<i64>> {
        self.cast("INTEGER")
    }
}

/// # Between values
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
/// let discounts = Item::query().order_by(Item::ID.asc()).select(Item::DISCOUNT.coalesce(0)).all(&db).await?;
/// assert_eq!(discounts, [0, 2, 7]);
/// let or_price = Item::query().order_by(Item::ID.asc()).select(Item::DISCOUNT.or_else(Item::PRICE)).first(&db).await?;
/// assert_eq!(or_price, Some(Some(3)));
/// # Ok(()) }
/// ```
impl<E: Entity, T: Nullable, P: Part> Column<E, T, P> {
    /// This, or the other where this is NULL: `Order::DISCOUNT.coalesce(0)`.
    pub fn coalesce(self, other: impl Operand<E, T::Required>) -> Expr<E, T::Required> {
        match other.node() {
            Ok(other) => self.call_with("coalesce", [other]),
            Err(error) => invalid::<E>(self.node(), error).into_expr(),
        }
    }

    /// The other way to say [`coalesce`](Self::coalesce) with what may be NULL as well.
    pub fn or_else(self, other: impl Operand<E, T::Nullable>) -> Expr<E, T::Nullable> {
        match other.node() {
            Ok(other) => self.call_with("coalesce", [other]),
            Err(error) => invalid::<E>(self.node(), error).into_expr(),
        }
    }
}

impl<E: Entity, T, P: Part> Column<E, T, P> {
    pub(in crate::query) fn call<V>(self, function: &'static str) -> Expr<E, V> {
        self.call_with(function, [])
    }

    pub(in crate::query) fn call_with<V>(
        self,
        function: &'static str,
        others: impl IntoIterator<Item = Node>,
    ) -> Expr<E, V> {
        let called = |term, others: Vec<Term>| Term::Call {
            function,
            args: std::iter::once(term).chain(others).collect(),
        };
        self.node().with(others, called).into_expr()
    }

    pub(in crate::query) fn cast<V>(self, to: &'static str) -> Expr<E, V> {
        let cast = |of| Term::Cast {
            of: Box::new(of),
            to,
        };
        self.node().map(cast).into_expr()
    }
}

fn infix<E: Entity, T, V>(
    left: Node,
    operator: &'static str,
    right: impl Operand<E, T>,
) -> Expr<E, V> {
    let right = match right.node() {
        Ok(right) => right,
        Err(error) => return invalid::<E>(left, error).into_expr(),
    };
    let infix = |left, right: Vec<Term>| Term::Infix {
        left: Box::new(left),
        operator,
        right: Box::new(Term::Several(right)),
    };
    left.with([right], infix).into_expr()
}

/// The same expression, made invalid by an operand.
pub(in crate::query) fn invalid<E: Entity>(
    mut node: Node,
    error: crate::value::ValueError,
) -> Node {
    node.term = Err(node.blamed::<E>(error));
    node
}
