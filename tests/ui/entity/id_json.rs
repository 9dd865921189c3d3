//! A key stored as JSON.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id, json)]
    id: i64,
}

fn main() {}
