//! A key of five columns.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Cell {
    #[entity(id)]
    a: i64,
    #[entity(id)]
    b: i64,
    #[entity(id)]
    c: i64,
    #[entity(id)]
    d: i64,
    #[entity(id)]
    e: i64,
}

fn main() {}
