//! Times of saves in fields of other types.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(created_at)]
    created: String,
    #[entity(updated_at)]
    updated: Option<i64>,
}

fn main() {}
