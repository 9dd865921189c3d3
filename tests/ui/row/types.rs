//! Fields that no column holds, and structs that no row is read as.

use anabranch::{
    prelude::*,
    query::{FromRow, raw},
};

#[derive(FromRow)]
struct Report {
    total: u64,
    tags: Vec<String>,
}

struct Plain {
    total: i64,
}

#[derive(FromRow)]
struct Outer {
    #[row(embed)]
    inner: Plain,
}

async fn read(db: &Database) {
    let _ = raw::<Plain>("SELECT 1 AS total", ()).all(db).await;
}

fn main() {}
