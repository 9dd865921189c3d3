//! The one module with unsafe code: what SQLite offers that rusqlite and sqlx do not give safely.
//!
//! Invariants, cited by the blocks that rely on them:
//!
//! 1. A raw `sqlite3*` is used only while its connection is open, and by one thread at a time: whoever uses it
//!    has borrowed the connection. `sqlite3_interrupt` alone may come from anywhere while the connection is open.
//! 2. The context pointer of a callback points into an `Arc` that the connection's owner keeps, and drops only
//!    after SQLite closed the connection.
//! 3. No callback unwinds into C: each runs inside of [`guarded`].
//! 4. Texts that SQLite hands to a callback are NUL-terminated, and valid while the callback runs.
//! 5. Of a connection that sqlx drives too, the rusqlite view and the raw handle are used only while sqlx's
//!    worker is idle: at connect before the first query, and later after a `ping` that followed the last query.
//!    sqlx is pinned to `~0.9.0`, where the worker touches the handle only while it serves a command.
//! 6. The view of such a connection does not own the handle, and is dropped with all its statements before sqlx
//!    closes the handle.
#![allow(
    unsafe_code,
    reason = "the single FFI boundary; every block cites an invariant above"
)]

mod callbacks;
mod mixed;
mod plain;
mod status;

pub(in crate::engine) use self::{
    callbacks::Hooks,
    mixed::MixedConnection,
    plain::PlainConnection,
    status::{data_version, has_deferred_violations, has_moved, is_reading, strict_strings},
};

/// Runs a callback so that a panic in it does not cross into C; `otherwise` is what SQLite is told then.
fn guarded<T>(otherwise: T, callback: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)).unwrap_or(otherwise)
}
