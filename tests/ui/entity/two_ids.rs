//! Two keys.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(id)]
    number: i64,
}

fn main() {}
