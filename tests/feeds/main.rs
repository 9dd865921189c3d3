//! Feeds under load: eight writers and a foreign program, consumers that are killed again and again, and afterwards a look at
//! whether each of them was told of everything.
//!
//! It is short by default. `ANABRANCH_LONG=1` gives it its full length, `ANABRANCH_SEED` repeats the draws.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod check;
mod consumers;
mod writers;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anabranch::{feed::Retention, prelude::*};
use anabranch_tests::{
    again, execute,
    random::{Random, lasting},
    scene,
};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::{
    check::{Evidence, faults},
    consumers::{Scene, Way, Who},
};

/// What is written and told of.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "items", tombstones)]
struct Item {
    #[entity(id)]
    id: i64,
    /// Another one with each write.
    value: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

/// A folder with the file, and what the consumers write outside of it.
#[derive(Debug)]
struct Place {
    folder: TempDir,
}

impl Place {
    async fn new() -> (Self, Database) {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let db = Database::open(place.file()).await.unwrap();
        db.create_tables::<Item>().await.unwrap();
        for sql in consumers::TABLES {
            execute(&db, sql).await;
        }
        (place, db)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("items.db")
    }

    fn command(&self, test: &str, who: Who, way: Way) -> Command {
        let folder = self.folder.path().to_path_buf();
        let mut command = again(test, &Scene { who, way, folder }.to_string());
        command.stdout(Stdio::null());
        command
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_that_are_killed_are_told_of_every_change() {
    if let Some(scene) = scene() {
        return consumers::run(scene.parse().unwrap()).await;
    }
    let test = "consumers_that_are_killed_are_told_of_every_change";
    let mut random = Random::seeded("feeds");
    let (place, db) = Place::new().await;
    db.stamp_foreign_writes::<Item>().await.unwrap();
    writers::fill(&db).await;
    let time = lasting(Duration::from_secs(5), Duration::from_secs(120));
    let end = Instant::now() + time;
    let stopped = AtomicBool::new(false);
    let (log, kills, forgotten) = thread::scope(|scope| {
        // Two of them share a place: only one of them passes it at a time.
        let killers = [Who::Journal, Who::Effects, Who::Effects, Who::Replica].map(|who| {
            let (place, stopped, random) = (&place, &stopped, random.branch());
            scope.spawn(move || kill_until(stopped, random, || place.command(test, who, Way::Run)))
        });
        let (runtime, db, stopped) = (Handle::current(), &db, &stopped);
        let forgetting = scope.spawn(move || runtime.block_on(forget_until(stopped, db)));
        let log = writers::write_until(db, end, &mut random);
        stopped.store(true, Relaxed);
        let kills = killers.map(|killer| killer.join().unwrap());
        (log, kills, forgetting.join().unwrap())
    });
    // Nobody writes any more: each reads to the end.
    let drains = Who::ALL.map(|who| finish(place.command(test, who, Way::Drain)));
    let evidence = Evidence::read(place.folder.path(), log, &drains);
    eprintln!(
        "feeds in {time:?}: {}; {forgotten} deletions forgotten; killed {kills:?}",
        evidence.summary()
    );
    assert_eq!(faults(&evidence), Vec::<String>::new());
    assert!(kills.iter().all(|kills| *kills > 3), "{kills:?}");
    assert!(forgotten > 50, "{forgotten}");
    evidence.assert_busy();
    restored_is_noticed(&db, &place.folder.path().join("restored.db")).await;
}

/// Forgets deletions as soon as all consumers have seen them; how many. What was deleted before a consumer began is forgotten
/// without it, so all are to be beyond that first.
async fn forget_until(stopped: &AtomicBool, db: &Database) -> u64 {
    let (mut begun, mut forgotten) = (None, 0);
    while !stopped.load(Relaxed) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let cursors = db.cursors().await.unwrap();
        if cursors.len() < Who::ALL.len() {
            continue;
        }
        if begun.is_none() {
            begun = Some(db.last_commit().await.unwrap().unwrap().seq);
        }
        if cursors.iter().any(|cursor| Some(cursor.seq) < begun) {
            continue;
        }
        let seen = Retention::new(Duration::ZERO);
        match db.prune_tombstones::<Item>(seen).await {
            Err(error) if error.is_retryable() => {}
            count => forgotten += count.unwrap(),
        }
    }
    forgotten
}

/// Starts a process and kills it, until it is told to stop; how often.
fn kill_until(stopped: &AtomicBool, mut random: Random, command: impl Fn() -> Command) -> usize {
    let mut kills = 0;
    while !stopped.load(Relaxed) {
        let mut child = command().spawn().unwrap();
        // Some die while they open the file, most while they work.
        thread::sleep(random.micros(600_000));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "it ended by itself: {status}");
        kills += 1;
    }
    kills
}

fn finish(mut command: Command) -> ExitStatus {
    command.status().unwrap()
}

async fn restored_is_noticed(db: &Database, copy: &Path) {
    db.backup_to(copy).await.unwrap();
    let restored = Database::open(copy).await.unwrap();
    for who in Who::ALL {
        let refused = who.feed(&restored).try_next_batch().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::EpochChanged, "{who:?}");
        assert!(who.feed(db).try_next_batch().await.unwrap().is_none());
    }
}

