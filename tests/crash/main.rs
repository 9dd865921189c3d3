//! A process that dies loses nothing that it acknowledged, and leaves nothing half saved.
//!
//! Fifty processes are killed at random moments; `ANABRANCH_LONG=1` kills five hundred. `ANABRANCH_SEED` repeats.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod full;
mod images;
mod neighbour;

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    load::{Found, GIVEN_UP, Order, check_file, plainly, token},
    random::{Random, is_long},
};
use rusqlite::Connection;

/// What was acknowledged: for each key the most lines it was said to have.
type Acknowledged = HashMap<i64, i64>;

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let mut random = Random::seeded("crash");
    let rounds = if is_long() { 500 } else { 50 };
    let mut folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::new();
    let (mut all, mut sessions) = (0, 0);
    for round in 0..rounds {
        // A file lives through some rounds, so that old logs are recovered and grown again.
        if random.once_in(8) {
            all += acknowledged.len();
            acknowledged.clear();
            folder = tempfile::tempdir().unwrap();
        }
        let file = folder.path().join("orders.db");
        sessions += killed(&file, round, &mut random, &mut acknowledged);
        if !file.exists() {
            continue;
        }
        // Who comes first after the crash recovers the log: the library or plain SQLite.
        if random.once_in(2) {
            reopened(&file).await;
        }
        check(&file, &acknowledged);
        if random.once_in(2) {
            reopened(&file).await;
        }
    }
    all += acknowledged.len();
    eprintln!(
        "crash: {rounds} processes killed, {all} orders were acknowledged, {sessions} of sessions"
    );
    assert!(sessions > rounds, "hardly anything in sessions: {sessions}");
    assert!(all > rounds, "hardly anything was saved: {all}");
}

/// Starts a process, kills it after a while, and notes what it acknowledged; how much of that was written in sessions.
fn killed(
    file: &Path,
    round: usize,
    random: &mut Random,
    acknowledged: &mut Acknowledged,
) -> usize {
    let mut sessions = 0;
    let execution = ["inline", "threaded"][usize::from(random.once_in(3))];
    let synchronous = ["normal", "full"][usize::from(random.once_in(4))];
    let seed = (round << 24) as u64 | random.below(1 << 16);
    let mut child = Command::new(env!("CARGO_BIN_EXE_peer"))
        .arg("crash")
        .arg(file)
        .args([&seed.to_string(), execution, synchronous])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Most are killed under load, some while they open the file.
    if !random.once_in(8)
        && let Some(Ok(first)) = lines.next()
    {
        sessions += usize::from(note(&first, acknowledged));
    }
    let until = Instant::now() + random.micros(80_000);
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| lines.map_while(Result::ok).collect::<Vec<_>>());
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        child.kill().unwrap();
        for line in reads.join().unwrap() {
            sessions += usize::from(note(&line, acknowledged));
        }
    });
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "it ended by itself: {status}");
    sessions
}

/// Notes what a line acknowledges; whether that was written in a session.
fn note(line: &str, acknowledged: &mut Acknowledged) -> bool {
    let mut words = line.split(' ');
    let id = words.next().unwrap().parse().unwrap();
    let lines: i64 = words.next().unwrap().parse().unwrap();
    let most = acknowledged.entry(id).or_default();
    *most = lines.max(*most);
    words.next() == Some("session")
}

fn check(file: &Path, acknowledged: &Acknowledged) {
    let connection = plainly(file).unwrap();
    let made: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    if made == 0 {
        assert!(acknowledged.is_empty(), "the tables are gone");
        return;
    }
    let found: HashMap<i64, Found> = check_file(&connection)
        .into_iter()
        .map(|order| (order.id, order))
        .collect();
    let is_kept = |order: &Found| order.task < GIVEN_UP;
    assert!(
        found.values().all(is_kept),
        "a session that was given up is there"
    );
    for (id, lines) in acknowledged {
        let order = found.get(id).expect("an acknowledged order is there");
        assert!(order.lines >= *lines, "an acknowledged line is lost");
    }
    check_tokens(&connection);
    drop(connection);
    check_by_shell(file);
}

/// The `sqlite3` shell, which is another version of SQLite, finds the file sound too. It may be missing, except where
/// `ANABRANCH_SHELL` says so.
fn check_by_shell(file: &Path) {
    let asked = Command::new("sqlite3")
        .arg(file)
        .args([".timeout 30000", "PRAGMA integrity_check"])
        .output();
    match asked {
        Ok(output) => assert_eq!(output.stdout, b"ok\n", "{output:?}"),
        Err(error) if std::env::var_os("ANABRANCH_SHELL").is_none() => {
            eprintln!("the sqlite3 shell was not asked: {error}");
        }
        Err(error) => panic!("sqlite3: {error}"),
    }
}

/// Each order was saved with a token: there are both or neither.
fn check_tokens(connection: &Connection) {
    let tokens = "SELECT count(*) FROM sqlite_schema WHERE name = 'anabranch_saves'";
    let orders = "SELECT count(*) FROM orders";
    let count = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if count(tokens).unwrap() == 0 {
        assert_eq!(count(orders), Ok(0), "the tokens are gone");
        return;
    }
    let alone = "
        SELECT count(*) FROM orders
        FULL JOIN anabranch_saves ON token = 'order ' || task || ' ' || serial
        WHERE token IS NULL OR id IS NULL OR seq < commit_seq OR commit_seq IS NULL";
    assert_eq!(count(alone), Ok(0), "orders or tokens without the other");
}

/// The library opens the file, reads and writes it.
async fn reopened(file: &Path) {
    let began = Instant::now();
    let db = Database::open(file).await.unwrap();
    let before = Order::query().count(&db).await.unwrap_or_default();
    let count = db
        .write(async |tx| Order::query().count(&mut *tx).await)
        .await
        .unwrap_or_default();
    assert_eq!(before, count);
    for order in Order::query().limit(10).all(&db).await.unwrap_or_default() {
        let saved = db
            .was_saved(&token(order.task, order.serial))
            .await
            .unwrap();
        assert!(saved.is_some_and(|saved| saved.commit_seq <= Some(order.seq)));
    }
    db.close().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "recovery hangs");
}
