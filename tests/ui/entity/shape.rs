//! Entities that are no struct with named fields.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Tuple(i64);

#[derive(Entity)]
struct Unit;

#[derive(Entity)]
enum Choice {
    One,
}

#[derive(Entity)]
union Either {
    one: i64,
}

fn main() {}
