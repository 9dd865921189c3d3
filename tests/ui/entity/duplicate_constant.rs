//! Fields whose constants have one name.

use anabranch::entity::Entity;

#[derive(Entity)]
#[allow(non_snake_case)]
struct Order {
    #[entity(id)]
    id: i64,
    placed_at: i64,
    placedAt: i64,
}

fn main() {}
