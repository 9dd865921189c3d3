//! A key that cannot be looked up.

use anabranch::entity::EntityNewtype;

#[derive(Debug, Clone, PartialEq, Eq, EntityNewtype)]
#[entity(key)]
struct OrderId(i64);

fn main() {}
