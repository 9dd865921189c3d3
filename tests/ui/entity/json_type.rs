//! A JSON field of a type that serde does not know.

use anabranch::entity::Entity;

struct Extra;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(json)]
    extra: Extra,
}

fn main() {}
