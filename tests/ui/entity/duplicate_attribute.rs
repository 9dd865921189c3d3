//! An attribute that is given twice.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(table = "orders")]
#[entity(table = "order")]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(index, index)]
    number: i64,
}

fn main() {}
