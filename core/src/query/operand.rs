//! What can stand on the other side of a column.

use std::{borrow::Cow, sync::Arc};

use crate::{
    entity::{Column, Entity},
    query::{Part, part::Node},
    sql::Term,
    value::{
        ColumnType, DecimalNumber, Padded, PaddedNumber, Scalar, Scaled, Value, ValueError,
        check_text,
    },
};

/// What can be compared with, or computed with, an expression over rows of `E` that gives a `T`: a value, or another
/// such expression.
///
/// A column takes its own type and references to it; a column that may be NULL takes values with and without
/// `Some`, and `None`; a text column takes `&str`; a column of bytes takes slices; a column with a `scale`, or
/// `padded`, takes plain numbers. Of expressions those of the same entity and type are taken, and by one that may be
/// NULL those that may not; the other way round say [`nullable`](Column::nullable).
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Operand;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// fn cheaper(than: impl Operand<Item, i64>) -> Condition<Item> {
///     Item::PRICE.lt(than)
/// }
/// let (than_a_value, than_an_expression) = (cheaper(5), cheaper(Item::DISCOUNT.coalesce(0)));
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{T}` cannot be compared with `{Self}`",
    label = "does not fit the column",
    note = "use the field's own type; for a column that may be NULL, with or without `Some`",
    note = "of two columns the one that may be NULL stands first, or write `column.nullable()`"
)]
pub trait Operand<E, T> {
    /// The value as the column would store it, or the expression.
    ///
    /// # Errors
    ///
    /// When the column could not store it.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn node(self) -> Result<Node, ValueError>;
}

const fn value(value: Value) -> Node {
    Node::of(Ok(Term::Value(value)))
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, T, P: Part> Operand<E, T> for Column<E, T, P> {
    fn node(self) -> Result<Node, ValueError> {
        Ok(self.node())
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, T: Scalar, P: Part> Operand<E, Option<T>> for Column<E, T, P> {
    fn node(self) -> Result<Node, ValueError> {
        Ok(self.node())
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Operand<E, T> for T {
    fn node(self) -> Result<Node, ValueError> {
        ColumnType::encode(&self).map(value)
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Operand<E, T> for &T {
    fn node(self) -> Result<Node, ValueError> {
        ColumnType::encode(self).map(value)
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Operand<E, Option<T>> for T {
    fn node(self) -> Result<Node, ValueError> {
        ColumnType::encode(&self).map(value)
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Operand<E, Option<T>> for &T {
    fn node(self) -> Result<Node, ValueError> {
        ColumnType::encode(self).map(value)
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Operand<E, Self> for Option<T> {
    fn node(self) -> Result<Node, ValueError> {
        ColumnType::encode(&self).map(value)
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Operand<E, Option<T>> for &Option<T> {
    fn node(self) -> Result<Node, ValueError> {
        ColumnType::encode(self).map(value)
    }
}

macro_rules! borrowed {
    ($([$($generics:tt)*] $borrowed:ty => $owned:ty, $encode:expr;)*) => {$(
        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, $owned> for $borrowed {
            fn node(self) -> Result<Node, ValueError> {
                $encode(self).map(value)
            }
        }

        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, Option<$owned>> for $borrowed {
            fn node(self) -> Result<Node, ValueError> {
                $encode(self).map(value)
            }
        }
    )*};
}

borrowed! {
    [] &str => String, encode_str;
    [] &str => Box<str>, encode_str;
    [] &str => Arc<str>, encode_str;
    [] &str => Cow<'static, str>, encode_str;
    [] &[u8] => Vec<u8>, encode_bytes;
    [const N: usize] &[u8; N] => Vec<u8>, encode_bytes;
}

fn encode_str(text: &str) -> Result<Value, ValueError> {
    check_text(text)?;
    Ok(Value::Text(text.to_owned()))
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "stands beside others that can fail"
)]
fn encode_bytes(bytes: &[u8]) -> Result<Value, ValueError> {
    Ok(Value::Blob(bytes.to_vec()))
}

macro_rules! wrapped {
    ($([$($generics:tt)*] $wrapped:ident => $column:ty;)*) => {$(
        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, $column> for $wrapped {
            fn node(self) -> Result<Node, ValueError> {
                <$column>::encode_ref(&self).map(value)
            }
        }

        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, $column> for &$wrapped {
            fn node(self) -> Result<Node, ValueError> {
                <$column>::encode_ref(self).map(value)
            }
        }

        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, Option<$column>> for $wrapped {
            fn node(self) -> Result<Node, ValueError> {
                <$column>::encode_ref(&self).map(value)
            }
        }

        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, Option<$column>> for &$wrapped {
            fn node(self) -> Result<Node, ValueError> {
                <$column>::encode_ref(self).map(value)
            }
        }

        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, Option<$column>> for Option<$wrapped> {
            fn node(self) -> Result<Node, ValueError> {
                Operand::<E, Option<$column>>::node(&self)
            }
        }

        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E, $($generics)*> Operand<E, Option<$column>> for &Option<$wrapped> {
            fn node(self) -> Result<Node, ValueError> {
                self.as_ref().map_or(Ok(Value::Null), <$column>::encode_ref).map(value)
            }
        }
    )*};
}

wrapped! {
    [T: DecimalNumber, const SCALE: u32] T => Scaled<T, SCALE>;
    [T: PaddedNumber] T => Padded<T>;
}
