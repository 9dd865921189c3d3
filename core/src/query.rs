//! Typed queries: the methods of an entity's columns make conditions, a [`Query`] gathers them and runs.
//!
//! ```
//! use anabranch::{entity::{Column, Entity}, query::Query};
//!
//! fn cheap<E: Entity>(name: Column<E, String>, price: Column<E, i64>) -> Query<E> {
//!     Query::new()
//!         .filter(name.starts_with("tea").and(price.lt(500)))
//!         .order_by([price.desc(), name.asc()])
//!         .limit(20)
//! }
//! ```
//!
//! Values never become part of a statement's text: they are its arguments, so the text of a query depends on its
//! shape alone and is prepared once. That holds for lists too, whatever their length.

mod columns;
mod condition;
mod find;
mod json_list;
mod json_path;
mod operand;
mod order_by;
mod part;
mod run;
mod stand_in;
mod table_sql;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use self::{
    columns::Text,
    condition::Condition,
    find::find,
    json_list::{JsonLength, JsonList},
    json_path::{JsonDocument, JsonPath, JsonScalar},
    operand::Operand,
    order_by::OrderBy,
    part::Part,
    stand_in::{Projection, Relation, Selection},
};
pub(crate) use self::{find::by_key, table_sql::TableSql};
pub use anabranch_macros::Projection;

use std::{fmt, marker::PhantomData};

use crate::{
    entity::Entity,
    query::condition::Invalid,
    sql::{OrderTerm, Predicate},
};

/// A query for entities `E`; a description that runs nothing until one of its ends is called, and may be cloned
/// to be run more than once.
#[must_use = "a query does nothing until it is run"]
pub struct Query<E> {
    /// Or what is wrong with one of them, or with the order.
    conditions: Result<Vec<Predicate>, Invalid>,
    order: Vec<OrderTerm>,
    limit: Option<u64>,
    offset: u64,
    entity: PhantomData<fn() -> E>,
}

/// # Building it
impl<E: Entity> Query<E> {
    /// All rows of the table.
    pub const fn new() -> Self {
        Self {
            conditions: Ok(Vec::new()),
            order: Vec::new(),
            limit: None,
            offset: 0,
            entity: PhantomData,
        }
    }

    /// Only the rows that fulfil this condition too.
    pub fn filter(mut self, condition: Condition<E>) -> Self {
        if let Ok(conditions) = &mut self.conditions {
            match condition.into_predicate() {
                Ok(predicate) => conditions.push(predicate),
                Err(invalid) => self.conditions = Err(invalid),
            }
        }
        self
    }

    /// Sorts by these columns where those given before are equal. Takes one, an array, or any other list.
    ///
    /// Without an order SQLite gives rows as it finds them, which may differ from one run to the next; so it may
    /// with rows that are equal in all columns of the order. End with the key where it matters.
    pub fn order_by(mut self, orders: impl IntoIterator<Item = OrderBy<E>>) -> Self {
        for order in orders {
            match order.into_term() {
                Ok(term) => self.order.push(term),
                Err(invalid) => self.conditions = self.conditions.and(Err(invalid)),
            }
        }
        self
    }

    /// No more than this many rows. A later limit replaces an earlier one.
    pub const fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Leaves out this many rows at the beginning. A later offset replaces an earlier one.
    pub const fn offset(mut self, rows: u64) -> Self {
        self.offset = rows;
        self
    }
}

impl<E: Entity> Default for Query<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Clone for Query<E> {
    fn clone(&self) -> Self {
        Self {
            conditions: self.conditions.clone(),
            order: self.order.clone(),
            limit: self.limit,
            offset: self.offset,
            entity: PhantomData,
        }
    }
}

/// Shows the statement's text, or what is wrong with the query; no values.
impl<E: Entity> fmt::Debug for Query<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sql() {
            Ok(statement) => write!(f, "Query({statement})"),
            Err(error) => write!(f, "Query({error:?})"),
        }
    }
}
