//! What may be NULL, and what is once it goes through something that may.

use crate::value::{ColumnType, Scalar};

/// A column type, and the same type with NULL: `i64` and `Option<i64>` both have `Option<i64>`.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Nullable};
///
/// fn least<E: Entity, T: Nullable>(column: Column<E, T>) -> Expr<E, T::Nullable> {
///     column.min()
/// }
/// ```
pub trait Nullable: ColumnType {
    /// The type with NULL.
    type Nullable: Nullable<Nullable = Self::Nullable>;
    /// The type without.
    type Required: Scalar;
    /// Another type, which may be NULL if this may.
    type Like<V: Scalar>: Nullable;
}

impl<T: Scalar> Nullable for T {
    type Nullable = Option<T>;
    type Required = T;
    type Like<V: Scalar> = V;
}

impl<T: Scalar> Nullable for Option<T> {
    type Nullable = Self;
    type Required = T;
    type Like<V: Scalar> = Option<V>;
}
