//! A key of thirteen columns.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Cell {
    #[entity(id)]
    a: i64,
    #[entity(id)]
    b: i64,
    #[entity(id)]
    c: i64,
    #[entity(id)]
    d: i64,
    #[entity(id)]
    e: i64,
    #[entity(id)]
    f: i64,
    #[entity(id)]
    g: i64,
    #[entity(id)]
    h: i64,
    #[entity(id)]
    i: i64,
    #[entity(id)]
    j: i64,
    #[entity(id)]
    k: i64,
    #[entity(id)]
    l: i64,
    #[entity(id)]
    m: i64,
}

fn main() {}
