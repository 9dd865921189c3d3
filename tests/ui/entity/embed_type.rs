//! What is embedded has `EntityEmbed`, and what has it is embedded.

use anabranch::entity::{Entity, EntityEmbed};

struct Plain {
    city: String,
}

#[derive(EntityEmbed)]
struct Address {
    city: String,
}

#[derive(Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    home: Plain,
    #[entity(embed)]
    name: String,
}

#[derive(Entity)]
struct Shop {
    #[entity(id)]
    id: i64,
    home: Address,
}

fn main() {}
