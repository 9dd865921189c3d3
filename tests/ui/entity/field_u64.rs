//! Types that no column can hold.

use anabranch::entity::Entity;

struct Money;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    size: u64,
    offset: Option<u64>,
    price: Money,
}

fn main() {}
