//! Variants with data.

use anabranch::entity::EntityEnum;

#[derive(EntityEnum)]
enum Status {
    New,
    Paid(i64),
}

fn main() {}
