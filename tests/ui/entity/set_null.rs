//! A reference that would become NULL in a field that cannot.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(references = Order, on_delete = SetNull)]
    parent: i64,
}

fn main() {}
