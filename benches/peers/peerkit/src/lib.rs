//! What all benchmark peers share.
//!
//! A peer implements [`SyncPeer`] (threads) or [`AsyncPeer`] (tokio) and its
//! `main` calls [`run_sync`] or [`run_async`]. Everything that must be the same
//! for all peers (table definitions, number of tasks, order of operations,
//! timing, verification) lives here, everything that shows the library's own
//! API lives in the peer.

#[cfg(feature = "tokio")]
mod asynchronous;
mod config;
mod measure;
#[cfg(feature = "tokio")]
mod pause;
mod plan;
mod report;
mod rows;
mod synchronous;

#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncPeer, run_async};
pub use config::{BUSY_TIMEOUT, Config, POOL, Synchronous};
pub use measure::note;
#[cfg(feature = "tokio")]
pub use pause::pause;
pub use plan::{Plan, WORKLOADS};
pub use rows::{INSERT_ORDER, NewOrder, NewWide, ORDERS_DDL, Rng, WIDE_COLUMNS, WIDE_DDL};
pub use synchronous::{SyncPeer, run_sync, sleep};

/// The boxed error all peers report.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Res<T> = Result<T, Error>;

/// Entity types say their id (`key`) and quantity, so that the runner can check that
/// the library read the right rows.
pub trait Entity: Send + 'static {
    fn key(&self) -> i64;
    fn quantity(&self) -> i64;
}
