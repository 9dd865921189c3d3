//! Front page.

pub mod engine;
pub mod entity;
pub mod error;
pub mod observe;
pub mod query;
pub mod schema;
pub mod sql;
pub mod value;
