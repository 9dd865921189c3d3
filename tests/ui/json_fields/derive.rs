//! What has no fields that the compiler could know.

use anabranch::query::JsonFields;

#[derive(JsonFields)]
enum Shape {
    Round,
}

#[derive(JsonFields)]
struct Pair(i64, i64);

#[derive(JsonFields)]
struct Any<T> {
    value: T,
}

#[derive(serde::Serialize, serde::Deserialize, JsonFields)]
struct Article {
    colour: String,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Rest {
    size: i64,
}

#[derive(serde::Serialize, serde::Deserialize, JsonFields)]
#[serde(transparent)]
struct Around {
    inner: Rest,
}

#[derive(JsonFields)]
#[entity(table = "extra")]
struct Extra {
    colour: String,
}

fn main() {}
