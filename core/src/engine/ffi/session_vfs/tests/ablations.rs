//! What each rule is for: the same story with all rules, and without one.

use std::time::{Duration, Instant};

use libsqlite3_sys::{SQLITE_PROTOCOL, SQLITE_READONLY};
use rusqlite::Connection;

use crate::engine::ffi::session_vfs::{
    Refreshed,
    ablation::Rule,
    refresh,
    shm::Shm,
    tests::{File, checkpoint, code, one},
};

/// Rule B: somebody commits just after the refresh, and was answered before the session begins.
fn is_fresh(without: &[Rule]) -> bool {
    let file = File::new();
    let session = file.session_without(without);
    session.begin().unwrap();
    session.run("ROLLBACK").unwrap();
    assert_eq!(refresh(&session.connection), Refreshed::Ok);
    file.writer.execute_batch("UPDATE t SET v = v + 1").unwrap();
    session.run("BEGIN").unwrap();
    session.sum() == Ok(20_200)
}

#[test]
fn without_rule_b_a_session_does_not_see_what_was_committed_before_it() {
    assert!(is_fresh(&[]));
    assert!(!is_fresh(&[Rule::BAtLock]), "refreshed before BEGIN only");
    assert!(!is_fresh(&[Rule::B]), "never refreshed");
}

/// Rule B: the log begins anew between the refresh and the lock.
fn survives_a_restart(without: &[Rule]) -> bool {
    let file = File::new();
    let session = file.session_without(without);
    session.begin().unwrap();
    session.run("ROLLBACK; PRAGMA cache_size = 1").unwrap();
    file.shift();
    assert_eq!(refresh(&session.connection), Refreshed::Ok);
    assert_eq!(file.checkpoint("TRUNCATE").0, 0);
    for _ in 0..3 {
        file.shift();
    }
    let _passes = file.checkpoint("PASSIVE");
    session.run("BEGIN").unwrap();
    let first = session.sum();
    file.shift();
    let _passes = file.checkpoint("PASSIVE");
    first == Ok(20_000) && session.sum() == first
}

#[test]
fn without_rule_b_a_session_reads_a_log_that_is_gone() {
    assert!(survives_a_restart(&[]));
    assert!(!survives_a_restart(&[Rule::BAtLock]));
}

