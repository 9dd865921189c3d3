//! An optional embedded struct of which nothing is needed.

use anabranch::entity::{Entity, EntityEmbed};

#[derive(EntityEmbed)]
struct Address {
    street: Option<String>,
    city: Option<String>,
}

#[derive(Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    home: Option<Address>,
}

fn main() {
    let _ = <Customer as Entity>::TABLE;
}
