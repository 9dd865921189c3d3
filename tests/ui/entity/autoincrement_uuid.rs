//! `autoincrement` on a key that the context makes.

use anabranch::entity::Entity;
use uuid::Uuid;

#[derive(Entity)]
struct Order {
    #[entity(id, autoincrement)]
    id: Uuid,
}

fn main() {
    let _ = <Order as Entity>::TABLE;
}
