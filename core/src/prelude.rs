//! What most applications import: `use anabranch::prelude::*;`.

pub use crate::{
    context::{Context, EntityState, SaveToken, Saved, Tracked},
    database::Database,
    engine::{Bytes, Execution, Synchronous, Transaction},
    entity::{CommitSeq, Entity, EntityEnum},
    error::{Error, ErrorKind},
};
