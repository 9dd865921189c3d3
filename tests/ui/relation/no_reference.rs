//! Relations to entities that do not refer back, and through one that refers to neither end.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(has_many(lines: OrderLine), has_one(note: Note))]
struct Order {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct OrderLine {
    #[entity(id)]
    id: i64,
    order_id: i64,
}

#[derive(Entity)]
struct Note {
    #[entity(id, references = OrderLine)]
    line_id: i64,
}

#[derive(Entity)]
#[entity(has_many(tags: Tag, through = PostTag))]
struct Post {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct Tag {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct PostTag {
    #[entity(id)]
    post_id: i64,
    #[entity(id)]
    tag_id: i64,
}

fn main() {}
