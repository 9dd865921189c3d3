//! Fields without a column.

use anabranch::entity::Entity;

struct NoDefault;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(skip, column = "cached", index)]
    cached: String,
    #[entity(skip, id)]
    key: i64,
    #[entity(skip = true)]
    value: i64,
}

#[derive(Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(skip)]
    cached: NoDefault,
}

#[derive(Entity)]
#[entity(index(columns(cached)))]
struct Indexed {
    #[entity(id)]
    id: i64,
    #[entity(skip)]
    cached: i64,
}

fn main() {}
