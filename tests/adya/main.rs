//! Elle's checks, by the crate adya, over what many tasks saw of each other: lists that are appended to, and registers.
//!
//! Sessions of both levels run beside plain saves, plain reads and exclusive transactions. A history of `Serializable`
//! sessions has to be strictly serializable: in an order that also agrees with the clock. One of `Snapshot` sessions has to
//! be snapshot isolated, with snapshots that miss nothing that was acknowledged before. Anomalies that are planted into
//! real histories must be found. `ANABRANCH_LONG=1` repeats it for minutes.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod history;
mod planted;
mod task;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use adya::Valid;
use anabranch::prelude::*;
use anabranch_tests::random::{Random, lasting};
use tokio::task::JoinSet;

use self::{
    history::{Kind, Log, Recorded},
    task::{Cell, Shared, Way},
};

/// Who takes part. What a closure of `db.concurrent` commits has no number, of which registers need one.
const LISTS: [Way; 8] = [
    Way::Raw,
    Way::Raw,
    Way::Typed,
    Way::Typed,
    Way::Closure,
    Way::Closure,
    Way::Save,
    Way::Write,
];
const REGISTERS: [Way; 8] = [
    Way::Raw,
    Way::Raw,
    Way::Raw,
    Way::Typed,
    Way::Typed,
    Way::Typed,
    Way::Save,
    Way::Write,
];

/// How many transactions each of them runs in one history.
const TRANSACTIONS: u32 = 100;

/// Runs the tasks, and returns what they did and saw.
async fn record(kind: Kind, isolation: Isolation, random: &mut Random) -> Recorded {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Cell>().await.unwrap();
    let shared = Arc::new(Shared::new(db, kind, isolation, Log::default()));
    let ways = match kind {
        Kind::Lists => LISTS,
        Kind::Registers => REGISTERS,
    };
    let mut tasks = JoinSet::new();
    for (process, way) in (0..).zip(ways) {
        let (shared, random) = (Arc::clone(&shared), random.branch());
        tasks.spawn(task::run(shared, way, process, random, TRANSACTIONS));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap().unwrap();
    }
    Arc::into_inner(shared).unwrap().into_recorded()
}

const fn promised(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Serializable => "strict-serializable",
        Isolation::Snapshot => "strong-snapshot-isolation",
    }
}

async fn keeps_its_promise(test: &str, kind: Kind, isolation: Isolation) {
    let mut random = Random::seeded(test);
    let end = Instant::now() + lasting(Duration::from_secs(3), Duration::from_secs(240));
    let (mut committed, mut failed) = (0, 0);
    loop {
        let recorded = record(kind, isolation, &mut random).await;
        let report = recorded.check(kind, promised(isolation));
        assert_eq!(report.valid, Valid::True, "{:#?}", report.anomalies);
        committed += recorded.committed();
        failed += recorded.failed();
        for (name, plant) in planted::ALL {
            if isolation == Isolation::Snapshot && *name == "write skew" {
                continue; // this level allows it
            }
            let mut spoilt = recorded.clone();
            plant(kind, &mut spoilt);
            let report = spoilt.check(kind, promised(isolation));
            assert_eq!(report.valid, Valid::False, "a {name} was not found");
        }
        if Instant::now() >= end {
            break;
        }
    }
    eprintln!("{test}: {committed} transactions, {failed} more that conflicted");
    assert!(failed > 0, "nobody met anybody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appended_lists_are_strictly_serializable() {
    let test = "appended_lists_are_strictly_serializable";
    keeps_its_promise(test, Kind::Lists, Isolation::Serializable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appended_lists_are_snapshot_isolated() {
    let test = "appended_lists_are_snapshot_isolated";
    keeps_its_promise(test, Kind::Lists, Isolation::Snapshot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registers_are_strictly_serializable() {
    let test = "registers_are_strictly_serializable";
    keeps_its_promise(test, Kind::Registers, Isolation::Serializable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registers_are_snapshot_isolated() {
    let test = "registers_are_snapshot_isolated";
    keeps_its_promise(test, Kind::Registers, Isolation::Snapshot).await;
}

/// The levels differ, and the checker sees it: no edited history, but two sessions that did this.
#[tokio::test]
async fn a_write_skew_of_snapshot_sessions_is_found_in_their_history() {
    for kind in [Kind::Lists, Kind::Registers] {
        let db = Database::temporary().await.unwrap();
        db.create_tables::<Cell>().await.unwrap();
        let shared = Shared::new(db, kind, Isolation::Snapshot, Log::default());
        task::write_skew(&shared).await.unwrap();
        let recorded = shared.into_recorded();
        let report = recorded.check(kind, "strong-snapshot-isolation");
        assert_eq!(report.valid, Valid::True, "{:#?}", report.anomalies);
        let report = recorded.check(kind, "serializable");
        assert_eq!(report.valid, Valid::False);
        assert_eq!(report.anomaly_types, ["G2-item"]);
    }
}
