//! Attributes with values of the wrong kind.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(table = orders, strict = "no", check)]
struct Order {
    #[entity(id = true)]
    id: i64,
    #[entity(default = 0)]
    number: i64,
    #[entity(references = "Customer")]
    customer: i64,
    #[entity(column("item"))]
    item: String,
    #[entity]
    text: String,
    #[entity(check = )]
    size: i64,
}

fn main() {}
