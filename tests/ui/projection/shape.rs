//! What cannot be a projection.

use anabranch::query::Projection;

#[derive(Projection)]
#[projection(entity = Order)]
struct Tuple(i64);

#[derive(Projection)]
#[projection(entity = Order)]
enum Choice {
    One,
}

#[derive(Projection)]
#[projection(entity = Order)]
struct Generic<T> {
    id: T,
}

#[derive(Projection)]
#[projection(entity = Order)]
struct Empty {}

#[derive(Projection)]
struct OfNothing {
    id: i64,
}

fn main() {}
