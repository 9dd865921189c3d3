//! What docs/sqlite.md says of SQLite, shown on SQLite alone.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anabranch_tests::{outsider, random::Random};
use rusqlite::{Connection, ErrorCode};

/// A file in WAL mode with one table, and two connections to it.
fn two(folder: &Path) -> (Connection, Connection) {
    let path = folder.join("facts.db");
    let first = outsider(&path);
    first
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT) STRICT",
        )
        .unwrap();
    (first, outsider(&path))
}

fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> T {
    connection
        .pragma_query_value(None, name, |row| row.get(0))
        .unwrap()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

const INSERT: &str = "INSERT INTO note (text) VALUES ('text')";
const COUNT: &str = "SELECT count(*) FROM note";

/// Whether it was busy, the frames in the log, and how many of them were moved.
fn checkpoint(connection: &Connection) -> (i64, i64, i64) {
    connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap()
}

#[test]
fn a_reader_keeps_its_snapshot_and_stops_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = two(folder.path());
    reader.execute_batch("BEGIN").unwrap();
    writer.execute_batch(INSERT).unwrap();
    assert_eq!(number(&reader, COUNT), 1, "BEGIN alone takes no snapshot");
    writer.execute_batch(INSERT).unwrap();
    assert_eq!(number(&reader, COUNT), 1);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(number(&reader, COUNT), 2);
}

#[test]
fn a_stale_snapshot_is_told_without_the_busy_handler() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = two(folder.path());
    reader
        .busy_handler(Some(|_| panic!("it was asked")))
        .unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(number(&reader, COUNT), 0);
    writer.execute_batch(INSERT).unwrap();
    let error = reader.execute_batch(INSERT).unwrap_err();
    let code = error.sqlite_error().unwrap().extended_code;
    assert_eq!(code, rusqlite::ffi::SQLITE_BUSY_SNAPSHOT);
}

#[test]
fn pragmas_belong_to_a_connection_and_wal_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = two(folder.path());
    let pragmas = [
        ("wal_autocheckpoint", 7),
        ("journal_size_limit", 65_536),
        ("foreign_keys", 0),
        ("synchronous", 0),
        ("cache_size", 77),
        ("temp_store", 2),
    ];
    let before = pragmas.map(|(name, _)| pragma::<i64>(&second, name));
    for (name, value) in pragmas {
        first.pragma_update(None, name, value).unwrap();
        assert_eq!(pragma::<i64>(&first, name), value);
        assert_ne!(pragma::<i64>(&second, name), value, "{name}");
    }
    let after = pragmas.map(|(name, _)| pragma::<i64>(&second, name));
    assert_eq!(before, after);
    assert_eq!(pragma::<String>(&second, "journal_mode"), "wal");
}

#[test]
fn page_size_and_auto_vacuum_are_fixed_by_the_first_page() {
    let early = tempfile::tempdir().unwrap();
    let connection = outsider(&early.path().join("early.db"));
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA auto_vacuum = FULL; PRAGMA journal_mode = WAL",
        )
        .unwrap();
    assert_eq!(pragma::<i64>(&connection, "page_size"), 8192);
    assert_eq!(pragma::<i64>(&connection, "auto_vacuum"), 1);

    let late = tempfile::tempdir().unwrap();
    let connection = outsider(&late.path().join("late.db"));
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA page_size = 8192; PRAGMA auto_vacuum = FULL; CREATE TABLE t (a)")
        .unwrap();
    assert_eq!(pragma::<i64>(&connection, "page_size"), 4096);
    assert_eq!(pragma::<i64>(&connection, "auto_vacuum"), 0);
}

