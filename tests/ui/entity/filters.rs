//! Named filters without a name, without a function, and two of one name.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(
    filter,
    filter(live),
    filter("live" = Order::live),
    filter(live = "deleted = 0"),
    filter(live = Order::live),
    filter(live = Order::live)
)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(filter(live = Order::live))]
    deleted: bool,
}

fn main() {}
