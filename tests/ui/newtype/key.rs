//! Newtypes that cannot be a key.

use anabranch::entity::{Entity, EntityNewtype};

#[derive(Debug, Clone, PartialEq, EntityNewtype)]
#[entity(key)]
struct Number(f64);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EntityNewtype)]
struct NoKey(i64);

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: NoKey,
}

fn main() {}
