//! What stands in the wrong place, or is not complete.

use anabranch::entity::{Entity, EntityEmbed};

#[derive(Entity)]
#[entity(
    has_many,
    has_many(OrderLine),
    has_many(lines = OrderLine),
    has_many(lines: OrderLine, to = line_id),
    has_many(pages: OrderLine, by = "order_id"),
    has_many(items: OrderLine, by = Order::id),
    has_many(parts: OrderLine, via = Item),
    has_many(texts: OrderLine, on_delete = Cascade),
    has_one(profile: Profile, through = User),
    has_one = profile,
    foreign_key(columns(a), references = Order, relation = "order"),
    foreign_key(columns(a), relation = order)
)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(relation = buyer)]
    customer_id: i64,
    #[entity(references = Order, relation = some::name)]
    order_id: i64,
    #[entity(has_many(lines: OrderLine))]
    a: i64,
}

#[derive(EntityEmbed)]
struct Part {
    #[entity(references = Order, relation = order)]
    order_id: i64,
}

fn main() {}
