//! Conditions of one entity.

use std::{fmt, marker::PhantomData, ops};

use crate::{error::Error, sql::Predicate, value::ValueError};

/// What rows of entity `E` must fulfil; made by the methods of its columns.
///
/// A condition is true or false for each row, never SQL's "unknown": `c` and `!c` together select every row
/// once, NULLs or not. So `ne`, `not_in` and `not_like` select the rows that `eq`, `is_in` and `like` leave out,
/// those with NULL among them. A comparison by order is false where one of its sides is NULL.
///
/// A value that the column could not store (NaN, text with a NUL) makes the condition invalid; the query that
/// uses it fails with kind [`ErrorKind::Value`](crate::error::ErrorKind::Value) and names the column.
#[must_use = "a condition does nothing until a query filters by it"]
pub struct Condition<E> {
    predicate: Result<Predicate, InvalidOperand>,
    entity: PhantomData<fn() -> E>,
}

/// A value that its column could not store.
#[derive(Debug, Clone)]
pub(in crate::query) struct InvalidOperand {
    table: &'static str,
    column: &'static str,
    error: ValueError,
}

impl<E> Condition<E> {
    pub(in crate::query) const fn new(predicate: Predicate) -> Self {
        Self {
            predicate: Ok(predicate),
            entity: PhantomData,
        }
    }

    pub(in crate::query) const fn invalid(
        table: &'static str,
        column: &'static str,
        error: ValueError,
    ) -> Self {
        Self {
            predicate: Err(InvalidOperand {
                table,
                column,
                error,
            }),
            entity: PhantomData,
        }
    }

    pub(in crate::query) fn into_predicate(self) -> Result<Predicate, InvalidOperand> {
        self.predicate
    }

    /// Both this and the other.
    pub fn and(self, other: Self) -> Self {
        self.combine(other, Predicate::and)
    }

    /// This, or the other, or both.
    pub fn or(self, other: Self) -> Self {
        self.combine(other, Predicate::or)
    }

    /// The rows that this does not select; `!condition` is the same.
    #[allow(
        clippy::should_implement_trait,
        reason = "it is implemented; the method needs no import and reads well at the end of a chain"
    )]
    pub fn not(self) -> Self {
        Self {
            predicate: self.predicate.map(Predicate::complement),
            entity: PhantomData,
        }
    }

    fn combine(self, other: Self, with: fn(Predicate, Predicate) -> Predicate) -> Self {
        Self {
            predicate: self
                .predicate
                .and_then(|first| other.predicate.map(|second| with(first, second))),
            entity: PhantomData,
        }
    }
}

impl<E> ops::Not for Condition<E> {
    type Output = Self;

    fn not(self) -> Self {
        Self::not(self)
    }
}

impl<E> Clone for Condition<E> {
    fn clone(&self) -> Self {
        Self {
            predicate: self.predicate.clone(),
            entity: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Condition<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.predicate {
            Ok(predicate) => predicate.fmt(f),
            Err(invalid) => invalid.fmt(f),
        }
    }
}

impl From<InvalidOperand> for Error {
    fn from(invalid: InvalidOperand) -> Self {
        Self::value(invalid.table, invalid.column, &invalid.error)
    }
}
