//! Two columns with one name through embedding.

use anabranch::entity::{Entity, EntityEmbed};

#[derive(EntityEmbed)]
struct Address {
    city: String,
}

#[derive(Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    home: Address,
    #[entity(column = "Home_City")]
    city: String,
}

fn main() {
    let _ = <Customer as Entity>::TABLE;
}
