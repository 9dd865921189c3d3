//! A reference of a type other than the key's.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(references = Customer)]
    customer: String,
}

fn main() {}
