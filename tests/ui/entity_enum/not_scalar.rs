//! An enum in a field that derives nothing.

use anabranch::entity::Entity;

enum Status {
    New,
}

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    status: Status,
}

fn main() {}
