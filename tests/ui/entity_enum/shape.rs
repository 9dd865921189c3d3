//! Types that are no enum, have parameters, or nothing to store.

use anabranch::entity::EntityEnum;

#[derive(EntityEnum)]
struct Order {
    id: i64,
}

#[derive(EntityEnum)]
enum Never {}

#[derive(EntityEnum)]
enum Sized<const N: usize> {
    One,
}

fn main() {}