/// Rule C: a session that had to set its mark; a reader has the first slot, so it is the second one's.
/// Answers what BEGIN said, and whether the session still reads its snapshot after others wrote and moved the log.
fn is_passed(without: &[Rule], by: &dyn Fn(&File, &Connection) -> (i64, i64, i64)) -> (i32, bool) {
    let file = File::new();
    let checkpointer = Connection::open(file.path()).unwrap();
    // The log begins anew, so that no mark but the first is used.
    assert_eq!(checkpoint(&checkpointer, "TRUNCATE").0, 0);
    file.shift();
    let reader = Connection::open(file.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    file.shift();
    let session = file.session_without(without);
    let small = session.run("PRAGMA cache_size = 1");
    let begun = code(small.and_then(|()| session.begin()));
    if begun != 0 {
        return (begun, false);
    }
    let snapshot = session.look(Shm::snapshot);
    reader.execute_batch("COMMIT").unwrap();
    let before = one::<i64>(&session.connection, "SELECT sum(v * id) FROM t NOT INDEXED");
    let mut is_right = true;
    for round in 1..4 {
        let more = format!("UPDATE t SET v = v + {round} * iif(id > 100, 1, -1)");
        file.writer.execute_batch(&more).unwrap();
        let (_, _, moved) = by(&file, &checkpointer);
        is_right &= moved <= i64::from(snapshot) && session.look(Shm::backfilled) <= snapshot;
        let now = "SELECT sum(v * id) FROM t NOT INDEXED";
        is_right &= session.connection.query_row(now, [], |row| row.get(0)) == Ok(before);
    }
    (0, is_right)
}

fn passive(_file: &File, checkpointer: &Connection) -> (i64, i64, i64) {
    checkpoint(checkpointer, "PASSIVE")
}

#[test]
fn without_rule_c_a_checkpoint_passes_an_open_session() {
    assert_eq!(is_passed(&[], &passive), (0, true));
    // A mark that is not published is not found again after the lock either, so that BEGIN never ends ...
    assert_eq!(is_passed(&[Rule::C], &passive).0, SQLITE_PROTOCOL);
    // ... and where nobody looks, pages of later commits are read from the file.
    assert_eq!(is_passed(&[Rule::C, Rule::CMarks], &passive), (0, false));
}

#[test]
fn no_checkpoint_passes_an_open_session() {
    let busy = |file: &File, checkpointer: &Connection| {
        checkpointer
            .execute_batch("PRAGMA busy_timeout = 0")
            .unwrap();
        let all =
            ["PASSIVE", "FULL", "RESTART", "TRUNCATE"].map(|mode| checkpoint(checkpointer, mode));
        assert!(all[1..].iter().all(|answer| answer.0 == 1), "{all:?}");
        let shell = std::process::Command::new("sqlite3")
            .arg(file.path())
            .arg("PRAGMA wal_checkpoint(TRUNCATE)")
            .output();
        if let Ok(output) = shell {
            assert!(output.stdout.starts_with(b"1|"), "{output:?}");
        }
        all[3]
    };
    assert_eq!(is_passed(&[], &busy), (0, true));
}

/// Rule D: the header is half written when a session opens the file. What its first read answers, and what the next
/// one does when the header is whole again.
fn torn(without: &[Rule]) -> (i32, i32) {
    let file = File::new();
    let other = file.session();
    other.begin().unwrap();
    other.run("ROLLBACK").unwrap();
    let session = file.session_without(without);
    other.look(|shm| shm.tear(1));
    assert_eq!(refresh(&other.connection), Refreshed::Torn);
    let began = Instant::now();
    let first = code(session.begin());
    // SQLite itself would try for ten seconds.
    assert!(began.elapsed() < Duration::from_secs(2));
    other.look(|shm| shm.tear(u32::MAX));
    file.assert_whole();
    (first, code(session.begin()))
}

#[test]
fn without_rule_d_a_session_would_recover_the_index() {
    assert_eq!(torn(&[]), (SQLITE_PROTOCOL, 0));
    // It goes on to recover, which only rule E stops.
    assert_eq!(torn(&[Rule::D]).0 & 0xff, SQLITE_READONLY);
}

/// Rule D: whether a session and the writer write at the same time.
fn writes_beside(without: &[Rule]) -> bool {
    let file = File::new();
    let session = file.session_without(without);
    session.begin().unwrap();
    session.run("UPDATE t SET v = v + 1").unwrap();
    file.writer
        .execute_batch("PRAGMA busy_timeout = 0")
        .unwrap();
    let beside = file.writer.execute_batch("UPDATE t SET v = v + 2").is_ok();
    beside && session.sum() == Ok(20_200)
}

#[test]
fn without_rule_d_a_session_stops_the_writer() {
    assert!(writes_beside(&[]));
    assert!(!writes_beside(&[Rule::DFake]));
}

/// Rule E: a session on slot 0 whose pages spill, so that SQLite wants to begin the log anew. Whether the session
/// still has its snapshot afterwards.
fn keeps_its_snapshot(without: &[Rule]) -> bool {
    let file = File::new();
    let (busy, log, moved) = file.checkpoint("PASSIVE");
    assert_eq!((busy, log), (0, moved));
    let session = file.session_without(without);
    session
        .run("PRAGMA cache_size = 10; PRAGMA cache_spill = ON")
        .unwrap();
    session.begin().unwrap();
    assert!(session.look(|shm| shm.reads_slot(0)));
    let before = one::<i64>(&session.connection, "SELECT sum(v * id) FROM t NOT INDEXED");
    file.writer
        .execute_batch("UPDATE t SET v = v + iif(id > 100, 1, -1)")
        .unwrap();
    let spilt = session.run("UPDATE t SET s = hex(randomblob(400))");
    assert!(spilt.is_err(), "nothing of a session is written");
    session.run("PRAGMA cache_size = 10000").unwrap();
    let _moves = file.checkpoint("PASSIVE");
    let now = "SELECT sum(v * id) FROM t NOT INDEXED";
    let now = session.connection.query_row(now, [], |row| row.get(0));
    session.look(|shm| shm.reads_slot(0)) && now == Ok(before)
}

#[test]
fn without_rule_e_a_session_loses_its_read_lock() {
    assert!(keeps_its_snapshot(&[]));
    assert!(!keeps_its_snapshot(&[Rule::E]), "answered BUSY");
    assert!(!keeps_its_snapshot(&[Rule::EGrant]), "granted");
}
