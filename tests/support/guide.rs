//! The pages of the guide and the README: their blocks of Rust are doctests of this package.

#[doc = include_str!("../../README.md")]
pub struct Readme;

#[doc = include_str!("../../docs/guide/src/first-steps.md")]
pub struct FirstSteps;

#[doc = include_str!("../../docs/guide/src/entities.md")]
pub struct Entities;

#[doc = include_str!("../../docs/guide/src/values.md")]
pub struct Values;

#[doc = include_str!("../../docs/guide/src/keys.md")]
pub struct Keys;

#[doc = include_str!("../../docs/guide/src/existing.md")]
pub struct Existing;

#[doc = include_str!("../../docs/guide/src/queries.md")]
pub struct Queries;

#[doc = include_str!("../../docs/guide/src/relations.md")]
pub struct Relations;

#[doc = include_str!("../../docs/guide/src/contexts.md")]
pub struct Contexts;

#[doc = include_str!("../../docs/guide/src/conflicts.md")]
pub struct Conflicts;

#[doc = include_str!("../../docs/guide/src/errors.md")]
pub struct Errors;

#[doc = include_str!("../../docs/guide/src/transactions.md")]
pub struct Transactions;

#[doc = include_str!("../../docs/guide/src/writing.md")]
pub struct Writing;

#[doc = include_str!("../../docs/guide/src/operations.md")]
pub struct Operations;

#[doc = include_str!("../../docs/guide/src/wal-health.md")]
pub struct WalHealth;

#[doc = include_str!("../../docs/guide/src/observability.md")]
pub struct Observability;

#[doc = include_str!("../../docs/guide/src/import.md")]
pub struct Imports;

#[doc = include_str!("../../docs/guide/src/feeds.md")]
pub struct Feeds;
