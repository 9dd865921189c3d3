//! An entity with a type parameter.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order<T> {
    #[entity(id)]
    id: i64,
    item: T,
}

fn main() {}
