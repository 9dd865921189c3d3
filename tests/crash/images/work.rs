//! What is done to a database while it is recorded.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use anabranch::{
    engine::{Bytes, Synchronous},
    error::Result,
    prelude::*,
    recording::{Entry, Recorder},
};
use anabranch_tests::{
    load::{Line, Order, add_line, add_order},
    random::{Random, is_long},
};
use tokio::{runtime::Handle, task::JoinSet};

use crate::images::sessions::{about_to_commit, beside, contended, extend, given_up};

/// One transaction, written with what it did: which order has how many lines after it.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "steps")]
pub(super) struct Step {
    #[entity(id)]
    id: i64,
    task: i64,
    serial: i64,
    #[entity(references = Order)]
    order_id: i64,
    lines: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

/// Who did a transaction, and which of its transactions it is.
pub(super) type Name = (i64, i64);

/// When a transaction was asked for and when it was acknowledged, as positions in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) issued: usize,
    pub(super) acknowledged: usize,
}

/// What was done and recorded.
#[derive(Debug)]
pub(super) struct History {
    pub(super) synchronous: Synchronous,
    pub(super) entries: Vec<Entry>,
    /// Up to here everything is on the disk: the tables, and nothing in the log.
    pub(super) start: usize,
    /// All transactions, in the order of their commits.
    pub(super) transactions: Vec<(Name, Times)>,
}

/// What the tasks share.
struct Shared {
    db: Database,
    recorder: Recorder,
    times: Mutex<HashMap<Name, Times>>,
}

/// How a transaction is made. A new way in is one more of these, and an arm in [`Shared::run`].
#[derive(Debug, Clone, Copy)]
enum Way {
    /// A save of a new order.
    Save,
    /// A save of one more line of an order.
    Extend,
    /// Several steps in `db.write`, raw queries among them.
    Write,
    /// The same, after one that is rolled back.
    WriteAgain,
    /// A session beside the others.
    Session,
    /// One that others get in the way of.
    Contended,
    /// The same, surely, and run again by hand.
    Overtaken,
    /// One after another that is given up.
    SessionAgain,
    /// A context that is a session, and adds a line.
    ExtendConcurrently,
}

const WAYS: [Way; 14] = [
    Way::Save,
    Way::Save,
    Way::Save,
    Way::Extend,
    Way::Extend,
    Way::Write,
    Way::WriteAgain,
    Way::Session,
    Way::Session,
    Way::Contended,
    Way::Contended,
    Way::Overtaken,
    Way::SessionAgain,
    Way::ExtendConcurrently,
];
/// Added to the serial of a transaction for one that overtakes it.
const OVERTAKING: i64 = 1_000;
const TASKS: i64 = 4;

