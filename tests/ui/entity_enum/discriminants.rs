//! Integers that depend on the order of variants, or are too large.

use anabranch::entity::EntityEnum;

#[derive(EntityEnum)]
#[entity(integer)]
enum Status {
    New = 1,
    Paid,
    #[entity(rename = "gone")]
    Gone = 3,
}

fn main() {}
