//! A key that is also the version.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id, version)]
    id: i64,
}

fn main() {}
