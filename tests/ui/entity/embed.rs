//! Embedded structs with attributes that are of one column.

use anabranch::entity::{Entity, EntityEmbed};

#[derive(EntityEmbed)]
struct Address {
    city: String,
}

#[derive(Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
    #[entity(embed, column = "home", check = "home <> ''", unique, default = "''")]
    home: Address,
    #[entity(embed, json)]
    work: Address,
    #[entity(embed, id)]
    key: Address,
    #[entity(prefix = "x_")]
    other: String,
    #[entity(embed, prefix = 3)]
    third: Address,
}

fn main() {}