#[test]
fn a_passive_checkpoint_that_a_reader_stops_is_not_busy_and_the_log_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = two(folder.path());
    writer.execute_batch(INSERT).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(number(&reader, COUNT), 1);
    for _ in 0..10 {
        writer.execute_batch(INSERT).unwrap();
    }
    let (busy, frames, moved) = checkpoint(&writer);
    assert_eq!(busy, 0);
    assert!(moved < frames, "{moved} of {frames}");
    writer.execute_batch(INSERT).unwrap();
    assert_eq!(checkpoint(&writer).1, frames + 1, "the log went on");

    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(checkpoint(&writer), (0, frames + 1, frames + 1));
    writer.execute_batch(INSERT).unwrap();
    assert_eq!(checkpoint(&writer), (0, 1, 1), "the log began anew");
}

#[test]
fn release_does_not_look_at_deferred_references_and_commit_does() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE child (parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
             BEGIN; SAVEPOINT one; INSERT INTO child VALUES (7); RELEASE one",
        )
        .unwrap();
    let error = connection.execute_batch("COMMIT").unwrap_err();
    assert_eq!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation)
    );
    assert!(!connection.is_autocommit(), "it is still open");
}

#[test]
fn conflict_clauses_and_triggers_may_end_the_transaction() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (a UNIQUE ON CONFLICT ROLLBACK);
             CREATE TRIGGER no BEFORE INSERT ON t WHEN new.a < 0 BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
        )
        .unwrap();
    for failing in ["INSERT INTO t VALUES (1), (1)", "INSERT INTO t VALUES (-1)"] {
        connection.execute_batch("BEGIN; SAVEPOINT s").unwrap();
        connection.execute_batch(failing).unwrap_err();
        assert!(connection.is_autocommit(), "{failing}");
    }
}

#[test]
fn an_interrupt_while_nothing_runs_does_nothing() {
    let connection = Connection::open_in_memory().unwrap();
    connection.get_interrupt_handle().interrupt();
    assert_eq!(number(&connection, "SELECT 7"), 7);
}

#[test]
fn an_interrupted_write_rolls_the_transaction_back() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1)")
        .unwrap();
    let handle = connection.get_interrupt_handle();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                handle.interrupt();
                thread::yield_now();
            }
        });
        let endless = "WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n)
                       INSERT INTO t SELECT a FROM n LIMIT 100000000";
        let error = connection.execute_batch(endless).unwrap_err();
        ended.store(true, Ordering::Relaxed);
        assert_eq!(
            error.sqlite_error_code(),
            Some(ErrorCode::OperationInterrupted)
        );
    });
    assert!(connection.is_autocommit());
    assert_eq!(number(&connection, "SELECT count(*) FROM t"), 0);
}

#[test]
fn like_folds_the_case_of_ascii_only() {
    let connection = Connection::open_in_memory().unwrap();
    assert_eq!(number(&connection, "SELECT 'STRASSE' LIKE 'strasse'"), 1);
    assert_eq!(number(&connection, "SELECT 'É' LIKE 'é'"), 0);
}

#[test]
fn a_parameter_without_a_value_is_null() {
    let connection = Connection::open_in_memory().unwrap();
    let mut statement = connection.prepare("SELECT ?1 IS NULL").unwrap();
    let mut rows = statement.raw_query();
    assert!(rows.next().unwrap().unwrap().get::<_, bool>(0).unwrap());
}

#[test]
fn a_limit_or_a_pattern_that_is_a_parameter_is_prepared_anew_each_time() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE t (a TEXT) STRICT; INSERT INTO t VALUES ('a'), ('b')")
        .unwrap();
    let prepared_anew = |sql: &str, arguments: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare(sql).unwrap();
        for _ in 0..3 {
            let mut rows = statement.query(arguments).unwrap();
            while rows.next().unwrap().is_some() {}
        }
        statement.get_status(rusqlite::StatementStatus::RePrepare)
    };
    assert!(prepared_anew("SELECT a FROM t LIMIT ?1", &[&1]) >= 3);
    assert!(prepared_anew("SELECT a FROM t WHERE a LIKE ?1", &[&"a%"]) >= 3);
    assert_eq!(prepared_anew("SELECT a FROM t LIMIT 1 OFFSET ?1", &[&1]), 0);
    assert_eq!(prepared_anew("SELECT a FROM t WHERE a >= ?1", &[&"a"]), 0);
}

