//! `json`, `scale` and `padded` on fields that they are not for.

use anabranch::entity::Entity;
use rust_decimal::Decimal;

#[derive(Entity)]
struct Order {
    #[entity(id, padded)]
    id: i64,
    #[entity(scale = 2, json)]
    both: Decimal,
    #[entity(scale = 19)]
    beyond: Decimal,
    #[entity(scale)]
    without: Decimal,
    #[entity(padded, references = Order)]
    previous: Option<i64>,
}

fn main() {}
