//! `autoincrement` on what is no key that the database gives.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Field {
    #[entity(id)]
    id: i64,
    #[entity(autoincrement)]
    number: i64,
}

#[derive(Entity)]
struct Part {
    #[entity(id, autoincrement)]
    one: i64,
    #[entity(id)]
    two: i64,
}

#[derive(Entity)]
#[entity(autoincrement)]
struct OnStruct {
    #[entity(id)]
    id: i64,
}

fn main() {}
