//! Only JSON is looked into, for what SQLite reads from it exactly; only lists are asked for values.

use anabranch::prelude::*;

#[derive(Entity)]
struct Article {
    #[entity(id)]
    id: i64,
    name: String,
    extra: serde_json::Value,
    #[entity(json)]
    tags: Vec<String>,
}

fn main() {
    let _ = Article::NAME.path::<String>("$.colour");
    let _ = Article::EXTRA.path::<f32>("$.weight");
    let _ = Article::EXTRA.path::<i64>("$.size").eq("large");
    let _ = Article::EXTRA.path::<i64>("$.size").contains("l");
    let _ = Article::EXTRA.has("new");
    let _ = Article::TAGS.has(1);
}
