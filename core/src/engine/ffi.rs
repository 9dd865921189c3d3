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
//! 7. A VFS of ours, its name and its clock are never freed: a connection may use them until it is closed, whenever
//!    that is.
//! 8. A file that SQLite hands to a method of ours was made by our `xOpen`, in memory of our `szOsFile` bytes. The
//!    real file lies behind ours in the same memory. Both are used by one thread at a time, from `xOpen` to `xClose`.
//! 9. What SQLite hands to a method of a VFS or a file besides (names, buffers, places for answers) is valid for that
//!    method while it runs, and is handed on unchanged to the same method of the real one.
//! 10. The region of a wal-index that a VFS mapped stays mapped until `xShmUnmap` of the same file, and is aligned to
//!     a page. Other processes write to it, so it is read and written as atomics only.
//! 11. The private region of a session's file lives until `xClose`. SQLite keeps its address, and uses it on the thread
//!     that uses the file; we reach it through shared references to atomics only.
//! 12. A file control with a number of ours is sent by the functions of `session_vfs` alone, with a pointer to the
//!     type that belongs to the number.
//! 13. A `WriterSlot` is leaked when it is made: whatever SQLite still knows of a VFS stays valid. Nothing of it is
//!     written but its atomics and locks, and the link in its `sqlite3_vfs` that SQLite alone uses.
//! 14. The real VFS, which was SQLite's default, stays registered: SQLite has it until the process ends, and an
//!     application that registers one as the default must keep it too. Its methods get its own pointer.
//! 15. `writer_vfs` sets a file's methods only after it wrote its `WriterFile`, with the real file behind it, in the
//!     room that `szOsFile` asks for. SQLite uses a file from one thread at a time.
//! 16. Region 0 of the shared memory is mapped from `xShmMap` until `xShmUnmap` or `xClose`, and longer than a header.
//!     What of it is read is written only by whoever holds the lock WRITE, and read here only by its holder.
#![allow(
    unsafe_code,
    reason = "the single FFI boundary; every block cites an invariant above"
)]

mod callbacks;
mod mixed;
mod plain;
pub(in crate::engine) mod session_vfs;
mod status;
mod writer_vfs;

pub(in crate::engine) use self::{
    callbacks::{Hooks, PageLimit},
    mixed::MixedConnection,
    plain::PlainConnection,
    status::{
        data_version, has_deferred_violations, has_moved, is_reading, randomness,
        set_last_insert_rowid, strict_strings,
    },
    writer_vfs::WriterVfs,
};

/// Runs a callback so that a panic in it does not cross into C; `otherwise` is what SQLite is told then.
fn guarded<T>(otherwise: T, callback: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)).unwrap_or(otherwise)
}
