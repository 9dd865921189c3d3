//! Questions that rusqlite does not ask SQLite.

use std::{ffi::c_int, ptr::null_mut};

use libsqlite3_sys as sqlite;
use rusqlite::Connection;

/// Whether the open transaction has deferred foreign keys that point at nothing. RELEASE does not look at them;
/// COMMIT of the whole group would, and fail.
pub(in crate::engine) fn has_deferred_violations(connection: &Connection) -> bool {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: invariant 1: the borrowed connection is open and not in use elsewhere.
    let result = unsafe {
        sqlite::sqlite3_db_status(
            connection.handle(),
            sqlite::SQLITE_DBSTATUS_DEFERRED_FKS,
            &raw mut current,
            &raw mut highest,
            0,
        )
    };
    result == sqlite::SQLITE_OK && current != 0
}

/// A number that changes whenever this connection's view of the file moves: with each commit of its own, and
/// when a new transaction finds that somebody else committed.
pub(in crate::engine) fn data_version(connection: &Connection) -> u32 {
    let mut version: u32 = 0;
    // SAFETY: invariant 1; SQLITE_FCNTL_DATA_VERSION writes one `unsigned int`.
    unsafe {
        sqlite::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            sqlite::SQLITE_FCNTL_DATA_VERSION,
            (&raw mut version).cast(),
        );
    }
    version
}

/// Whether the file that the connection has open is no longer the one at its path: removed, renamed, or replaced.
/// A `stat` of the path; where SQLite cannot tell (on Windows, where an open file stays) it is not.
pub(in crate::engine) fn has_moved(connection: &Connection) -> bool {
    let mut moved: c_int = 0;
    // SAFETY: invariant 1; SQLITE_FCNTL_HAS_MOVED writes one `int`.
    unsafe {
        sqlite::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            sqlite::SQLITE_FCNTL_HAS_MOVED,
            (&raw mut moved).cast(),
        );
    }
    moved != 0
}

/// Whether the connection still holds a snapshot: a statement that was not reset, or an open transaction.
pub(in crate::engine) fn is_reading(connection: &Connection) -> bool {
    // SAFETY: invariant 1.
    let state = unsafe { sqlite::sqlite3_txn_state(connection.handle(), c"main".as_ptr()) };
    state != sqlite::SQLITE_TXN_NONE
}

/// Random bytes, from SQLite's generator.
pub(in crate::engine) fn randomness(length: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; length];
    if let Ok(length) = c_int::try_from(length) {
        // SAFETY: SQLite writes `length` bytes, which there are; no connection is concerned.
        unsafe { sqlite::sqlite3_randomness(length, bytes.as_mut_ptr().cast()) };
    }
    bytes
}

/// What `last_insert_rowid()` says until the next insert.
pub(in crate::engine) fn set_last_insert_rowid(connection: &Connection, rowid: i64) {
    // SAFETY: invariant 1.
    unsafe { sqlite::sqlite3_set_last_insert_rowid(connection.handle(), rowid) };
}

/// Makes `"nosuch"` an error, where SQLite would take a name that it does not know for a text.
pub(in crate::engine) fn strict_strings(connection: &Connection) -> bool {
    [
        sqlite::SQLITE_DBCONFIG_DQS_DML,
        sqlite::SQLITE_DBCONFIG_DQS_DDL,
    ]
    .into_iter()
    .all(|option| {
        // SAFETY: invariant 1; these options take an int and a pointer that may be null.
        let result = unsafe {
            sqlite::sqlite3_db_config(connection.handle(), option, 0 as c_int, null_mut::<c_int>())
        };
        result == sqlite::SQLITE_OK
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::engine::ffi::status::{data_version, has_deferred_violations, has_moved};

    #[test]
    fn deferred_violations_are_known_before_commit() {
        let connection = Connection::open_in_memory().unwrap();
        let begin = "PRAGMA foreign_keys = ON;
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
            BEGIN; SAVEPOINT one; INSERT INTO child VALUES (7); RELEASE one";
        connection.execute_batch(begin).unwrap();
        assert!(has_deferred_violations(&connection));
        let mend = "INSERT INTO parent VALUES (7)";
        connection.execute_batch(mend).unwrap();
        assert!(!has_deferred_violations(&connection));
    }

    #[test]
    fn a_file_that_is_gone_from_its_path_or_replaced_has_moved() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("file.db"), folder.path().join("aside"));
        let connection = Connection::open(&path).unwrap();
        let make = "PRAGMA journal_mode = WAL; CREATE TABLE t (a)";
        connection.execute_batch(make).unwrap();
        assert!(!has_moved(&connection));
        std::fs::rename(&path, &aside).unwrap();
        assert!(has_moved(&connection), "renamed");
        std::fs::write(&path, "another file").unwrap();
        assert!(has_moved(&connection), "replaced");
        std::fs::rename(&aside, &path).unwrap();
        assert!(!has_moved(&connection), "it is back");
        std::fs::remove_file(&path).unwrap();
        assert!(has_moved(&connection), "removed");
    }

    #[test]
    fn the_data_version_moves_with_every_commit_that_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("file.db")).unwrap();
        let (ours, other) = (open(), open());
        let make = "PRAGMA journal_mode = WAL; CREATE TABLE t (a)";
        ours.execute_batch(make).unwrap();
        let before = data_version(&ours);
        ours.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        let own = data_version(&ours);
        assert_ne!(own, before);
        other.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(data_version(&ours), own, "it was not looked at yet");
        ours.execute_batch("SELECT * FROM t").unwrap();
        assert_ne!(data_version(&ours), own);
    }
}
