//! An entity without a key.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    item: String,
}

fn main() {}
