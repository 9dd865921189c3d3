//! Names that are empty or reserved.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(table = "")]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(column = " ")]
    item: String,
}

#[derive(Entity)]
#[entity(table = "SQLite_orders")]
struct Other {
    #[entity(id)]
    id: i64,
}

fn main() {}
