//! Conditions of one entity.

use std::{fmt, marker::PhantomData, ops};

use crate::{
    error::{Error, ErrorKind},
    sql::Predicate,
    value::ValueError,
};

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
    predicate: Result<Predicate, Invalid>,
    /// How many times `and` and `or` alternate on the way to its innermost part.
    depth: u32,
    entity: PhantomData<fn() -> E>,
}

/// Deeper than this SQLite does not follow, and neither do the functions that call themselves for each level.
const DEEPEST: u32 = 250;

/// Why a condition cannot be asked.
#[derive(Debug, Clone)]
pub(in crate::query) enum Invalid {
    /// A value that its column could not store.
    Operand {
        table: &'static str,
        column: &'static str,
        error: ValueError,
    },
    /// Too many levels.
    TooDeep,
}

impl<E> Condition<E> {
    pub(in crate::query) const fn new(predicate: Predicate) -> Self {
        Self {
            predicate: Ok(predicate),
            depth: 0,
            entity: PhantomData,
        }
    }

    pub(in crate::query) const fn invalid(
        table: &'static str,
        column: &'static str,
        error: ValueError,
    ) -> Self {
        Self {
            predicate: Err(Invalid::Operand {
                table,
                column,
                error,
            }),
            depth: 0,
            entity: PhantomData,
        }
    }

    pub(in crate::query) fn into_predicate(self) -> Result<Predicate, Invalid> {
        self.predicate
    }

    /// Both this and the other.
    pub fn and(self, other: Self) -> Self {
        self.combine(other, Predicate::and, |part| {
            matches!(part, Predicate::All(_))
        })
    }

    /// This, or the other, or both.
    pub fn or(self, other: Self) -> Self {
        self.combine(other, Predicate::or, |part| {
            matches!(part, Predicate::Any(_))
        })
    }

    /// The rows that this does not select; `!condition` is the same.
    #[allow(
        clippy::should_implement_trait,
        reason = "it is implemented; the method needs no import and reads well at the end of a chain"
    )]
    pub fn not(self) -> Self {
        Self {
            predicate: self.predicate.map(Predicate::complement),
            depth: self.depth,
            entity: PhantomData,
        }
    }

    fn combine(
        self,
        other: Self,
        with: fn(Predicate, Predicate) -> Predicate,
        is_alike: fn(&Predicate) -> bool,
    ) -> Self {
        // Parts of the same kind become one flat list.
        let depth = |part: &Self| match &part.predicate {
            Ok(predicate) if is_alike(predicate) => part.depth,
            _ => part.depth + 1,
        };
        let depth = depth(&self).max(depth(&other));
        let predicate = match (self.predicate, other.predicate) {
            (Ok(_), Ok(_)) if depth > DEEPEST => Err(Invalid::TooDeep),
            (Ok(first), Ok(second)) => Ok(with(first, second)),
            (Err(invalid), _) | (_, Err(invalid)) => Err(invalid),
        };
        Self {
            predicate,
            depth,
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
            depth: self.depth,
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

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Operand {
                table,
                column,
                error,
            } => Self::value(table, column, &error),
            Invalid::TooDeep => Self::new(
                ErrorKind::TooBig,
                format!("conditions alternate between and and or more than {DEEPEST} levels deep"),
            ),
        }
    }
}
