//! A reference to a struct that is no entity.

use anabranch::entity::Entity;

struct Customer;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(references = Customer)]
    customer: i64,
}

fn main() {}
