//! A commit number that is not a CommitSeq.

use anabranch::entity::Entity;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq)]
    commit_seq: i64,
}

fn main() {}
