//! A relation to a struct that is no entity.

use anabranch::entity::Entity;

struct OrderLine;

#[derive(Entity)]
#[entity(has_many(lines: OrderLine))]
struct Order {
    #[entity(id)]
    id: i64,
}

fn main() {}
