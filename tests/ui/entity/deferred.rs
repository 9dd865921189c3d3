//! What a save, or another row, needs to know is always read.

use anabranch::prelude::*;

#[derive(Debug, Entity)]
#[entity(table = "documents", index(columns(title), unique), index(columns(note)))]
struct Document {
    #[entity(id)]
    id: Deferred<i64>,
    #[entity(version)]
    version: Deferred<i64>,
    #[entity(references = Document)]
    parent_id: Deferred<Option<i64>>,
    #[entity(generated = "length(title)")]
    length: Deferred<i64>,
    #[entity(unique)]
    name: Deferred<String>,
    #[entity(index(unique))]
    code: Deferred<String>,
    title: Deferred<String>,
    note: Deferred<String>,
}

#[derive(Debug, Entity)]
#[entity(foreign_key(columns(league, club), references = Club))]
struct Player {
    #[entity(id)]
    id: i64,
    league: i64,
    club: Deferred<i64>,
}

#[derive(Debug, Entity)]
struct Club {
    #[entity(id)]
    league: i64,
    #[entity(id)]
    number: i64,
}

#[derive(Debug, EntityEmbed)]
struct Address {
    city: Deferred<String>,
}

#[derive(Debug, Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
    maybe: Option<Deferred<String>>,
}

fn main() {}
