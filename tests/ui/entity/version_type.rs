//! A version that is not an i64.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(version)]
    version: i32,
}

fn main() {}