/// What the check says of a consumer that has the order of its work wrong, and dies in the middle of its first batch.
async fn planted(test: &str, who: Who) -> Option<Vec<String>> {
    if let Some(scene) = scene() {
        consumers::run(scene.parse().unwrap()).await;
        return None;
    }
    let (place, db) = Place::new().await;
    let log = writers::fill(&db).await;
    let died = finish(place.command(test, who, Way::Early));
    assert_eq!(died.code(), None, "{died}");
    let drains = Who::ALL.map(|who| {
        let mut command = place.command(test, who, Way::Drain);
        command.stderr(Stdio::null());
        finish(command)
    });
    Some(faults(&Evidence::read(place.folder.path(), log, &drains)))
}

#[tokio::test]
async fn a_consumer_that_is_right_and_alone_is_found_right() {
    if let Some(scene) = scene() {
        return consumers::run(scene.parse().unwrap()).await;
    }
    let test = "a_consumer_that_is_right_and_alone_is_found_right";
    let (place, db) = Place::new().await;
    let log = writers::fill(&db).await;
    let drains = Who::ALL.map(|who| finish(place.command(test, who, Way::Drain)));
    let evidence = Evidence::read(place.folder.path(), log, &drains);
    assert_eq!(faults(&evidence), Vec::<String>::new());
}

#[tokio::test]
async fn a_journal_that_acknowledges_first_is_found_out() {
    let test = "a_journal_that_acknowledges_first_is_found_out";
    if let Some(found) = planted(test, Who::Journal).await {
        assert!(
            found
                .iter()
                .any(|fault| fault.contains("journal: never told")),
            "{found:?}"
        );
        assert!(
            found.iter().all(|fault| fault.starts_with("journal")),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn effects_that_are_acknowledged_apart_are_found_out() {
    let test = "effects_that_are_acknowledged_apart_are_found_out";
    if let Some(found) = planted(test, Who::Effects).await {
        assert!(
            found.iter().any(|fault| fault.contains("effects: ended")),
            "{found:?}"
        );
        assert!(
            found.iter().all(|fault| fault.starts_with("effects")),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn a_replica_that_acknowledges_first_is_found_out() {
    let test = "a_replica_that_acknowledges_first_is_found_out";
    if let Some(found) = planted(test, Who::Replica).await {
        assert!(
            found
                .iter()
                .any(|fault| fault.contains("replica: another row")),
            "{found:?}"
        );
        assert!(
            found.iter().all(|fault| fault.starts_with("replica")),
            "{found:?}"
        );
    }
}
