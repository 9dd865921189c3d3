//! Bulk operations: any number of rows, a thousand in each transaction, in flat memory.
//!
//! ```
//! use anabranch::prelude::*;
//!
//! #[derive(Debug, Entity)]
//! struct Reading {
//!     #[entity(id)]
//!     id: i64,
//!     sensor: i64,
//!     value: f64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! # let db = Database::temporary().await?;
//! # db.create_tables::<Reading>().await?;
//! let readings = (0..10_000).map(|n| Reading { id: 0, sensor: n % 7, value: 0.5 });
//! let report = db.bulk_insert_optimized(readings).await?;
//! assert_eq!((report.written, report.transactions), (10_000, 10));
//! # Ok(()) }
//! ```
//!
//! | made by | takes | does |
//! |---|---|---|
//! | [`Database::bulk_insert`](crate::database::Database::bulk_insert) | entities | inserts them; [`skip_conflicts`](Bulk::skip_conflicts) passes over those that are there |
//! | [`bulk_upsert`](crate::database::Database::bulk_upsert) | entities | inserts them, or changes the rows that are there under a unique key |
//! | [`bulk_update`](crate::database::Database::bulk_update) | entities | changes the rows with their keys |
//! | [`bulk_delete`](crate::database::Database::bulk_delete) | keys | deletes the rows |
//!
//! All of them run in the same way. Rows come from an iterator or a stream, which may fail. The calling task makes the
//! values of one chunk of rows while a thread writes the one before: there are never more than three in memory. Each chunk
//! is a transaction and an entry of the writer's queue, so that saves pass between them; [`exclusive`](Bulk::exclusive)
//! keeps the writer. Contexts know nothing of it: pending changes stay pending, tracked entities stay as they were read,
//! and interceptors are not asked.
//!
//! Rows also come from files and streams of CSV and NDJSON: an [`Import`] reads them, and says what becomes of bad lines.
//!
//! Rows are written in their order. What fails is told with the row, and with what is committed ([`BulkError`]);
//! [`skip_rows`](Bulk::skip_rows) goes on from there.

#[cfg(feature = "axum")]
mod answer;
mod bad_line;
#[cfg(feature = "axum")]
mod body;
mod builder;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "csv")]
mod csv_fault;
mod cutter;
mod encode;
mod feed;
mod import;
mod lines;
mod ndjson;
mod operation;
mod report;
mod run;
mod shape;
mod source;

#[cfg(feature = "csv")]
pub use self::csv::Csv;
#[cfg(feature = "axum")]
pub use self::{answer::ImportAnswer, body::ImportBody};
pub use self::{
    bad_line::BadLine,
    builder::Bulk,
    import::{Format, Import},
    operation::{BulkOperation, Deleting, Inserting, Updating, Upserting},
    report::{BulkError, BulkProgress, BulkReport, PassedOver},
};
