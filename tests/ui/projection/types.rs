//! Fields of other types than what they are read from.

use anabranch::{
    entity::Entity,
    query::Projection,
};

#[derive(Entity)]
#[entity(has_many(lines: OrderLine))]
struct Order {
    #[entity(id)]
    id: i64,
    item: String,
    #[entity(json)]
    tags: Vec<String>,
}

#[derive(Entity)]
struct OrderLine {
    #[entity(id)]
    id: i64,
    #[entity(references = Order)]
    order_id: i64,
}

#[derive(Projection)]
#[projection(entity = Order)]
struct OrderRow {
    id: String,
    #[projection(from = OrderLine::ID)]
    line: i64,
    #[projection(from = Order::ITEM)]
    what: Option<String>,
    tags: Vec<String>,
    number: i64,
    #[projection(nested = Order::LINES)]
    lines: Option<LineRow>,
    #[projection(nested = Order::LINES)]
    orders: Vec<Self>,
}

#[derive(Projection)]
#[projection(entity = OrderLine)]
struct LineRow {
    id: i64,
}

fn main() {}
