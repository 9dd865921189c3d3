//! Everything at once: commits, checkpoints of all modes, sessions in this process and in others, some of which die.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use libsqlite3_sys::SQLITE_BUSY;
use rusqlite::Connection;

use crate::engine::ffi::session_vfs::tests::{
    File, Session,
    begin::{ALONE, Slot},
    checkpoint, code, one, other_process, seconds, told,
};

const NAME: &str = "stress::sessions_see_whole_and_present_snapshots_beside_everything_else";
const ROWS: i64 = 3000;
const SUM: i64 = ROWS * 100;

/// What the threads of one process share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    slot: Slot,
    /// How many commits of this process were answered.
    answered: AtomicI64,
    /// Held by who has a session open, so that now and then nobody has.
    gate: RwLock<()>,
    sessions: AtomicU64,
    needed_slot: AtomicU64,
    restarts: AtomicU64,
}

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % below
    }
}

fn plain(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let set =
        "PRAGMA busy_timeout = 30000; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 200";
    connection.execute_batch(set).unwrap();
    connection
}

/// Commits at full rate; `counter` is the row that counts the commits of this process.
fn write(shared: &Shared, path: &Path, counter: i64) -> i64 {
    let writer = plain(path);
    let mut dice = Dice(counter.unsigned_abs());
    let mut commits = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let (from, to, length) = (dice.roll(ROWS) + 1, dice.roll(ROWS) + 1, dice.roll(900));
        let unit = format!(
            "BEGIN IMMEDIATE;
            UPDATE t SET v = v - 1, s = hex(zeroblob({length})) WHERE id = {from};
            UPDATE t SET v = v + 1 WHERE id = {to};
            UPDATE counters SET n = n + 1 WHERE id = {counter};
            COMMIT"
        );
        shared.slot.write(|| writer.execute_batch(&unit)).unwrap();
        commits += 1;
        shared.answered.store(commits, Ordering::SeqCst);
        if commits % 200 == 0 {
            // Nobody of this process has a session open; those of others end soon, and new ones read from the file
            // alone, for meanwhile nobody commits. So the log begins anew.
            let _closed = shared.gate.write().unwrap();
            writer.execute_batch("PRAGMA busy_timeout = 1000").unwrap();
            let mode = ["RESTART", "TRUNCATE"][usize::from(commits % 400 == 0)];
            let restarted = checkpoint(&writer, mode).0 == 0;
            shared
                .restarts
                .fetch_add(u64::from(restarted), Ordering::Relaxed);
            writer.execute_batch("PRAGMA busy_timeout = 30000").unwrap();
        }
    }
    commits
}

