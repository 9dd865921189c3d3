//! What cannot be embedded.

use anabranch::entity::EntityEmbed;

#[derive(EntityEmbed)]
struct Tuple(i64);

#[derive(EntityEmbed)]
struct Empty {}

#[derive(EntityEmbed)]
struct Generic<T> {
    value: T,
}

#[derive(EntityEmbed)]
union Either {
    one: i64,
}

#[derive(EntityEmbed)]
#[entity(table = "address", check = "city <> ''")]
struct Address {
    #[entity(id, version, check = "city <> ''", generated = "1")]
    city: String,
}

fn main() {}
