//! The field that is named is one of the other entity, and refers to something else.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(has_many(lines: OrderLine, by = item_id))]
struct Order {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct Item {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct OrderLine {
    #[entity(id)]
    id: i64,
    #[entity(references = Order)]
    order_id: i64,
    #[entity(references = Item)]
    item_id: i64,
}

fn main() {}