/// Moves the log in all ways, whoever reads.
fn move_log(shared: &Shared, path: &Path) {
    let connection = plain(path);
    connection.execute_batch("PRAGMA busy_timeout = 2").unwrap();
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"]
        .into_iter()
        .cycle()
    {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let moved = connection.query_row(&sql, [], |_| Ok(()));
        assert!([0, SQLITE_BUSY].contains(&(code(moved) & 0xff)));
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// One private transaction: what it reads is whole, present, and the same to its end.
fn transact(shared: &Shared, session: &Session, counter: i64, dice: &mut Dice) {
    let connection = &session.connection;
    let _open = shared.gate.read().unwrap();
    let answered = shared.answered.load(Ordering::SeqCst);
    if shared.slot.begin(session) {
        shared.needed_slot.fetch_add(1, Ordering::Relaxed);
    }
    let count = format!("SELECT n FROM counters WHERE id = {counter}");
    let counted = one::<i64>(connection, &count);
    assert!(
        counted >= answered,
        "{counted} of {answered} commits are seen"
    );
    let sums = || {
        one::<i64>(
            connection,
            "SELECT sum(v) * 10000 + count(*) FROM t NOT INDEXED",
        )
    };
    assert_eq!(sums(), SUM * 10_000 + ROWS, "the snapshot");
    for at in 0..dice.roll(20) {
        let (from, to) = (dice.roll(ROWS) + 1, dice.roll(ROWS) + 1);
        let update = format!(
            "UPDATE t SET v = v - 3, s = hex(zeroblob(400)) WHERE id = {from};
            UPDATE t SET v = v + 3 WHERE id = {to}"
        );
        session.run(&update).unwrap();
        if at % 7 == 3 {
            session
                .run("SAVEPOINT x; DELETE FROM t WHERE id % 3 = 0; ROLLBACK TO x; RELEASE x")
                .unwrap();
        }
    }
    if dice.roll(5) == 0 {
        session.run("DELETE FROM t WHERE id > 2000").unwrap();
        assert_eq!(one::<i64>(connection, "SELECT count(*) FROM t"), 2000);
    } else {
        assert_eq!(sums(), SUM * 10_000 + ROWS, "with its own changes");
    }
    if dice.roll(11) == 0 {
        assert_eq!(one::<String>(connection, "PRAGMA integrity_check"), "ok");
    }
    assert_eq!(one::<i64>(connection, &count), counted, "to its end");
    session.run("ROLLBACK").unwrap();
    shared.sessions.fetch_add(1, Ordering::Relaxed);
}

fn sessions(shared: &Shared, path: &Path, counter: i64, seed: u64) {
    let session = Session::open(path, &[]);
    // Few enough pages that most are read again and again. The pragma reads the schema, which takes a snapshot.
    let cache = "PRAGMA cache_size = 20";
    shared.slot.snapshot(|| session.run(cache));
    let mut dice = Dice(seed);
    while !shared.stop.load(Ordering::Relaxed) {
        transact(shared, &session, counter, &mut dice);
        if dice.roll(13) == 0 {
            thread::park_timeout(Duration::from_millis(3));
        }
    }
    assert_eq!(session.alarms(), 0);
}

/// What one process does: a writer, some sessions, and whatever `meanwhile` does.
fn run(path: &Path, counter: i64, threads: u64, meanwhile: impl FnOnce()) {
    let shared = Shared::default();
    let before = plain(path);
    let count = format!("SELECT n FROM counters WHERE id = {counter}");
    shared
        .answered
        .store(one(&before, &count), Ordering::SeqCst);
    let commits = thread::scope(|scope| {
        let shared = &shared;
        let writer = scope.spawn(move || write(shared, path, counter));
        let others: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || sessions(shared, path, counter, seed + 77)))
            .collect();
        let mover = scope.spawn(move || move_log(shared, path));
        meanwhile();
        shared.stop.store(true, Ordering::Relaxed);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        mover.join().unwrap();
        writer.join().unwrap()
    });
    let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
    println!(
        "process {counter}: {commits} commits, {} sessions of which {} needed the slot, {} restarts of the log",
        of(&shared.sessions),
        of(&shared.needed_slot),
        of(&shared.restarts),
    );
    assert!(commits > 20 && of(&shared.sessions) > 20);
}

/// A process that has sessions open until it is killed.
fn be_killed(path: &Path) -> ! {
    let open: Vec<_> = (0..3).map(|_| Session::open(path, &[])).collect();
    let slot = Slot::default();
    for session in &open {
        slot.begin(session);
        session.run("DELETE FROM t WHERE id % 2 = 0").unwrap();
    }
    println!("open");
    loop {
        let last = &open[2];
        last.run("ROLLBACK").unwrap();
        slot.begin(last);
        last.run("UPDATE t SET v = 0").unwrap();
    }
}

/// Starts a process, and kills it while its sessions are open.
fn kill_one(path: &Path) {
    let mut child = start(path, "to be killed");
    let output = BufReader::new(child.stdout.take().unwrap());
    let is_open = output.lines().any(|line| line.unwrap() == "open");
    assert!(is_open, "it ended by itself");
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
}

fn start(path: &Path, word: &str) -> Child {
    let mut command: Command = other_process(NAME, word, path);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn sessions_see_whole_and_present_snapshots_beside_everything_else() {
    let duration = Duration::from_secs(seconds(5));
    match told() {
        Some((word, path)) if word == "beside" => {
            return run(&path, 2, 2, || thread::park_timeout(duration));
        }
        Some((_, path)) => be_killed(&path),
        None => {}
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::new();
    let more = format!(
        "WITH RECURSIVE n(i) AS (SELECT 201 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
        INSERT INTO t SELECT i, 100, hex(zeroblob(50)) FROM n;
        CREATE TABLE counters (id INTEGER PRIMARY KEY, n INT);
        INSERT INTO counters VALUES (1, 0), (2, 0)"
    );
    file.writer.execute_batch(&more).unwrap();
    let path = file.path();
    let end = Instant::now() + duration;
    let mut killed = 0;
    let beside = start(&path, "beside");
    run(&path, 1, 4, || {
        while Instant::now() < end {
            kill_one(&path);
            killed += 1;
        }
    });
    let beside = beside.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&beside.stdout);
    assert!(beside.status.success(), "{told}");
    println!(
        "{killed} processes were killed; {}",
        told.lines()
            .find(|line| line.starts_with("process"))
            .unwrap_or("")
    );
    assert_eq!(one::<String>(&file.writer, "PRAGMA integrity_check"), "ok");
    assert_eq!(one::<i64>(&file.writer, "SELECT sum(v) FROM t"), SUM);
    assert_eq!(
        file.checkpoint("TRUNCATE"),
        (0, 0, 0),
        "no lock is left behind"
    );
}
