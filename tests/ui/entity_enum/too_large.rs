//! A discriminant that no column can hold.

use anabranch::entity::EntityEnum;

#[derive(EntityEnum)]
#[entity(integer)]
#[repr(u64)]
enum Status {
    New = u64::MAX,
}

fn main() {}
