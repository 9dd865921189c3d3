//! Front page.

pub mod engine;
pub mod entity;
pub mod error;
pub mod query;
pub mod sql;
pub mod value;
