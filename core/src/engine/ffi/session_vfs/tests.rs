//! Sessions on real files, beside real writers.

mod ablations;
mod begin;
mod refusals;
mod stress;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
};

use libsqlite3_sys::SQLITE_CONSTRAINT_COMMITHOOK;
use rusqlite::{Connection, OpenFlags, types::FromSql};
use tempfile::TempDir;

use crate::engine::ffi::session_vfs::{
    Refreshed, SessionVfs,
    ablation::{Rule, Without},
    cache_used, control, guard, refresh,
    shm::Shm,
    supports_sessions,
    vfs::Registered,
};

/// What a session's connection is told when it is made; the engine sets the same.
const PRAGMAS: &str =
    "PRAGMA cache_spill = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = ON;";

/// A file with one writer that stays open, and 200 rows of which the values add up to 20,000.
struct File {
    folder: TempDir,
    writer: Connection,
}

/// A connection of a session.
struct Session {
    connection: Connection,
    vfs: &'static Registered,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let writer = Connection::open(folder.path().join("file.db")).unwrap();
        let make =
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0;
            PRAGMA busy_timeout = 20000;
            CREATE TABLE t (id INTEGER PRIMARY KEY, v INT, s TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO t SELECT i, 100, hex(zeroblob(200)) FROM n;
            CREATE INDEX tv ON t (v);";
        writer.execute_batch(make).unwrap();
        Self { folder, writer }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file.db")
    }

    fn session(&self) -> Session {
        Session::open(&self.path(), &[])
    }

    fn session_without(&self, rules: &[Rule]) -> Session {
        Session::open(&self.path(), rules)
    }

    /// Moves a hundred from each row of an even key to its neighbour: the sum stays, every page changes.
    fn shift(&self) {
        let shift = "UPDATE t SET v = v + iif(id % 2, 100, -100)";
        self.writer.execute_batch(shift).unwrap();
    }

    /// What a checkpoint answers: whether it was busy, the frames of the log, those that are moved.
    fn checkpoint(&self, mode: &str) -> (i64, i64, i64) {
        checkpoint(&self.writer, mode)
    }

    fn assert_whole(&self) {
        let check = one::<String>(&self.writer, "PRAGMA integrity_check");
        assert_eq!(check, "ok");
        assert_eq!(one::<i64>(&self.writer, "SELECT sum(v) FROM t"), 20_000);
    }
}

impl Session {
    fn open(path: &Path, without: &[Rule]) -> Self {
        let vfs = if without.is_empty() {
            SessionVfs::register().unwrap().0
        } else {
            // Never one that others get.
            let vfs = Registered::new().unwrap();
            vfs.set_without(Without::rules(without));
            vfs
        };
        let name = vfs.name.to_str().unwrap();
        let connection =
            Connection::open_with_flags_and_vfs(path, OpenFlags::default(), name).unwrap();
        connection.execute_batch(PRAGMAS).unwrap();
        guard(&connection);
        Self { connection, vfs }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }

    /// Refreshes, begins, and takes the snapshot.
    fn begin(&self) -> rusqlite::Result<i64> {
        refresh(&self.connection);
        self.run("BEGIN")?;
        let begun = self
            .connection
            .query_row("SELECT sum(v) FROM t", [], |row| row.get(0));
        if begun.is_err() {
            self.run("ROLLBACK")?;
        }
        begun
    }

    fn sum(&self) -> rusqlite::Result<i64> {
        self.connection
            .query_row("SELECT sum(v) FROM t NOT INDEXED", [], |row| row.get(0))
    }

    fn alarms(&self) -> u64 {
        self.vfs.alarms.load(Ordering::Relaxed)
    }

    /// Looks into the session's wal-index.
    fn look<T>(&self, look: impl FnOnce(&Shm) -> T) -> T {
        control::look(&self.connection, |file| look(&file.shm)).unwrap()
    }
}

