//! Attributes that do not exist, or stand in the wrong place.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(tabel = "orders", unique, audited)]
struct Order {
    #[entity(id, autoincrement)]
    id: i64,
    #[entity(colum = "item_name")]
    item: String,
    #[entity(table = "orders")]
    number: i64,
}

fn main() {}