#[test]
fn a_negative_zero_loses_its_sign() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE t (a REAL) STRICT")
        .unwrap();
    connection
        .execute("INSERT INTO t VALUES (?1)", [-0.0_f64])
        .unwrap();
    let stored: f64 = connection
        .query_row("SELECT a FROM t", [], |row| row.get(0))
        .unwrap();
    assert!(stored == 0.0 && stored.is_sign_positive());
}

#[test]
fn the_last_connection_removes_the_log_unless_the_file_has_moved() {
    for moves in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (writer, other) = two(folder.path());
        writer.execute_batch(INSERT).unwrap();
        assert_eq!(number(&other, COUNT), 1);
        if moves {
            let path = folder.path().join("facts.db");
            std::fs::rename(path, folder.path().join("aside.db")).unwrap();
        }
        drop(writer);
        drop(other);
        assert_eq!(folder.path().join("facts.db-wal").exists(), moves);
    }
}

#[test]
fn a_log_belongs_to_whatever_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _other) = two(folder.path());
    writer.execute_batch(INSERT).unwrap();
    let another = folder.path().join("another.db");
    outsider(&another)
        .execute_batch("CREATE TABLE elsewhere (a)")
        .unwrap();
    let path = folder.path().join("facts.db");
    std::fs::rename(&another, &path).unwrap();
    let new = outsider(&path);
    assert_eq!(number(&new, COUNT), 1, "the old file's frames are read");
    assert!(new.prepare("SELECT * FROM elsewhere").is_err());
}

#[test]
fn json_reads_true_as_1_and_orders_numbers_before_texts() {
    let connection = Connection::open_in_memory().unwrap();
    for (sql, expected) in [
        ("SELECT json_extract('[true]', '$[0]') = 1", 1),
        ("SELECT json_extract('[false]', '$[0]') = 0", 1),
        ("SELECT json_extract('[null]', '$[0]') IS NULL", 1),
        ("SELECT json_extract('[1]', '$[1]') IS NULL", 1),
        ("SELECT json_extract('[\"5\"]', '$[0]') = 5", 0),
        ("SELECT json_extract('[\"5\"]', '$[0]') > 1000", 1),
        (
            "SELECT json_extract('[[1, {\"a\" : 2}]]', '$[0]') = '[1,{\"a\":2}]'",
            1,
        ),
        (
            "SELECT typeof(json_extract('[9223372036854775807]', '$[0]')) = 'integer'",
            1,
        ),
        (
            "SELECT typeof(json_extract('[9223372036854775808]', '$[0]')) = 'real'",
            1,
        ),
        // An index is counted in 32 bits.
        ("SELECT json_extract('[7]', '$[4294967296]') = 7", 1),
        // A bad path is found only on the way.
        ("SELECT json_extract('{}', '$.a[x]') IS NULL", 1),
    ] {
        assert_eq!(number(&connection, sql), expected, "{sql}");
    }
    let sql = "SELECT json_extract('{\"a\":[]}', '$.a[x]')";
    assert!(connection.query_row(sql, [], |_| Ok(())).is_err());
}

#[test]
fn json_reads_reals_of_ordinary_size_exactly() {
    let connection = Connection::open_in_memory().unwrap();
    let mut read = connection.prepare("SELECT json_extract(?1, '$')").unwrap();
    let mut random = Random::new(3);
    for round in 0..40_000 {
        let digits = f64::from(u32::try_from(random.below(1 << 32)).unwrap()) / f64::from(u32::MAX);
        let real = digits * 10_f64.powi(round % 31 - 15);
        let json = serde_json::to_string(&real).unwrap();
        let back: f64 = read.query_row([&json], |row| row.get(0)).unwrap();
        assert_eq!(back.to_bits(), real.to_bits(), "{json}");
    }
}
