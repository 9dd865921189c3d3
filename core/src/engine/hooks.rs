//! What SQLite tells us, or asks us, while statements run: rows changed, commits, progress, permission,
//! the time, and who wrote.

mod authorizer;
mod clock;
mod commit_bell;
mod draws;
mod ear;
mod head;
mod progress;
mod statements;
mod wal_size;
mod watch;

pub(in crate::engine) use self::{
    authorizer::{Access, Action, Authorizer},
    clock::Clock,
    commit_bell::CommitBell,
    draws::{Draw, Draws},
    ear::Ear,
    head::{Head, Header},
    progress::{Progress, Run},
    statements::Statements,
    wal_size::WalSize,
    watch::{Mark, StampedBy, Touched, Watch},
};