fn one<T: FromSql>(connection: &Connection, sql: &str) -> T {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn checkpoint(connection: &Connection, mode: &str) -> (i64, i64, i64) {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let answer = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    connection.query_row(&sql, [], answer).unwrap()
}

fn code(result: rusqlite::Result<impl Sized>) -> i32 {
    result
        .err()
        .and_then(|error| error.sqlite_error().map(|error| error.extended_code))
        .unwrap_or(0)
}

/// How long a test runs that has no end of its own: in its long form as long as `SECS` says.
fn seconds(short: u64) -> u64 {
    if std::env::var("ANABRANCH_LONG").as_deref() != Ok("1") {
        return short;
    }
    let wanted = std::env::var("SECS")
        .ok()
        .and_then(|secs| secs.parse().ok());
    wanted.unwrap_or(60)
}

/// Runs one of these tests in a process of its own, with a word to tell it so.
fn other_process(test: &str, word: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture"])
        .arg(format!("engine::ffi::session_vfs::tests::{test}"))
        .env("ANABRANCH_SESSION_TEST", word)
        .env("ANABRANCH_SESSION_FILE", path);
    command
}

/// What the process was told, if it is such a one.
fn told() -> Option<(String, PathBuf)> {
    let word = std::env::var("ANABRANCH_SESSION_TEST").ok()?;
    Some((word, std::env::var_os("ANABRANCH_SESSION_FILE")?.into()))
}

#[test]
fn two_sessions_and_a_writer_each_see_their_own() {
    let file = File::new();
    let (one_, two) = (file.session(), file.session());
    let insert = |session: &Session, v: i64| {
        let sql = format!("INSERT INTO t (v, s) VALUES ({v}, '') RETURNING id");
        one::<i64>(&session.connection, &sql)
    };
    assert_eq!(one_.begin(), Ok(20_000));
    assert_eq!(insert(&one_, 30), 201);
    assert_eq!(two.begin(), Ok(20_000));
    assert_eq!(insert(&two, 40), 201);
    let update = "UPDATE t SET v = 101 WHERE id = 1; INSERT INTO t (v, s) VALUES (7, '')";
    file.writer.execute_batch(update).unwrap();
    assert_eq!(one_.sum(), Ok(20_030));
    assert_eq!(two.sum(), Ok(20_040));
    assert_eq!(one::<i64>(&file.writer, "SELECT sum(v) FROM t"), 20_008);
    for session in [&one_, &two] {
        session.run("ROLLBACK").unwrap();
        assert_eq!(session.begin(), Ok(20_008));
        session.run("ROLLBACK").unwrap();
        assert_eq!(session.alarms(), 0);
    }
}

#[test]
fn a_commit_always_fails_and_leaves_nothing() {
    let file = File::new();
    let session = file.session();
    session.begin().unwrap();
    session.run("UPDATE t SET v = 0").unwrap();
    assert_eq!(code(session.run("COMMIT")), SQLITE_CONSTRAINT_COMMITHOOK);
    assert!(session.connection.is_autocommit());
    assert_eq!(
        code(session.run("DELETE FROM t")),
        SQLITE_CONSTRAINT_COMMITHOOK
    );
    assert_eq!(session.begin(), Ok(20_000));
    assert_eq!(session.alarms(), 0);
    file.assert_whole();
}

#[test]
fn a_private_transaction_does_what_any_other_can() {
    let file = File::new();
    let make = "CREATE VIRTUAL TABLE words USING fts5 (text); INSERT INTO words VALUES ('old oak');
        CREATE TABLE bare (k TEXT PRIMARY KEY, v) WITHOUT ROWID";
    file.writer.execute_batch(make).unwrap();
    let session = file.session();
    for _ in 0..3 {
        assert_eq!(session.begin(), Ok(20_000));
        session
            .run("SAVEPOINT a; DELETE FROM t WHERE id % 3 = 0; ROLLBACK TO a; RELEASE a")
            .unwrap();
        assert_eq!(session.sum(), Ok(20_000));
        file.shift();
        session
            .run("CREATE TABLE new (x); INSERT INTO new SELECT v FROM t")
            .unwrap();
        session
            .run("DELETE FROM t; INSERT INTO bare VALUES ('k', 1)")
            .unwrap();
        session.run("INSERT INTO words VALUES ('new oak')").unwrap();
        let found = "SELECT count(*) FROM words WHERE words MATCH 'oak'";
        assert_eq!(one::<i64>(&session.connection, found), 2);
        assert_eq!(
            one::<i64>(&session.connection, "SELECT sum(x) FROM new"),
            20_000
        );
        assert_eq!(one::<i64>(&session.connection, "SELECT count(*) FROM t"), 0);
        let check = one::<String>(&session.connection, "PRAGMA integrity_check");
        assert_eq!(check, "ok");
        assert!(cache_used(&session.connection) > 40_000);
        session.run("ROLLBACK").unwrap();
        assert_eq!(one::<i64>(&file.writer, found), 1);
        file.assert_whole();
    }
    assert_eq!(code(session.run("SELECT * FROM new")), 1);
    assert_eq!(session.alarms(), 0);
}

#[test]
fn a_foreign_program_never_sees_what_a_session_does() {
    let file = File::new();
    let session = file.session();
    session.begin().unwrap();
    session.run("UPDATE t SET v = 1").unwrap();
    let shell = |sql: &str| {
        let output = Command::new("sqlite3").arg(file.path()).arg(sql).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Ok(sum) = shell("SELECT sum(v) FROM t") else {
        // There is no shell on this machine; the stress has a second process too.
        return;
    };
    assert_eq!(sum, "20000");
    assert_eq!(shell("UPDATE t SET v = 200 WHERE id < 101; UPDATE t SET v = 0 WHERE id > 100; SELECT changes()").unwrap(), "100");
    assert_eq!(session.sum(), Ok(200));
    session.run("ROLLBACK").unwrap();
    assert_eq!(session.begin(), Ok(20_000));
    assert_eq!(
        one::<i64>(&session.connection, "SELECT v FROM t WHERE id = 1"),
        200
    );
    assert_eq!(shell("PRAGMA integrity_check").unwrap(), "ok");
}

#[test]
fn the_clock_of_a_session_is_what_sql_sees() {
    let file = File::new();
    let vfs = SessionVfs::register().unwrap();
    let connection =
        Connection::open_with_flags_and_vfs(file.path(), OpenFlags::default(), vfs.name()).unwrap();
    let now = || one::<String>(&connection, "SELECT datetime('now') || julianday('now')");
    vfs.clock().replay(Some(210_866_760_000_000));
    assert_eq!(now(), "1970-01-01 00:00:002440587.5");
    assert_eq!(vfs.clock().asked(), Some(210_866_760_000_000));
    vfs.clock().free();
    let real = "SELECT abs(julianday('now') - julianday('2026-01-01')) < 36500";
    assert!(one::<bool>(&connection, real));
    vfs.clock().record();
    let first = one::<f64>(&connection, "SELECT julianday('now')");
    assert_eq!(
        first.to_bits(),
        one::<f64>(&connection, "SELECT julianday('now')").to_bits()
    );
    let before = vfs.name().to_owned();
    connection.close().unwrap();
    vfs.release();
    let again: Vec<_> = (0..50).map(|_| SessionVfs::register().unwrap()).collect();
    assert!(again.iter().any(|vfs| vfs.name() == before));
    again.into_iter().for_each(SessionVfs::release);
}

#[test]
fn what_there_can_be_sessions_on_is_known() {
    let file = File::new();
    let session = file.session();
    assert_eq!(refresh(&session.connection), Refreshed::NotYetMapped);
    let before = supports_sessions(&session.connection).unwrap_err();
    assert!(before.to_string().contains("nothing was read"));
    session.begin().unwrap();
    assert_eq!(supports_sessions(&session.connection), Ok(()));
    assert_eq!(refresh(&session.connection), Refreshed::Reading);
    session.run("ROLLBACK").unwrap();
    assert_eq!(refresh(&session.connection), Refreshed::Ok);
    let plain = supports_sessions(&file.writer).unwrap_err();
    assert!(plain.to_string().contains("not opened as one of a session"));
    assert_eq!(refresh(&file.writer), Refreshed::NotYetMapped);
}
