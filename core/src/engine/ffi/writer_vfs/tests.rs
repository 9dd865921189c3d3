//! The VFS under plain connections.

use std::{io::Write as _, path::Path, sync::Arc};

use rusqlite::{Connection, OpenFlags};

use crate::engine::ffi::{WriterVfs, has_moved};

fn open(path: &Path, vfs: &WriterVfs) -> Connection {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs.name()).unwrap()
}

fn made(folder: &Path, vfs: &WriterVfs) -> Connection {
    let connection = open(&folder.join("file.db"), vfs);
    let make = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a)";
    connection.execute_batch(make).unwrap();
    connection
}

fn insert(connection: &Connection) {
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
}

fn checkpoint(connection: &Connection, mode: &str) -> (i64, i64) {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection
        .query_row(&sql, [], |row| {
            assert_eq!(row.get::<_, i64>(0)?, 0, "{mode} was busy");
            Ok((row.get(1)?, row.get(2)?))
        })
        .unwrap()
}

#[test]
fn commits_through_the_vfs_are_not_foreign_and_others_are_noticed_once() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let (one, two) = (
        made(folder.path(), &vfs),
        open(&folder.path().join("file.db"), &vfs),
    );
    insert(&two);
    let start = vfs.head().foreign();
    assert!(start >= 1, "the first look counts");
    for _ in 0..5 {
        insert(&one);
        insert(&two);
    }
    assert_eq!(vfs.head().foreign(), start);
    let plain = Connection::open(folder.path().join("file.db")).unwrap();
    for round in 1..4 {
        insert(&plain);
        insert(&plain);
        assert_eq!(
            vfs.head().foreign(),
            start + round - 1,
            "nobody has looked yet"
        );
        insert(&one);
        assert_eq!(vfs.head().foreign(), start + round);
        insert(&two);
        insert(&one);
        assert_eq!(vfs.head().foreign(), start + round, "once");
    }
}

#[test]
fn a_foreign_commit_is_known_once_the_write_lock_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let ours = made(folder.path(), &vfs);
    let plain = Connection::open(folder.path().join("file.db")).unwrap();
    insert(&ours);
    let start = vfs.head().foreign();
    insert(&plain);
    ours.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(vfs.head().foreign(), start + 1);
    ours.execute_batch("ROLLBACK; BEGIN IMMEDIATE; ROLLBACK")
        .unwrap();
    assert_eq!(vfs.head().foreign(), start + 1);
    // Refused for its snapshot: SQLite got the lock and gave it up again.
    ours.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    insert(&plain);
    assert!(ours.execute("INSERT INTO t VALUES (2)", []).is_err());
    assert_eq!(vfs.head().foreign(), start + 2);
    ours.execute_batch("ROLLBACK").unwrap();
    insert(&ours);
    assert_eq!(vfs.head().foreign(), start + 2);
}

#[test]
fn checkpoints_and_restarts_of_ours_are_not_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let (writer, other) = (
        made(folder.path(), &vfs),
        open(&folder.path().join("file.db"), &vfs),
    );
    insert(&writer);
    let start = vfs.head().foreign();
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
        insert(&writer);
        let (frames, moved) = checkpoint(&other, mode);
        assert_eq!(frames, moved, "{mode}");
        // After PASSIVE this one restarts the log.
        insert(&writer);
        insert(&other);
        assert_eq!(vfs.head().foreign(), start, "{mode}");
    }
    let plain = Connection::open(folder.path().join("file.db")).unwrap();
    checkpoint(&plain, "RESTART");
    insert(&writer);
    assert_eq!(
        vfs.head().foreign(),
        start,
        "the next commit restarts the log"
    );
    checkpoint(&plain, "TRUNCATE");
    insert(&writer);
    assert_eq!(
        vfs.head().foreign(),
        start + 1,
        "a restart of others cannot be told from a commit"
    );
}

/// It had written the second copy of the header and not the first; recovery finds its commit in the log.
#[test]
fn a_commit_of_a_process_that_died_before_it_was_published_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let ours = made(folder.path(), &vfs);
    insert(&ours);
    let start = vfs.head().foreign();
    let index = folder.path().join("file.db-shm");
    let first = std::fs::read(&index).unwrap()[..48].to_vec();
    let plain = Connection::open(folder.path().join("file.db")).unwrap();
    insert(&plain);
    // Nobody but this process has the file open, and within it SQLite needs no lock of the system.
    let mut index = std::fs::OpenOptions::new()
        .write(true)
        .open(&index)
        .unwrap();
    index.write_all(&first).unwrap();
    insert(&ours);
    let count = "SELECT count(*) FROM t";
    let count: i64 = ours.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 3, "recovered");
    assert_eq!(vfs.head().foreign(), start + 1);
}

/// The lock is taken before the index is known: there is none yet.
#[test]
fn a_log_that_is_recovered_by_ours_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    let ours = made(folder.path(), &vfs);
    insert(&ours);
    for name in ["file.db", "file.db-wal"] {
        std::fs::copy(folder.path().join(name), crashed.path().join(name)).unwrap();
    }
    let other = WriterVfs::register().unwrap();
    let found = open(&crashed.path().join("file.db"), &other);
    let count = |connection: &Connection| {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(count(&found), Ok(1));
    assert_eq!(other.head().foreign(), 1);
    insert(&found);
    assert_eq!(other.head().foreign(), 1);
}

#[test]
fn statements_are_told_the_time_of_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let connection = made(folder.path(), &vfs);
    let now = || {
        connection
            .query_row("SELECT julianday('now'), unixepoch('now')", [], |row| {
                Ok((row.get::<_, f64>(0)?, row.get::<_, i64>(1)?))
            })
            .unwrap()
    };
    let real = now().1;
    assert!(real > 1_700_000_000, "the real time: {real}");
    // Noon of the first of January 2000.
    vfs.clock().replay(Some(211_813_488_000_000));
    assert_eq!(now(), (2_451_545.0, 946_728_000));
    assert_eq!(vfs.clock().asked(), Some(211_813_488_000_000));
    vfs.clock().record();
    let first = now();
    assert_eq!(now(), first, "it stands");
    vfs.clock().free();
    assert!(now().1 >= first.1);
}

#[test]
fn file_controls_reach_the_real_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.db");
    let vfs = WriterVfs::register().unwrap();
    let connection = made(folder.path(), &vfs);
    assert!(!has_moved(&connection));
    std::fs::rename(&path, folder.path().join("aside")).unwrap();
    assert!(has_moved(&connection));
    std::fs::rename(folder.path().join("aside"), &path).unwrap();
    assert!(!has_moved(&connection));
    let mapped = "PRAGMA mmap_size = 1048576";
    let size: i64 = connection.query_row(mapped, [], |row| row.get(0)).unwrap();
    assert_eq!(size, 1_048_576);
    insert(&connection);
    let check = "PRAGMA integrity_check";
    let check: String = connection.query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn a_vfs_is_used_again_only_after_its_last_file_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = WriterVfs::register().unwrap();
    let slot = vfs.0;
    let connection = made(folder.path(), &vfs);
    drop(vfs);
    let is_again = |vfs: &Arc<WriterVfs>| std::ptr::eq(vfs.0, slot);
    let some = || (0..20).map(|_| WriterVfs::register().unwrap());
    let others: Vec<_> = some().collect();
    assert!(!others.iter().any(is_again), "a file is still open");
    insert(&connection);
    connection.close().unwrap();
    // Another test may have it for a while.
    for _ in 0..100_000 {
        let others: Vec<_> = some().collect();
        if others.iter().any(is_again) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("nobody got it again");
}
