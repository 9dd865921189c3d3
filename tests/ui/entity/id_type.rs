//! A key of a type that cannot be one.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: u32,
}

fn main() {}
