//! A process that dies loses nothing that it acknowledged, and leaves nothing half saved.
//!
//! Fifty processes are killed at random moments; `ANABRANCH_LONG=1` kills five hundred. `ANABRANCH_SEED` repeats.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod images;

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    load::{Found, Order, check_file, plainly, token},
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
    let mut all = 0;
    for round in 0..rounds {
        // A file lives through some rounds, so that old logs are recovered and grown again.
        if random.once_in(8) {
            all += acknowledged.len();
            acknowledged.clear();
            folder = tempfile::tempdir().unwrap();
        }
        let file = folder.path().join("orders.db");
        killed(&file, round, &mut random, &mut acknowledged);
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
    eprintln!("crash: {rounds} processes killed, {all} orders were acknowledged");
    assert!(all > rounds, "hardly anything was saved: {all}");
}

/// Starts a process, kills it after a while, and notes what it acknowledged.
fn killed(file: &Path, round: usize, random: &mut Random, acknowledged: &mut Acknowledged) {
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
        note(&first, acknowledged);
    }
    let until = Instant::now() + random.micros(80_000);
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| lines.map_while(Result::ok).collect::<Vec<_>>());
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        child.kill().unwrap();
        for line in reads.join().unwrap() {
            note(&line, acknowledged);
        }
    });
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "it ended by itself: {status}");
}

fn note(line: &str, acknowledged: &mut Acknowledged) {
    let (id, lines) = line.split_once(' ').unwrap();
    let most = acknowledged.entry(id.parse().unwrap()).or_default();
    *most = (*most).max(lines.parse().unwrap());
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
    for (id, lines) in acknowledged {
        let order = found.get(id).expect("an acknowledged order is there");
        assert!(order.lines >= *lines, "an acknowledged line is lost");
    }
    check_tokens(&connection);
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
