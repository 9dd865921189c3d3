//! Columns that SQLite cannot tell apart.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    item: String,
    #[entity(column = "Item")]
    product: String,
}

fn main() {}
