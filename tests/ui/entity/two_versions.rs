//! Two versions, and two commit numbers.

use anabranch::entity::Entity;

use anabranch::entity::CommitSeq;

#[derive(Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(version)]
    version: i64,
    #[entity(version)]
    revision: i64,
    #[entity(commit_seq)]
    first: CommitSeq,
    #[entity(commit_seq)]
    second: CommitSeq,
}

fn main() {}
