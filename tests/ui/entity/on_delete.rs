//! Actions that do not fit.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(on_delete = Cascade)]
    customer: i64,
    #[entity(references = Order, on_delete = Cascad)]
    parent: i64,
    #[entity(references = Order, on_update = SetDefault)]
    root: i64,
    #[entity(references = Order, json)]
    twin: i64,
}

fn main() {}
