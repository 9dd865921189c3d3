//! Front page.

pub mod context;
pub mod database;
pub mod engine;
pub mod entity;
pub mod error;
mod flush;
pub mod observe;
pub mod prelude;
pub mod query;
pub mod schema;
pub mod sql;
mod tracker;
pub mod value;
