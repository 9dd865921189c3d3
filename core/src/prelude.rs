//! What most applications import: `use anabranch::prelude::*;`.

pub use crate::{
    context::{Context, EntityState, Graph, Interceptor, SaveToken, Saved, Tracked, Winner},
    database::Database,
    engine::{
        Bytes, ConcurrentOptions, Execution, Isolation, ReadSnapshot, Session, Synchronous,
        Transaction,
    },
    entity::{CommitSeq, Entity, EntityEmbed, EntityEnum, EntityNewtype},
    error::{Error, ErrorKind},
    query::{Condition, Expr, Fetch, JsonFields, Projection, Query, Relation},
    value::Deferred,
};
