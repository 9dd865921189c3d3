//! Times of saves that are something else as well.

use anabranch::entity::Entity;
use chrono::{DateTime, Utc};

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(created_at, updated_at)]
    both: DateTime<Utc>,
    #[entity(created_at, json)]
    one: DateTime<Utc>,
    #[entity(created_at)]
    another: DateTime<Utc>,
}

fn main() {}
