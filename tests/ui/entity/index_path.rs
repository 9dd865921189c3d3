//! A path into an embedded struct that has no such field.

use anabranch::entity::{Entity, EntityEmbed};

#[derive(EntityEmbed)]
struct Address {
    city: String,
}

#[derive(Entity)]
#[entity(index(columns(home.town)))]
struct Customer {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    home: Address,
}

fn main() {
    let _ = <Customer as Entity>::TABLE;
}
