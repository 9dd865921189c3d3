//! Conditions of one entity.

use std::{fmt, marker::PhantomData, ops};

use crate::{
    error::{Error, ErrorKind, counted},
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
/// let count = |condition: Condition<Item>| Item::query().filter(condition).count(&db);
/// let cheap = Item::PRICE.lt(5);
/// let reduced = Item::DISCOUNT.gt(5);
/// assert_eq!(count(cheap.clone().or(reduced.clone())).await?, 2);
/// assert_eq!(count(cheap.clone().not().and(reduced.clone())).await?, 1);
/// assert_eq!(count(!reduced).await?, 2); // the one without a discount too
/// # Ok(()) }
/// ```
#[must_use = "a condition does nothing until a query filters by it"]
pub struct Condition<E> {
    predicate: Result<Predicate, Invalid>,
    shape: Shape,
    entity: PhantomData<fn() -> E>,
}

/// How deep a tree is. `and` and `or` count where they alternate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::query) struct Shape {
    depth: u32,
}

/// Deeper than this SQLite does not follow, and neither do the functions that call themselves for each level.
const DEEPEST: u32 = 250;

impl Shape {
    pub(in crate::query) const FLAT: Self = Self { depth: 0 };

    /// That of something around the whole.
    pub(in crate::query) const fn around(self) -> Self {
        Self {
            depth: self.depth + 1,
        }
    }

    /// That of two beside each other.
    pub(in crate::query) const fn and(self, other: Self) -> Self {
        if self.depth > other.depth {
            self
        } else {
            other
        }
    }

    /// Whether it can be followed.
    pub(in crate::query) const fn check(self) -> Result<(), Invalid> {
        if self.depth > DEEPEST {
            return Err(Invalid::TooDeep);
        }
        Ok(())
    }
}

/// Why a condition cannot be asked.
#[derive(Debug, Clone)]
pub(crate) enum Invalid {
    /// A value that its column could not store.
    Operand {
        table: &'static str,
        column: &'static str,
        error: ValueError,
    },
    /// Too many levels.
    TooDeep,
    /// A relation that is none, or a name that is not known.
    Model {
        table: &'static str,
        message: String,
    },
    /// A value that cannot be stored anywhere.
    Value(ValueError),
    /// Something that cannot be asked.
    Refused(&'static str),
    /// SQL of the application that has other placeholders than arguments.
    Placeholders {
        sql: &'static str,
        /// How many arguments it asks for, where its braces can be read.
        asked: Option<usize>,
        given: usize,
    },
    /// Something is asked of the row around a query, and there is none.
    NoRowAround { table: &'static str },
}

impl<E> Condition<E> {
    pub(in crate::query) fn new(predicate: Predicate) -> Self {
        Self::shaped(Ok(predicate), Shape::FLAT)
    }

    pub(in crate::query) fn invalid(invalid: Invalid) -> Self {
        Self::shaped(Err(invalid), Shape::FLAT)
    }

    pub(in crate::query) fn shaped(predicate: Result<Predicate, Invalid>, shape: Shape) -> Self {
        Self {
            // One that is too deep is let go of at once: dropping it calls itself for each level.
            predicate: shape.check().and(predicate),
            shape,
            entity: PhantomData,
        }
    }

    pub(in crate::query) fn into_predicate(self) -> Result<Predicate, Invalid> {
        self.shape.check()?;
        self.predicate
    }

    pub(in crate::query) const fn shape(&self) -> Shape {
        self.shape
    }

    /// The predicate, and how deep it is.
    pub(in crate::query) fn into_parts(self) -> (Result<Predicate, Invalid>, Shape) {
        (self.predicate, self.shape)
    }

    /// All of these; every row if there is none.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// /// All words, in any order.
    /// fn search(words: &[&str]) -> Query<Item> {
    ///     Item::query().filter(Condition::all_of(words.iter().map(|word| Item::NAME.contains(word))))
    /// }
    /// /// One word at least.
    /// fn search_any(words: &[&str]) -> Query<Item> {
    ///     Item::query().filter(Condition::any_of(words.iter().map(|word| Item::NAME.contains(word))))
    /// }
    /// # let (all, any) = (search(&["green", "tea"]), search_any(&["green", "tea"]));
    /// # assert!(all.sql().unwrap().to_string().contains(" AND ") && any.sql().unwrap().to_string().contains(" OR "));
    /// ```
    pub fn all_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        (conditions.into_iter())
            .reduce(Self::and)
            .unwrap_or_else(|| Self::new(Predicate::Constant(true)))
    }

    /// Any of these; no row if there is none.
    pub fn any_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        (conditions.into_iter())
            .reduce(Self::or)
            .unwrap_or_else(|| Self::new(Predicate::Constant(false)))
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
            shape: self.shape,
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
        let shape = |part: &Self| match &part.predicate {
            Ok(predicate) if is_alike(predicate) => part.shape,
            _ => part.shape.around(),
        };
        let shape = shape(&self).and(shape(&other));
        let predicate = match (self.predicate, other.predicate, shape.check()) {
            (_, _, Err(too_deep)) => Err(too_deep),
            (Ok(first), Ok(second), Ok(())) => Ok(with(first, second)),
            (Err(invalid), ..) | (_, Err(invalid), _) => Err(invalid),
        };
        Self::shaped(predicate, shape)
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
        Self::shaped(self.predicate.clone(), self.shape)
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
                format!(
                    "conditions alternate between and and or, or expressions nest, more than {DEEPEST} levels deep"
                ),
            ),
            Invalid::Model { table, message } => {
                Self::new(ErrorKind::Model, message).with_table(table)
            }
            Invalid::Value(error) => Self::new(ErrorKind::Value, error.to_string()),
            Invalid::Refused(message) => Self::new(ErrorKind::Refused, message),
            Invalid::Placeholders { sql, asked, given } => {
                let what = match asked {
                    Some(asked) if asked != given => {
                        let asked = counted(asked, "argument");
                        format!("the SQL has placeholders for {asked}, {given} were given")
                    }
                    Some(_) => "the SQL has no placeholder for one of its arguments".to_owned(),
                    None => "a placeholder of the SQL cannot be read".to_owned(),
                };
                Self::new(
                    ErrorKind::Refused,
                    format!(
                        "{what}: `{{}}` stands for the next argument, `{{0}}` for the first, `{{{{` and `}}}}` for braces"
                    ),
                )
                .with_statement(sql)
            }
            Invalid::NoRowAround { table } => Self::new(
                ErrorKind::Refused,
                "`outer` names a column of a row around the query, and there is none of its entity: put the query into a \
                 condition of one",
            )
            .with_table(table),
        }
    }
}
