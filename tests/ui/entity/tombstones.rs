//! Deletions that have no number to be kept with.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(tombstones)]
struct Order {
    #[entity(id)]
    id: i64,
}

fn main() {}
