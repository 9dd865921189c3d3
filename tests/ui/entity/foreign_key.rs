//! Foreign keys of several columns that say too little, or what is not there.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Line {
    #[entity(id)]
    order: i64,
    #[entity(id)]
    number: i64,
}

#[derive(Entity)]
#[entity(
    foreign_key,
    foreign_key(columns(order, number)),
    foreign_key(references = Line),
    foreign_key(columns(order, nmber), references = Line),
    foreign_key(columns(order, number), references = Line, on_delete = Drop),
    foreign_key(columns(order, number), references = "line")
)]
struct Remark {
    #[entity(id)]
    id: i64,
    order: i64,
    number: i64,
}

fn main() {}
