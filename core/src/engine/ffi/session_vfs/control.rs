//! What we ask a session's file through SQLite: file controls with numbers of ours.

use std::{
    ffi::{c_int, c_void},
    ptr::null_mut,
};

use libsqlite3_sys as sqlite;
use rusqlite::Connection;

use crate::engine::ffi::{
    callbacks::pages_in_memory,
    session_vfs::{file::SessionFile, shm::Refreshed},
};

/// Takes the present headers over; answers into an `Option<Refreshed>`.
const REFRESH: c_int = 0x616e_6200;
/// Asks for the version of the wal-index; answers into an `Option<Option<u32>>`.
const VERSION: c_int = 0x616e_6201;
/// Tests only: asks for the file itself; answers into an `Option<*const SessionFile>`.
#[cfg(test)]
const FILE: c_int = 0x616e_6202;

/// Whether the number is one of ours.
pub(super) fn is_ours(op: c_int) -> bool {
    match op {
        REFRESH | VERSION => true,
        #[cfg(test)]
        FILE => true,
        _ => false,
    }
}

/// Answers a control that is one of ours.
///
/// # Safety
///
/// `answer` points to the type that belongs to `op` (invariant 12).
pub(super) unsafe fn answer(file: &mut SessionFile, op: c_int, answer: *mut c_void) -> c_int {
    match op {
        REFRESH => {
            let refreshed = file.shm.refresh();
            // SAFETY: as this function's contract says.
            unsafe { *answer.cast::<Option<Refreshed>>() = Some(refreshed) };
        }
        VERSION => {
            let version = file.shm.version();
            // SAFETY: as this function's contract says.
            unsafe { *answer.cast::<Option<Option<u32>>>() = Some(version) };
        }
        #[cfg(test)]
        FILE => {
            // SAFETY: as this function's contract says.
            unsafe { *answer.cast::<Option<*const SessionFile>>() = Some(file) };
        }
        _ => return sqlite::SQLITE_NOTFOUND,
    }
    sqlite::SQLITE_OK
}

/// Asks for a refresh; `None` if the connection's file is not one of ours.
pub(super) fn refresh(connection: &Connection) -> Option<Refreshed> {
    // SAFETY: invariant 12.
    unsafe { ask(connection, REFRESH) }
}

/// The version of the wal-index, if there is one; `None` if the connection's file is not one of ours.
pub(super) fn version(connection: &Connection) -> Option<Option<u32>> {
    // SAFETY: invariant 12.
    unsafe { ask(connection, VERSION) }
}

/// Looks into the file of a connection.
#[cfg(test)]
pub(super) fn look<T>(connection: &Connection, look: impl FnOnce(&SessionFile) -> T) -> Option<T> {
    // SAFETY: invariant 12.
    let file = unsafe { ask::<*const SessionFile>(connection, FILE) }?;
    // SAFETY: invariant 8: the file is open for as long as the connection, which is borrowed; no method runs meanwhile.
    Some(look(unsafe { &*file }))
}

/// # Safety
///
/// `T` is what belongs to `op` (invariant 12).
unsafe fn ask<T>(connection: &Connection, op: c_int) -> Option<T> {
    let mut answer = None::<T>;
    // SAFETY: invariants 1 and 12; who does not know the number leaves the answer as it is.
    unsafe {
        let answer = (&raw mut answer).cast();
        sqlite::sqlite3_file_control(connection.handle(), c"main".as_ptr(), op, answer);
    }
    answer
}

/// Stops whatever would commit on the connection, and the checkpoint when it closes.
pub(super) fn guard(connection: &Connection) {
    // SAFETY: invariant 1. The hook has no context.
    unsafe {
        sqlite::sqlite3_commit_hook(connection.handle(), Some(refuse_commit), null_mut());
    }
    // SAFETY: invariant 1; this option takes an int and a pointer that may be null.
    unsafe {
        sqlite::sqlite3_db_config(
            connection.handle(),
            sqlite::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
            1 as c_int,
            null_mut::<c_int>(),
        );
    }
}

/// Rule I: every COMMIT becomes a ROLLBACK.
unsafe extern "C" fn refuse_commit(_context: *mut c_void) -> c_int {
    1
}

/// How many bytes of pages the connection keeps.
pub(super) fn cache_used(connection: &Connection) -> u64 {
    // SAFETY: invariant 1.
    unsafe { pages_in_memory(connection.handle()) }
}
