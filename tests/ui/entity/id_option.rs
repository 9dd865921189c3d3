//! A key that may be missing.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: Option<i64>,
}

fn main() {}
