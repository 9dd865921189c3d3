//! Ways to write names that are none.

use anabranch::entity::{Entity, EntityEmbed, EntityEnum};

#[derive(Entity)]
#[entity(rename_all = "camel_case")]
struct Order {
    #[entity(id)]
    id: i64,
}

#[derive(EntityEmbed)]
#[entity(rename_all = camelCase)]
struct Address {
    city: String,
}

#[derive(EntityEnum)]
#[entity(rename_all = "")]
enum Status {
    New,
}

fn main() {}
