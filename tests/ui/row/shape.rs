//! What cannot be read from a row by names.

use anabranch::query::FromRow;

#[derive(FromRow)]
struct Positions(i64, String);

#[derive(FromRow)]
enum Either {
    One,
    Other,
}

#[derive(FromRow)]
struct Empty {}

#[derive(FromRow)]
struct Any<T> {
    value: T,
}

#[derive(FromRow)]
struct Twice {
    total: i64,
    #[row(column = "Total")]
    sum: i64,
}

fn main() {}
