//! Statements and how they reach a database: the one place where SQL text is made, and the two doors through
//! which it goes. [`Executor`] is where a query runs; a [`Batch`] is what a save hands to the writer.
//!
//! Nothing here knows the engine, and the engine knows nothing of entities.

mod batch;
pub(crate) mod dml;
mod executor;
mod identifier;

pub use self::{
    batch::{Arg, Batch, Expect, Mismatch, Receipt, Refusal, Step},
    executor::{Cost, Executor, Read, Rows},
    identifier::Identifier,
};

use std::sync::Arc;

use crate::value::Value;

/// A statement's text and its arguments, one for each placeholder.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The text, with placeholders `?1`, `?2`, ...
    pub text: Arc<str>,
    /// The arguments, in the order of their numbers.
    pub args: Vec<Value>,
}
