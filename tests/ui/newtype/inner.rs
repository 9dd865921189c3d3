//! Newtypes of what no column can hold.

use anabranch::entity::EntityNewtype;

struct Plain;

#[derive(EntityNewtype)]
struct Around(Plain);

#[derive(EntityNewtype)]
struct Large(u64);

#[derive(EntityNewtype)]
struct Optional(Option<i64>);

fn main() {}
