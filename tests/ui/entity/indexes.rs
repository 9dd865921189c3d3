//! Indexes that say too little, or what is not there.

use anabranch::entity::{Entity, EntityEmbed};

#[derive(EntityEmbed)]
struct Address {
    city: String,
}

#[derive(Entity)]
#[entity(
    index,
    index(),
    index(name = "nothing"),
    index(on = "lower(name)"),
    index(on = "lower(name)", name = "both", columns(name)),
    index(columns = "name"),
    index(columns()),
    index(columns("name")),
    index(columns(nmae)),
    index(columns(name.first)),
    index(columns(home)),
    index(column(name)),
    index = "name"
)]
struct Customer {
    #[entity(id, index)]
    id: i64,
    #[entity(index(columns(id)))]
    name: String,
    #[entity(unique, index)]
    code: i64,
    #[entity(embed)]
    home: Address,
}

fn main() {}