/// Works on a new database with several tasks at once.
pub(super) async fn work(synchronous: Synchronous, random: &mut Random) -> History {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.db");
    let recorder = Recorder::start(&path).unwrap();
    let db = Database::builder(&path)
        .synchronous(synchronous)
        // Many checkpoints, and logs that begin anew and are cut.
        .wal_autocheckpoint(60)
        .journal_size_limit(Bytes(100_000))
        .open()
        .await
        .unwrap();
    db.create_tables::<(Order, Line, Step)>().await.unwrap();
    assert!(db.checkpoint().await.unwrap().is_complete());
    let start = recorder.position();
    let shared = Arc::new(Shared {
        db,
        recorder,
        times: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        // On a thread of its own: the compiler does not see that so many borrowing closures may move between threads.
        let (shared, random) = (Arc::clone(&shared), random.branch());
        let runtime = Handle::current();
        tasks.spawn_blocking(move || runtime.block_on(shared.work(task, random)));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap().unwrap();
    }
    shared.history(synchronous, start).await
}

impl Shared {
    async fn work(self: Arc<Self>, task: i64, mut random: Random) -> Result<()> {
        let mut orders = Vec::new();
        for serial in 0..if is_long() { 150 } else { 50 } {
            let mut way = WAYS[usize::try_from(random.below(WAYS.len() as u64)).unwrap()];
            if orders.is_empty() {
                way = Way::Save;
            }
            let name = (task, serial);
            let issued = self.recorder.position();
            let order = self.run(way, name, &orders, &mut random).await?;
            self.acknowledged(name, issued);
            orders.push(order);
            if random.once_in(40) {
                self.db.checkpoint().await?;
            }
        }
        Ok(())
    }

    /// Notes that a transaction was acknowledged just now.
    fn acknowledged(&self, name: Name, issued: usize) {
        let acknowledged = self.recorder.position();
        let times = Times {
            issued,
            acknowledged,
        };
        self.times.lock().unwrap().insert(name, times);
    }

    /// Does one transaction, which writes one [`Step`]; the order that it was about.
    async fn run(&self, way: Way, name: Name, orders: &[i64], random: &mut Random) -> Result<i64> {
        let some = usize::try_from(random.below(orders.len().max(1) as u64)).unwrap();
        match way {
            Way::Save => self.save(name, random).await,
            Way::Extend => {
                let mut ctx = self.db.context();
                let order = ctx.find::<Order>(orders[some]).await?.unwrap();
                add_line(&mut ctx, order);
                let lines = ctx[order].lines;
                ctx.add(step(name, orders[some], lines));
                ctx.save_changes().await?;
                Ok(orders[some])
            }
            Way::Write => self.db.write(async |tx| write(tx, name).await).await,
            Way::WriteAgain => {
                let mut undone = self.db.begin().await?;
                write(&mut undone, name).await?;
                undone.rollback().await?;
                self.db.write(async |tx| write(tx, name).await).await
            }
            Way::Session => beside(&self.db, name).await,
            Way::Contended => contended(&self.db, name).await,
            Way::Overtaken => {
                let session = about_to_commit(&self.db, name).await?;
                let overtaking = (name.0, name.1 + OVERTAKING);
                let issued = self.recorder.position();
                self.save(overtaking, random).await?;
                self.acknowledged(overtaking, issued);
                let error = session.commit().await.expect_err("it was overtaken");
                assert!(error.is_conflict(), "{error:?}");
                contended(&self.db, name).await
            }
            Way::SessionAgain => {
                given_up(&self.db, (name.0, -1 - name.1), random).await?;
                beside(&self.db, name).await
            }
            Way::ExtendConcurrently => extend(&self.db, name, orders[some]).await,
        }
    }

    async fn save(&self, name: Name, random: &mut Random) -> Result<i64> {
        let mut ctx = self.db.context();
        let lines = 1 + i64::try_from(random.below(30)).unwrap();
        let order = add_order(&mut ctx, name.0, name.1, lines);
        let order_id = ctx[order].id;
        ctx.add(step(name, order_id, lines));
        ctx.save_changes().await?;
        Ok(ctx[order].id)
    }

    async fn history(&self, synchronous: Synchronous, start: usize) -> History {
        let steps = Step::query().order_by(Step::SEQ.asc());
        let steps = steps.all(&self.db).await.unwrap();
        let entries = self.recorder.entries();
        let statistics = self.db.statistics();
        assert!(statistics.session_conflicts > 0 && statistics.reruns > 0);
        assert_eq!(statistics.session_alarms, 0);
        eprintln!(
            "images: {} sessions, {} validated, {} conflicts, {} reruns",
            statistics.sessions,
            statistics.replays,
            statistics.session_conflicts,
            statistics.reruns
        );
        self.db.close().await.unwrap();
        let times = self.times.lock().unwrap();
        assert_eq!(steps.len(), times.len());
        assert!(steps.windows(2).all(|two| two[0].seq < two[1].seq));
        let transactions = steps
            .iter()
            .map(|step| (step.task, step.serial))
            .map(|name| (name, times[&name]))
            .collect();
        History {
            synchronous,
            entries,
            start,
            transactions,
        }
    }
}

pub(super) fn step((task, serial): Name, order_id: i64, lines: i64) -> Step {
    Step {
        id: 0,
        task,
        serial,
        order_id,
        lines,
        seq: CommitSeq(0),
    }
}

/// An order in two steps, the second of them raw.
async fn write(tx: &mut Transaction, name: Name) -> Result<i64> {
    let mut ctx = tx.context();
    let order = add_order(&mut ctx, name.0, name.1, 1);
    let order_id = ctx[order].id;
    ctx.add(step(name, order_id, 2));
    ctx.save_changes().await?;
    let id = ctx[order].id;
    drop(ctx);
    for sql in [
        "INSERT INTO lines (order_id, position) VALUES (?, 1)",
        "UPDATE orders SET lines = 2 WHERE id = ?",
    ] {
        sqlx::query(sql).bind(id).execute(&mut *tx).await?;
    }
    Ok(id)
}
