//! Attributes of projections that are wrong.

use anabranch::query::Projection;

#[derive(Projection)]
#[projection(entity = "Order", entity = Order, table = "orders", from = Order)]
struct OrderRow {
    #[projection(from = Order::ID, nested = Order::LINES)]
    id: i64,
    #[projection(from = Order::ID, from = Order::ID)]
    twice: i64,
    #[projection(nested = Order::LINES, json)]
    lines: Vec<LineRow>,
    #[projection(frm = Order::ITEM)]
    item: String,
    #[projection(from)]
    text: String,
    #[projection(json, padded)]
    number: u64,
    #[projection(scale = 19)]
    price: i64,
    #[projection]
    name: String,
    #[projection(entity = Order)]
    size: i64,
}

fn main() {}
