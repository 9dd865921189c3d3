//! The same rows, with more and more of what feeds need.

use anabranch::prelude::*;

/// Makes rows.
pub(in crate::feed) trait Kind: Entity {
    /// The row of this key.
    fn of(id: i64) -> Self;

    /// Makes the row another one.
    fn change(&mut self);
}

/// Without a number.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(in crate::feed) struct Plain {
    #[entity(id)]
    id: i64,
    item: String,
    quantity: i64,
}

/// With the number of the commit.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(in crate::feed) struct Numbered {
    #[entity(id)]
    id: i64,
    item: String,
    quantity: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

/// With an index on it: there can be a feed.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(in crate::feed) struct Indexed {
    #[entity(id)]
    id: i64,
    item: String,
    quantity: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

/// With deletions that are told of.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
pub(in crate::feed) struct Told {
    #[entity(id)]
    id: i64,
    item: String,
    quantity: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

macro_rules! kinds {
    ($($name:ident { $($seq:ident)? })*) => {$(
        impl Kind for $name {
            fn of(id: i64) -> Self {
                Self {
                    id,
                    item: format!("item {id}"),
                    quantity: id % 7,
                    $($seq: CommitSeq(0),)?
                }
            }

            fn change(&mut self) {
                self.quantity += 1;
            }
        }
    )*};
}

kinds! {
    Plain {}
    Numbered { seq }
    Indexed { seq }
    Told { seq }
}
