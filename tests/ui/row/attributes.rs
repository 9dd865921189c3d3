//! Attributes that are not those of a row.

use anabranch::query::FromRow;

#[derive(FromRow)]
#[row(column = "report")]
struct Report {
    #[row(colum = "total")]
    total: i64,
    #[row(rename_all = "camelCase")]
    count: i64,
    #[row(json, padded)]
    tags: Vec<String>,
    #[row(prefix = "home_")]
    home: String,
}

fn main() {}
