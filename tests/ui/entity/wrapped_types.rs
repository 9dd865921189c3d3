//! Decimals need a `scale`; `scale` and `padded` need numbers that they are for.

use anabranch::entity::Entity;
use rust_decimal::Decimal;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    price: Decimal,
    #[entity(scale = 2)]
    total: f64,
    #[entity(padded)]
    size: Option<i64>,
}

fn main() {}
