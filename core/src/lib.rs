//! Front page.

pub mod context;
pub mod engine;
pub mod entity;
pub mod error;
mod flush;
pub mod sql;
mod tracker;
pub mod value;
