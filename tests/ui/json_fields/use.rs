//! Fields that are not there, of other types, and of other documents.

use std::time::Duration;

use anabranch::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Entity)]
struct Article {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(json)]
    extra: Extra,
}

#[derive(Serialize, Deserialize, JsonFields)]
struct Extra {
    colour: String,
    size: Option<i64>,
    lasts: Duration,
    maker: Maker,
    tags: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonFields)]
struct Maker {
    city: String,
}

fn main() {
    let _ = Article::EXTRA.then(Extra::COLOR).eq("red");
    let _ = Article::EXTRA.then(Extra::COLOUR).eq(1);
    let _ = Article::EXTRA.then(Extra::SIZE).eq("large");
    let _ = Article::EXTRA.then(Extra::LASTS);
    let _ = Article::EXTRA.then(Maker::CITY);
    let _ = Article::EXTRA.then(Extra::MAKER).then(Extra::COLOUR);
    let _ = Article::EXTRA.then(Extra::TAGS).has(1);
    let _ = Article::NAME.then(Extra::COLOUR);
}
