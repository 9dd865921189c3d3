//! Tables without a rowid, and what needs one.

use anabranch::entity::{CommitSeq, Entity};

#[derive(Entity)]
#[entity(without_rowid)]
struct Stamped {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

#[derive(Entity)]
#[entity(without_rowid)]
struct Counted {
    #[entity(id, autoincrement)]
    id: i64,
}

#[derive(Entity)]
#[entity(without_rowid = true)]
struct Valued {
    #[entity(id)]
    id: i64,
}

fn main() {}
