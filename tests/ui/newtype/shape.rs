//! Newtypes that are around nothing, or too much.

use anabranch::entity::EntityNewtype;

#[derive(EntityNewtype)]
struct Two(i64, i64);

#[derive(EntityNewtype)]
struct Unit;

#[derive(EntityNewtype)]
struct Named {
    id: i64,
}

#[derive(EntityNewtype)]
enum Choice {
    One(i64),
}

#[derive(EntityNewtype)]
struct Generic<T>(T);

#[derive(EntityNewtype)]
#[entity(key, json)]
struct Both(i64);

#[derive(EntityNewtype)]
#[entity(id)]
struct Id(i64);

fn main() {}
