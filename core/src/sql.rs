//! Statements and how they reach a database: the one place where SQL text is made, and the two doors through
//! which it goes. [`Executor`] is where a query runs, and [`WriteExecutor`] where a set-based write does; a batch is what a
//! save hands to the writer.
//!
//! Nothing here knows the engine, and the engine knows nothing of entities.

mod around;
mod batch;
mod change;
mod chunk;
pub(crate) mod dml;
mod executor;
mod fold;
mod identifier;
mod insert;
mod list;
mod literal;
mod predicate;
mod render;
mod select;
mod term;
mod write;

#[cfg(test)]
pub(crate) mod fixture;

pub(crate) use self::{
    batch::{Arg, Batch, Expect, Mismatch, NewKey, Receipt, Refusal, Step},
    change::{Delete, Insert, Update},
    chunk::{Chunk, ChunkKey, Several, Unchanged},
    fold::{FOLD, WITHIN, folded},
    identifier::{Identifier, Quoted},
    insert::{InsertSelected, Selected},
    literal::Literal,
    predicate::{Comparison, Pattern, Predicate},
    render::statement_of,
    select::{ColumnList, Compound, Direction, Listed, Recursion, Select, SetOperation, Source},
    term::{Aggregate, Frame, Hop, On, OrderTerm, Piece, Term, Window},
};
pub use self::{
    executor::{Cost, Executor, Read, ReadTogether, ReadWork, Reads, Rows},
    write::{Write, WriteExecutor, Written},
};

use std::{fmt, sync::Arc};

use crate::value::Value;

/// A statement's text and its arguments, one for each placeholder.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The text, with placeholders `?1`, `?2`, ...
    pub text: Arc<str>,
    /// The arguments, in the order of their numbers.
    pub args: Vec<Value>,
}

/// The text alone, without the arguments.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
