//! Foreign keys whose fields are not those of the key.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Line {
    #[entity(id)]
    order: i64,
    #[entity(id)]
    number: i64,
}

#[derive(Entity)]
#[entity(foreign_key(columns(order), references = Line))]
struct TooFew {
    #[entity(id)]
    id: i64,
    order: i64,
}

#[derive(Entity)]
#[entity(foreign_key(columns(order, number), references = Line))]
struct WrongType {
    #[entity(id)]
    id: i64,
    order: i64,
    number: String,
}

#[derive(Entity)]
struct OneColumn {
    #[entity(id)]
    id: i64,
    #[entity(references = Line)]
    line: i64,
}

#[derive(Entity)]
#[entity(foreign_key(columns(order, number), references = Line, on_delete = SetNull))]
struct NeverNull {
    #[entity(id)]
    id: i64,
    order: i64,
    number: i64,
}

fn main() {}
