//! Keys that are said to be unique or indexed, and a unique column that is said to be indexed.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id, unique)]
    id: i64,
}

#[derive(Entity)]
struct Line {
    #[entity(id, index)]
    id: i64,
}

#[derive(Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(unique, index)]
    number: i64,
}

fn main() {}
