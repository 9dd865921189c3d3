//! What a save does, in the order the database needs: from [`Changes`] to a [`Batch`].
//!
//! 1. Temporary keys become questions to the writer: the key of a new entity, and each declared reference to it,
//!    is [`Arg::Key`]. Any other value in that range is refused, before anything is written.
//! 2. Rows are ordered: deletes that make room for a unique value (before them updates that leave rows which these
//!    deletes would take along), updates that make room, inserts with those referred to first, updates, and the other
//!    deletes with those that refer first. Where an index is unique for part of the rows or in expressions, nobody knows
//!    who makes room: every delete, and every update that can, goes before the inserts.
//! 3. The text comes from a cache for each table; updates set the changed columns only.
//!
//! Versions: an insert writes the entity's version if it is above 0, else 1; an update counts up from what was
//! read, and matches only a row that still has it, as a delete does. The commit number is the writer's: an insert
//! writes 0, an update nothing. Columns that the database computes are not written, but read back in the same statement.
//! A `created_at` that is unset, and every `updated_at` but one that is set in an insert, gets one time for the whole save.

mod dependency;
mod order;
mod render;
mod resolve;
mod statements;

#[cfg(test)]
mod tests;

pub(crate) use self::resolve::first_values;

use crate::{
    entity::TableDef,
    error::Result,
    flush::resolve::Resolver,
    sql::Arg,
    tracker::{Changes, Place, RowKey, TemporaryKeys},
    value::Value,
};

/// The rows that a save writes, in order.
#[derive(Debug)]
pub(crate) struct FlushPlan {
    rows: Vec<PlannedRow>,
    keys: TemporaryKeys,
    /// The time that it writes in columns such as `updated_at`, if it writes any.
    now: Option<Value>,
    defer_foreign_keys: bool,
}

/// One row of a plan.
#[derive(Debug)]
pub(crate) struct PlannedRow {
    table: &'static TableDef,
    place: Place,
    action: Action,
    /// A delete before it may have taken the row along.
    may_be_gone: bool,
}

/// What is done with a row.
#[derive(Debug)]
enum Action {
    Insert {
        /// The values of all columns.
        values: Vec<Arg>,
        version: Option<i64>,
        /// The columns that get the time of the save.
        created_at: Option<usize>,
        updated_at: Option<usize>,
    },
    Update {
        key: Vec<Value>,
        /// The version that was read.
        version: Option<i64>,
        columns: Vec<usize>,
        /// The new values of those columns.
        values: Vec<Arg>,
        /// The sets of unique columns in which it changes.
        unique: Vec<UniqueTaken>,
        /// The rows that it no longer refers to, and with which it would have been deleted.
        left: Vec<RowKey>,
        /// The rows to which it refers now, and did not before.
        joined: Vec<RowKey>,
    },
    Delete {
        /// The values of all columns, as they were read.
        values: Vec<Value>,
    },
}

/// A set of unique columns: the values that a row gives up in it, and those that it takes.
#[derive(Debug)]
struct UniqueTaken {
    columns: &'static [usize],
    freed: Vec<Value>,
    taken: Vec<Arg>,
}

impl FlushPlan {
    /// Puts changes in order.
    ///
    /// # Errors
    ///
    /// Kind `Value`, naming table and column, for a temporary key that is no key of an entity that is added here, or
    /// that stands in a column that is no reference to it.
    pub(crate) fn of(changes: Changes) -> Result<Self> {
        let mut resolver = Resolver::new(&changes)?;
        let mut rows = Vec::with_capacity(changes.0.len());
        for change in changes.0 {
            rows.push(resolver.plan(change)?);
        }
        let (rows, defer_foreign_keys) = order::ordered(rows);
        let (keys, now) = resolver.into_parts();
        Ok(Self {
            rows,
            keys,
            now,
            defer_foreign_keys,
        })
    }
}
