//! Two processes on one file.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode,
    load::{Line, Order, check_file, plainly, write_order},
    random::{is_long, lasting},
};
use rusqlite::TransactionBehavior;

fn peer(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_peer"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn tell(child: &mut Child, line: &str) {
    let pipe = child.stdin.as_mut().unwrap();
    pipe.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// What a peer that wrote for a while says at its end.
#[derive(Debug)]
struct Account {
    saved: u64,
    commits: u64,
}

fn account(child: Child) -> Account {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "an error reached a caller");
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    Account {
        saved: numbers[0],
        commits: numbers[1],
    }
}

fn writer(file: &Path, time: Duration, number: &str) -> Child {
    let milliseconds = time.as_millis().to_string();
    peer(&["write", file.to_str().unwrap(), &milliseconds, number])
}

async fn with_tables(file: &Path) {
    let db = Database::open(file).await.unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    db.close().await.unwrap();
}

#[tokio::test]
async fn two_processes_write_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    with_tables(&file).await;
    let time = lasting(Duration::from_secs(10), Duration::from_secs(60));
    let mut peers = [writer(&file, time, "1"), writer(&file, time, "2")];
    peers.iter_mut().for_each(|peer| tell(peer, "go"));
    let accounts = peers.map(account);
    eprintln!("two processes in {time:?}: {accounts:?}");
    let orders = check_file(&plainly(&file).unwrap());
    let saved: u64 = accounts.iter().map(|account| account.saved).sum();
    assert_eq!(orders.len() as u64, saved);
    // Keys and numbers are both given under the one write lock, whoever holds it.
    assert!(orders.is_sorted_by(|one, next| one.id < next.id && one.seq < next.seq));
    let [slower, faster] = {
        let mut commits = accounts.map(|account| account.commits);
        commits.sort_unstable();
        commits
    };
    assert!(slower * 4 >= faster, "one starves: {slower} to {faster}");
}

#[tokio::test]
async fn a_plain_program_writes_beside_us() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    with_tables(&file).await;
    let time = lasting(Duration::from_secs(5), Duration::from_secs(60));
    let mut ours = writer(&file, time, "1");
    tell(&mut ours, "go");
    let plain = write_plainly(&file, time).unwrap();
    let account = account(ours);
    eprintln!("beside a plain program in {time:?}: {plain} of its commits, ours {account:?}");
    let orders = check_file(&plainly(&file).unwrap());
    assert_eq!(orders.len() as u64, plain + account.saved);
    let stamps: Vec<_> = orders
        .iter()
        .map(|order| order.seq)
        .filter(|seq| *seq > 0)
        .collect();
    assert!(stamps.is_sorted_by(|one, next| one < next));
    // By orders, of which ours share commits.
    assert!(plain * 4 >= account.saved, "the plain program starves");
    assert!(account.saved * 4 >= plain, "the library starves");
}

/// What a program without the library does: BEGIN IMMEDIATE, keys by SQLite, COMMIT.
fn write_plainly(file: &Path, time: Duration) -> rusqlite::Result<u64> {
    let mut connection = plainly(file)?;
    let end = Instant::now() + time;
    let mut saved = 0_u64;
    while Instant::now() < end {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached(
                "INSERT INTO orders (task, serial, lines, version, seq) VALUES (-1, ?1, 1, 1, 0)",
            )?
            .execute([i64::try_from(saved).unwrap()])?;
        let id = transaction.last_insert_rowid();
        transaction
            .prepare_cached("INSERT INTO lines (order_id, position) VALUES (?1, 0)")?
            .execute([id])?;
        transaction.commit()?;
        saved += 1;
    }
    Ok(saved)
}

/// The last connection that is closed removes the log: all of ours are, when `close` returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_closed_is_free_at_once() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.db");
        for serial in 0..10 {
            let builder = mode.set(Database::builder(&file));
            let db = builder.open().await.unwrap();
            db.create_tables::<(Order, Line)>().await.unwrap();
            write_order(&db, 0, serial).await.unwrap();
            Order::query().count(&db).await.unwrap();
            db.close().await.unwrap();
            let left: Vec<_> = folder.path().read_dir().unwrap().collect();
            assert_eq!(left.len(), 1, "{left:?}");
            let plain = plainly(&file).unwrap();
            plain.busy_timeout(Duration::ZERO).unwrap();
            plain.execute_batch("BEGIN EXCLUSIVE; ROLLBACK").unwrap();
        }
    }
}

/// Reported of others: two processes that start at once on a new file, one dies while it switches to WAL.
#[test]
fn two_processes_open_a_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = if is_long() { 500 } else { 100 };
    let mut peers = [peer(&["open"]), peer(&["open"])];
    let mut said = peers
        .each_mut()
        .map(|peer| BufReader::new(peer.stdout.take().unwrap()).lines());
    for round in 0..rounds {
        let file = folder.path().join(format!("{round}.db"));
        for peer in &mut peers {
            tell(peer, file.to_str().unwrap());
        }
        for lines in &mut said {
            let line = lines.next().expect("a peer failed").unwrap();
            assert_eq!(line, "saved");
        }
        assert_eq!(check_file(&plainly(&file).unwrap()).len(), 2);
    }
    for mut peer in peers {
        drop(peer.stdin.take());
        assert!(peer.wait().unwrap().success());
    }
}
