//! BEGIN beside writers and checkpoints that never rest.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use libsqlite3_sys::{SQLITE_BUSY, SQLITE_PROTOCOL};
use rusqlite::Connection;

use crate::engine::ffi::session_vfs::tests::{File, Session, checkpoint, code, one, seconds};

/// Held by tests that need the processors for themselves.
pub(super) static ALONE: Mutex<()> = Mutex::new(());

/// The writer's slot: sessions whose BEGIN met too many commits take their snapshot while nobody commits.
#[derive(Default)]
pub(super) struct Slot {
    lock: Mutex<()>,
    is_wanted: AtomicBool,
}

impl Slot {
    /// Runs a commit.
    pub(super) fn write<T>(&self, commit: impl FnOnce() -> T) -> T {
        while self.is_wanted.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let _held = self.lock.lock().unwrap();
        commit()
    }

    /// Begins a session, as the engine does; whether the slot was needed.
    pub(super) fn begin(&self, session: &Session) -> bool {
        self.snapshot(|| session.begin().map(drop))
    }

    /// Runs what takes a snapshot, as the engine does; whether the slot was needed.
    pub(super) fn snapshot(&self, take: impl Fn() -> rusqlite::Result<()>) -> bool {
        let taken = take();
        if taken.is_ok() {
            return false;
        }
        let answer = code(taken);
        assert!(
            [SQLITE_PROTOCOL, SQLITE_BUSY].contains(&(answer & 0xff)),
            "{answer}"
        );
        self.is_wanted.store(true, Ordering::SeqCst);
        let held = self.lock.lock().unwrap();
        // Other processes commit too, if there are any.
        while take().is_err() {}
        drop(held);
        self.is_wanted.store(false, Ordering::SeqCst);
        true
    }
}

/// The writer commits single rows as fast as it can, and moves the log now and then.
fn write_until(stop: &AtomicBool, slot: &Slot, writer: &Connection) -> i64 {
    let mut commits = 0_i64;
    while !stop.load(Ordering::Relaxed) {
        slot.write(|| writer.execute("UPDATE t SET s = ?1 WHERE id = 7", [commits]))
            .unwrap();
        commits += 1;
        if commits % 1000 == 0 {
            checkpoint(writer, "PASSIVE");
        }
    }
    commits
}

/// What half, 99 and 99.9 of a hundred, and all took at most.
fn figures(took: &mut [Duration]) -> [Duration; 4] {
    took.sort_unstable();
    [500, 990, 999, 1000].map(|share| took[(took.len() - 1) * share / 1000])
}

/// How long it takes to begin beside a writer at full rate: of sessions, and of plain readers.
fn measure(file: &File, session: &Session) -> [[Duration; 4]; 2] {
    let (stop, slot) = (AtomicBool::new(false), Slot::default());
    let open = || Connection::open(file.path()).unwrap();
    let (writer, reader) = (open(), open());
    writer
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0")
        .unwrap();
    let (mut took, mut plain, mut needed) = (Vec::new(), Vec::new(), 0);
    let commits = thread::scope(|scope| {
        let (stop, slot) = (&stop, &slot);
        let rate = scope.spawn(move || write_until(stop, slot, &writer));
        let end = Instant::now() + Duration::from_secs(seconds(2));
        while Instant::now() < end {
            let began = Instant::now();
            needed += u32::from(slot.begin(session));
            took.push(began.elapsed());
            session
                .run("UPDATE t SET v = 0 WHERE id = 1; ROLLBACK")
                .unwrap();
            let began = Instant::now();
            reader.execute_batch("BEGIN; SELECT sum(v) FROM t").unwrap();
            plain.push(began.elapsed());
            reader.execute_batch("COMMIT").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        rate.join().unwrap()
    });
    assert!(commits > 100 && took.len() > 100);
    let figures = [figures(&mut took), figures(&mut plain)];
    println!(
        "{} BEGIN beside {commits} commits, p50, p99, p99.9, most: {:?}; {needed} needed the slot; of a plain \
        reader: {:?}",
        took.len(),
        figures[0],
        figures[1],
    );
    figures
}

/// Who waits for a processor waits as long as the machine likes, a plain reader too, so the best of some runs counts.
/// A BEGIN that starves sleeps in SQLite, up to ten seconds, and does so in each.
#[test]
fn begin_does_not_starve_beside_a_writer_at_full_rate() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::new();
    let session = file.session();
    let is_quick =
        |[of_sessions, _]: [[Duration; 4]; 2]| of_sessions[2] < Duration::from_millis(50);
    assert!((0..3).any(|_| is_quick(measure(&file, &session))));
    assert_eq!(session.alarms(), 0);
    file.assert_whole();
}

#[test]
fn a_snapshot_stays_while_the_log_is_moved_and_begins_anew_after_it() {
    let file = File::new();
    file.writer
        .execute_batch("PRAGMA busy_timeout = 0")
        .unwrap();
    let session = file.session();
    session.run("PRAGMA cache_size = 1").unwrap();
    let weighed = "SELECT sum(v * id) FROM t NOT INDEXED";
    let mut restarts = 0;
    for round in 0..60 {
        for _ in 0..round % 4 {
            file.shift();
        }
        assert_eq!(session.begin(), Ok(20_000));
        let before = one::<i64>(&session.connection, weighed);
        assert_eq!(
            before,
            one::<i64>(&file.writer, weighed),
            "it is the present"
        );
        if round % 3 != 0 {
            session.run("UPDATE t SET s = '' WHERE id = 200").unwrap();
        }
        for mode in ["PASSIVE", "RESTART", "TRUNCATE"] {
            file.shift();
            let (busy, log, moved) = file.checkpoint(mode);
            // Who reads no frame at all does not stop the log from beginning anew, but every move.
            assert!(busy == 1 || mode == "PASSIVE", "{mode}: {log} {moved}");
            assert_eq!(
                one::<i64>(&session.connection, weighed),
                before,
                "{round} {mode}"
            );
        }
        session.run("ROLLBACK").unwrap();
        let (busy, log, moved) = file.checkpoint(["RESTART", "TRUNCATE"][round % 2]);
        assert_eq!((busy, log), (0, moved));
        restarts += 1;
    }
    assert_eq!(restarts, 60);
    assert_eq!(session.alarms(), 0);
    file.assert_whole();
}
