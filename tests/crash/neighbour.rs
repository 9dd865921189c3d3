//! A process that dies with sessions open does no harm to its neighbour, and two that live do none to each other.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anabranch::{engine::Checkpoint, prelude::*};
use anabranch_tests::{
    load::write_in_session,
    load::{GIVEN_UP, Line, Order, SESSION_LINES, add_order, check_file, plainly, token},
    random::{Random, is_long, lasting},
    until,
};
use tokio::runtime::Handle;

use crate::{Acknowledged, check, killed};

fn peer(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_peer"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn opened(file: &Path) -> Database {
    let builder = Database::builder(file).wal_autocheckpoint(50);
    let db = builder.open().await.unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    db
}

/// Writes until it is told to stop, by saves and by sessions, with checkpoints in between; what was acknowledged.
async fn write(db: &Database, round: i64, stop: &AtomicBool) -> Acknowledged {
    let task = GIVEN_UP / 2;
    let mut written = Acknowledged::new();
    for serial in (round << 16).. {
        if stop.load(Relaxed) {
            break;
        }
        let (id, lines) = if serial % 2 == 0 {
            let mut ctx = db.context();
            let order = add_order(&mut ctx, task, serial, 2);
            let saved = ctx.save_changes_with(&token(task, serial)).await;
            saved.unwrap();
            (ctx[order].id, 2)
        } else {
            let session = db.concurrent(async |s| write_in_session(s, task, serial).await);
            (session.await.unwrap(), SESSION_LINES)
        };
        written.insert(id, lines);
        if serial % 32 == 0 {
            db.checkpoint().await.unwrap();
        }
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_of_processes_that_are_killed_with_sessions_open_is_unharmed() {
    let mut random = Random::seeded("neighbour");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    let db = opened(&file).await;
    let mut acknowledged = Acknowledged::new();
    let rounds = if is_long() { 200 } else { 20 };
    let mut own = 0;
    for round in 0..rounds {
        let stop = AtomicBool::new(false);
        let runtime = Handle::current();
        let written = std::thread::scope(|scope| {
            let writing =
                scope.spawn(|| runtime.block_on(write(&db, i64::try_from(round).unwrap(), &stop)));
            killed(&file, round, &mut random, &mut acknowledged);
            stop.store(true, Relaxed);
            writing.join().unwrap()
        });
        own += written.len();
        acknowledged.extend(written);
        // The locks of the dead are gone.
        until("the whole log is moved", async || {
            db.checkpoint().await.is_ok_and(Checkpoint::is_complete)
        })
        .await;
        check(&file, &acknowledged);
    }
    let statistics = db.statistics();
    db.close().await.unwrap();
    check(&file, &acknowledged);
    eprintln!(
        "neighbour: {rounds} processes killed, {own} orders beside them, {} in all, {} sessions, {} conflicts",
        acknowledged.len(),
        statistics.sessions,
        statistics.session_conflicts,
    );
    assert_eq!(statistics.session_alarms, 0);
    assert!(own > rounds, "hardly anything was written beside: {own}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_session_holds_the_log_of_a_neighbour_until_its_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    let db = opened(&file).await;
    for round in 0..3 {
        write_order(&db, 2 * round).await;
        let mut child = peer(&["hold", file.to_str().unwrap()]);
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "open");
        write_order(&db, 2 * round + 1).await;
        let (frames, moved) = moved(&file);
        assert!(moved < frames, "past an open session: {moved} of {frames}");
        child.kill().unwrap();
        child.wait().unwrap();
        write_order(&db, 100 + round).await;
        assert!(db.checkpoint().await.unwrap().is_complete());
    }
    assert_eq!(Order::query().count(&db).await.unwrap(), 9);
    db.close().await.unwrap();
    assert_eq!(check_file(&plainly(&file).unwrap()).len(), 9);
}

async fn write_order(db: &Database, serial: i64) {
    let session = db.concurrent(async |s| write_in_session(s, 0, serial).await);
    session.await.unwrap();
}

/// How many frames the log has, and how many of them another program can move into the database.
fn moved(file: &Path) -> (i64, i64) {
    let connection = plainly(file).unwrap();
    let count = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
    let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], count);
    moved.unwrap()
}

/// What a peer that wrote in sessions says at its end.
#[derive(Debug)]
struct Account {
    written: u64,
    conflicts: u64,
    alarms: u64,
}

fn account(mut child: Child) -> Account {
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "an error reached a caller");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|one| one.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    Account {
        written: next(),
        conflicts: next(),
        alarms: next(),
    }
}

#[tokio::test]
async fn two_processes_write_one_file_in_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    opened(&file).await.close().await.unwrap();
    let time = lasting(Duration::from_secs(4), Duration::from_secs(60));
    let milliseconds = time.as_millis().to_string();
    let mut peers =
        ["1", "2"].map(|number| peer(&["sessions", file.to_str().unwrap(), &milliseconds, number]));
    for peer in &mut peers {
        peer.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }
    let accounts = peers.map(account);
    eprintln!("two processes with sessions in {time:?}: {accounts:?}");
    let orders = check_file(&plainly(&file).unwrap());
    let written: u64 = accounts.iter().map(|account| account.written).sum();
    assert_eq!(orders.len() as u64, written);
    assert!(orders.iter().all(|order| order.lines == SESSION_LINES));
    for account in &accounts {
        assert_eq!(account.alarms, 0);
        assert!(account.written > 0 && account.conflicts > 0, "{account:?}");
    }
}
