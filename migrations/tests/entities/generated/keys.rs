//! Entities of the tables `descending`, `small`, `days`, `uuids`, `hashes`, `points`, `states`,
//! `empty`, `partial` and `folded`.
//!
//! Made by `anabranch entities --from keys.db`.

use anabranch::{prelude::*, value::Value};
use uuid::Uuid;

/// A row of `descending`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct Descending {
    #[entity(id)]
    pub id: i64,
}

/// A row of `small`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct Small {
    #[entity(id)]
    pub id: i64,
}

/// A row of `days`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "days", strict = false)]
pub struct Day {
    #[entity(id)]
    pub day: String,
    pub closed: Option<bool>,
}

/// A row of `uuids`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "uuids", strict = false)]
pub struct UuidRow {
    #[entity(id)]
    pub id: Uuid,
}

/// A row of `hashes`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "hashes", strict = false)]
pub struct Hash {
    #[entity(id)]
    pub id: Value,
}

/// A row of `points`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "points", strict = false, without_rowid)]
pub struct Point {
    #[entity(id)]
    pub y: Value,
    #[entity(id)]
    pub x: Value,
}

/// A row of `states`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "states", strict = false)]
pub struct State {
    #[entity(id, check = "name IN ('on', 'off')")]
    pub name: String,
}

/// A row of `empty`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct Empty {
    #[entity(id)]
    pub id: String,
}

/// A row of `partial`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
#[entity(index(on = "c DESC", name = "in_disorder", unique))]
pub struct Partial {
    #[entity(index(name = "of_some", unique, where = "a > 0"))]
    pub a: i64,
    #[entity(id)]
    pub b: String,
    #[entity(id)]
    pub c: String,
}

/// A row of `folded`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct Folded {
    #[entity(id)]
    pub id: i64,
    #[entity(unique)]
    pub a: Option<String>,
}
