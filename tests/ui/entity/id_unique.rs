//! A key that is said to be unique, and a unique column that is said to be indexed.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id, unique)]
    id: i64,
    #[entity(unique, index)]
    number: i64,
}

fn main() {}
