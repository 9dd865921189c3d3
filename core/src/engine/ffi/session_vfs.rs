//! The VFS of sessions: a connection of stock SQLite runs a whole write transaction privately, on one snapshot of the
//! log, and then throws it away.
//!
//! # How it works
//!
//! SQLite keeps the pages that a transaction changes in the connection's cache until COMMIT, or until the cache spills.
//! So a transaction that never spills and ends with ROLLBACK writes nothing. Two things alone keep a second connection
//! from running one at the same time: the write lock, and the check that nobody has committed since the snapshot was
//! taken (`sqlite3WalBeginWriteTransaction`). This VFS stands between SQLite and its own one. It grants the write lock
//! without taking it, and gives SQLite a private copy of region 0 of the wal-index, whose header stays that of the
//! snapshot. Read locks and read marks are real: to everybody else a session is a reader.
//!
//! ```text
//!   refresh ──▶ BEGIN, first read ─────────────────────────────▶ writes ───────────▶ ROLLBACK
//!   headers     walIndexTryHdr: reads the private header         write lock: faked   write lock: nothing
//!   taken over  a mark is set: published before its unlock       header: the same    read lock: unlocked
//!               read lock: taken, *then* all is taken over
//!               SQLite compares: the same, or it tries again
//! ```
//!
//! Between the lock on a read slot and its unlock the private region does not change, whatever others commit. With
//! the lock held nobody overwrites a frame of the snapshot, nor moves a later one into the file.
//!
//! # The rules
//!
//! Granting the write lock alone would destroy what others commit: a rollback copies the present header, and clears
//! from the *shared* index what lies past it (`sqlite3WalUndo`, `walCleanupHash`), under the feet of a writer. All of
//! these are needed; code that keeps one cites it. `tests/ablations.rs` takes B, C, D and E out, and sees what breaks.
//!
//! | rule | SQLite | is answered | why |
//! |---|---|---|---|
//! | A | maps region 0, keeps the address | a private copy, at one address as long as the file is open; a region 0 that is not there is BUSY, and none is made longer | the header must not move under a transaction; a session that initialised the index would do it for all |
//! | B | looks at the header, locks a read slot, looks again | before a BEGIN the headers are taken over; after the lock all is: the marks first, then the header, and if both are what SQLite saw, the frames' index. At no other time. At the fifth miss within one BEGIN: PROTOCOL | the second look must see the present, and moved frames not newer than the header; SQLite's own tries sleep, for ten seconds in all |
//! | C | sets a read mark under an exclusive lock on its slot | before the unlock the mark is written to the real region | who moves the log looks for marks there |
//! | D | locks for writing | with a read lock: granted, not taken. Without: the headers are taken over, then BUSY | without one it means to recover the index, or waits for its turn in a build with blocking locks |
//! | E | locks several slots at once | READONLY | it means to begin the log anew, or to recover; after BUSY `walRestartLog` lets go of the read lock |
//! | D, E | unlocks | passed on only if it was granted | unix clears all slots of the call, also of other connections |
//! | F | locks for checkpoint or recovery; one read slot, exclusively | BUSY; passed on, outside of private transactions | a session moves nothing, and sets a mark only at its begin |
//! | G | locks the database above SHARED | BUSY | hot journals, `journal_mode`, `locking_mode`, the checkpoint of the last connection |
//! | H | writes, truncates | READONLY, and [`alarms`] counts | cannot happen while the others hold |
//! | H | deletes, creates, removes the wal-index, prepares for writing | refused, left out, or not passed on | |
//! | I | commits, spills, checkpoints when it closes | [`guard`]; the engine adds `cache_spill = OFF` (in autocommit), an authorizer, a cap on pages, and no shared cache, of which a VFS is not told | a COMMIT that wrote something always fails |
//! | J | asks for a barrier | passed on | |
//! | K | | nothing here opens the database or the `-shm` but SQLite | closing a descriptor drops the locks of the process |
//!
//! A session cannot make or mend a wal-index: the writer of the process opens first, reads, and stays open. If BEGIN
//! answers BUSY, BUSY_RECOVERY or PROTOCOL, the writer reads once, and the session takes its snapshot while it holds
//! the writer's slot, where nobody of this process commits. The same goes for whatever else a connection reads outside
//! of a transaction, such as the schema for its first pragma: that is a snapshot like any other, and other processes
//! may commit too fast for it again and again.
//!
//! Regions 1 and up are the real ones: of frames up to the snapshot's last they do not change under the read lock, and
//! nothing of a session writes to them. The index of region 0 is taken over once, when SQLite's second look will find what
//! its first one found: who reads from the shared region looks at it no earlier, the copy takes longer than all else
//! at a BEGIN, and each commit meanwhile would be a miss. Who reads from slot 0 looks at no frame. The layout is that of version 3007000 of the wal-index,
//! the same from SQLite 3.45 to 3.54 ([`supports_sessions`]).
//!
//! All that a connection does runs on one thread at a time, and so do its file's methods. A [`SessionVfs`] serves one
//! connection, because SQLite asks a VFS, not a file, for the time: each has a [`Clock`].
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
