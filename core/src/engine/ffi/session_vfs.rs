//! A VFS through which a connection of stock SQLite runs a whole write transaction privately, on one snapshot of the
//! log, and then throws it away.
#![cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "sessions of the engine are built on it next"
    )
)]

#[cfg(test)]
mod ablation;
mod control;
mod file;
mod region;
mod shm;
mod vfs;

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use rusqlite::Connection;

pub(in crate::engine) use self::shm::Refreshed;
use crate::engine::{ffi::session_vfs::vfs::Registered, hooks::Clock};

/// Those whose connections are closed.
static FREE: Mutex<Vec<&'static Registered>> = Mutex::new(Vec::new());

/// The VFS of one session's connection, with a clock of its own.
///
/// Merely dropped it is never used again, which leaks some hundred bytes: a connection that sqlx closes at some later
/// time may still use it. [`SessionVfs::release`] says that none does.
#[derive(Debug)]
pub(in crate::engine) struct SessionVfs(&'static Registered);

/// Why no VFS for sessions could be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Unavailable(&'static str);

/// Why there can be no sessions on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Unsupported(String);

impl SessionVfs {
    /// Takes one that was released, or registers a new one.
    ///
    /// # Errors
    ///
    /// If the platform or the process has another VFS than that whose locks are known.
    pub(in crate::engine) fn register() -> Result<Self, Unavailable> {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(Registered::new, Ok).map(Self)
    }

    /// The name to open the connection with.
    pub(in crate::engine) fn name(&self) -> &str {
        // It was made of a text.
        self.0.name.to_str().unwrap_or_default()
    }

    /// The clock that the connection's statements look at.
    pub(in crate::engine) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Gives it to the next that registers. The connection must be known to be closed; else two would have one clock.
    pub(in crate::engine) fn release(self) {
        self.0.clock.free();
        FREE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.0);
    }
}

/// Takes the present headers over, so that the next transaction sees every commit that was answered before (rule B).
/// To be called before each BEGIN, while no transaction is open.
pub(in crate::engine) fn refresh(connection: &Connection) -> Refreshed {
    control::refresh(connection).unwrap_or(Refreshed::NotYetMapped)
}

/// Whether there can be sessions on this connection's file; to be asked after it has read once.
///
/// # Errors
///
/// If the connection does not use this VFS, or the file's wal-index is not one that is known.
pub(in crate::engine) fn supports_sessions(connection: &Connection) -> Result<(), Unsupported> {
    let version = control::version(connection)
        .ok_or_else(|| Unsupported("the connection was not opened as one of a session".into()))?;
    shm::unsupported(version).map_or(Ok(()), |reason| Err(Unsupported(reason)))
}

/// How many bytes of pages the connection keeps: those that its transaction has changed are never less.
pub(in crate::engine) fn cache_used(connection: &Connection) -> u64 {
    control::cache_used(connection)
}

/// How often in this process a session was to write to the file or its log, and was refused (rule H). It stays 0.
pub(in crate::engine) fn alarms() -> u64 {
    vfs::alarms()
}

/// What rule I asks of the connection itself, where no pragma can say it: no COMMIT, no checkpoint at its end.
pub(in crate::engine) fn guard(connection: &Connection) {
    control::guard(connection);
}

impl Unavailable {
    fn new(reason: &'static str) -> Self {
        Self(reason)
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
