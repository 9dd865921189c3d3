//! What a session must not do to the file, and does not.

use std::{
    fs,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use libsqlite3_sys::{SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_READONLY};
use rusqlite::{Connection, OpenFlags};

use crate::engine::ffi::session_vfs::{
    SessionVfs, alarms, guard, supports_sessions,
    tests::{File, PRAGMAS, checkpoint, code, one},
    vfs::Registered,
};

#[test]
fn checkpoints_of_a_session_move_nothing() {
    let file = File::new();
    let session = file.session();
    session.begin().unwrap();
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        assert_ne!(code(session.connection.query_row(&sql, [], |_| Ok(()))), 0);
    }
    session.run("ROLLBACK").unwrap();
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
        assert_eq!(checkpoint(&session.connection, mode), (1, -1, -1), "{mode}");
    }
    let (busy, log, moved) = file.checkpoint("PASSIVE");
    assert_eq!((busy, log), (0, moved), "the writer's moves all");
    assert!(log > 0);
    file.shift();
    assert_eq!(session.begin(), Ok(20_000));
    file.assert_whole();
    assert_eq!(session.alarms(), 0);
}

#[test]
fn a_session_cannot_change_what_the_file_is() {
    let file = File::new();
    let session = file.session();
    session.begin().unwrap();
    session.run("ROLLBACK; PRAGMA busy_timeout = 0").unwrap();
    let answer = session
        .connection
        .query_row("PRAGMA journal_mode = DELETE", [], |row| {
            row.get::<_, String>(0)
        });
    assert!(!matches!(answer.as_deref(), Ok("delete")), "{answer:?}");
    session.run("PRAGMA locking_mode = EXCLUSIVE").unwrap();
    let _refused = session.begin();
    let _none = session.run("ROLLBACK");
    file.shift();
    let another = file.session();
    assert_eq!(another.begin(), Ok(20_000), "nobody is shut out");
    assert_eq!(one::<String>(&file.writer, "PRAGMA journal_mode"), "wal");
    assert_eq!((session.alarms(), another.alarms()), (0, 0));
    file.assert_whole();
}

/// The authorizer refuses VACUUM, and the hook every COMMIT; here one of them is not there.
#[test]
fn without_a_guard_the_file_is_still_safe_and_the_alarm_goes() {
    let file = File::new();
    let before = alarms();
    // VACUUM commits without asking the hook.
    for (is_guarded, statement) in [
        (false, "UPDATE t SET v = 0; COMMIT"),
        (true, "COMMIT; VACUUM"),
    ] {
        // One that nobody else gets, for its alarms are counted.
        let vfs = Registered::new().unwrap();
        let (name, flags) = (vfs.name.to_str().unwrap(), OpenFlags::default());
        let session = Connection::open_with_flags_and_vfs(file.path(), flags, name).unwrap();
        session.execute_batch(PRAGMAS).unwrap();
        if is_guarded {
            guard(&session);
        }
        session.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        let refused = code(session.execute_batch(statement));
        assert_eq!(refused & 0xff, SQLITE_READONLY, "{statement}");
        assert!(session.execute_batch("ROLLBACK").is_ok() || session.is_autocommit());
        assert!(vfs.alarms.load(Ordering::Relaxed) > 0, "{statement}");
        assert_eq!(one::<i64>(&session, "SELECT sum(v) FROM t"), 20_000);
        file.shift();
    }
    assert!(alarms() >= before + 2);
    file.assert_whole();
}

#[test]
fn the_last_connection_leaves_the_log_if_it_is_a_session() {
    let file = File::new();
    let session = file.session();
    session.begin().unwrap();
    session.run("UPDATE t SET v = 1").unwrap();
    let path = file.path();
    let log = path.with_extension("db-wal");
    file.shift();
    let File { folder, writer } = file;
    writer.close().unwrap();
    let alarms = session.vfs;
    session.connection.close().unwrap();
    assert_eq!(alarms.alarms.load(Ordering::Relaxed), 0);
    assert!(fs::metadata(log).unwrap().len() > 0);
    let writer = Connection::open(path).unwrap();
    File { folder, writer }.assert_whole();
}

#[test]
fn a_session_makes_no_file() {
    let file = File::new();
    let vfs = SessionVfs::register().unwrap();
    let open = |path, flags| {
        Connection::open_with_flags_and_vfs(path, flags, vfs.name())
            .and_then(|connection| connection.execute_batch("SELECT * FROM sqlite_schema"))
    };
    let missing = file.folder.path().join("missing.db");
    assert_eq!(
        code(open(missing.clone(), OpenFlags::default())),
        SQLITE_CANTOPEN
    );
    assert!(fs::metadata(missing).is_err());
    assert_eq!(code(open(file.path(), OpenFlags::default())), 0);
}

#[test]
fn a_session_that_comes_first_makes_no_index_and_waits_for_a_writer() {
    let file = File::new();
    file.shift();
    let last = file.session();
    last.begin().unwrap();
    let path = file.path();
    let File { folder, writer } = file;
    writer.close().unwrap();
    last.connection.close().unwrap();
    // Now nobody has the file open, and the log is still there.
    let vfs = SessionVfs::register().unwrap();
    let session =
        Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name()).unwrap();
    let began = Instant::now();
    let sum = "SELECT sum(v) FROM t";
    let early = session.query_row(sum, [], |_| Ok(()));
    assert_eq!(code(early), SQLITE_PROTOCOL);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "SQLite itself would try for ten seconds"
    );
    assert!(supports_sessions(&session).is_err());
    let index = fs::metadata(path.with_extension("db-shm")).unwrap();
    assert!(index.len() < 100, "{} bytes", index.len());
    let writer = Connection::open(&path).unwrap();
    assert_eq!(one::<i64>(&writer, sum), 20_000);
    assert_eq!(one::<i64>(&session, sum), 20_000);
    assert_eq!(supports_sessions(&session), Ok(()));
    File { folder, writer }.assert_whole();
}
