//! Computed columns that are something else as well.

use anabranch::entity::{CommitSeq, Entity};

#[derive(Entity)]
struct Order {
    #[entity(id, generated = "1")]
    id: i64,
    #[entity(generated = "1", default = "0")]
    total: i64,
    #[entity(version, generated = "1")]
    version: i64,
    #[entity(commit_seq, generated = "1", stored)]
    seq: CommitSeq,
    #[entity(stored)]
    price: i64,
    #[entity(generated)]
    size: i64,
    #[entity(generated = "1", stored = true)]
    weight: i64,
}

fn main() {}
