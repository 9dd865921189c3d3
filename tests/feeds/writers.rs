//! Those who write, and what they were told is committed.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    thread,
    time::Instant,
};

use anabranch::{
    context::Context,
    engine::{Isolation, Transaction},
    error::Result,
    prelude::*,
};
use anabranch_tests::{load::plainly, random::Random};
use rusqlite::TransactionBehavior;
use tokio::runtime::Handle;

use crate::Item;

/// Each writer has so many keys of its own.
const KEYS: u64 = 40;
/// And all write these.
const SHARED: i64 = 8;
/// The writers; the last one is the foreign program.
pub(crate) const NUMBERS: [i64; 9] = [1, 2, 3, 4, 5, 6, 7, 8, FOREIGN];
const FOREIGN: i64 = 9;
/// A writer's keys begin at its number times this.
pub(crate) const RANGE: i64 = 1000;

/// A change of a key of the writer's own that was acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acknowledged {
    pub(crate) key: i64,
    /// Nothing where it was deleted.
    pub(crate) value: Option<i64>,
    /// The number of the commit where the writer was told.
    pub(crate) seq: Option<i64>,
}

/// A change that is to be made.
#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(i64, i64),
    Update(i64, i64),
    Delete(i64),
}

impl Step {
    const fn key(self) -> i64 {
        match self {
            Self::Insert(key, _) | Self::Update(key, _) | Self::Delete(key) => key,
        }
    }

    const fn value(self) -> Option<i64> {
        match self {
            Self::Insert(_, value) | Self::Update(_, value) => Some(value),
            Self::Delete(_) => None,
        }
    }
}

fn another_value() -> i64 {
    static VALUES: AtomicI64 = AtomicI64::new(1);
    VALUES.fetch_add(1, Relaxed)
}

/// The rows that are there at first, and some that are not any more.
pub(crate) async fn fill(db: &Database) -> Vec<Acknowledged> {
    let mut log = Vec::new();
    for keys in [1..=SHARED, 20_001..=20_500] {
        let steps: Vec<_> = keys.map(|key| Step::Insert(key, another_value())).collect();
        let seq = save(&mut db.context(), &steps).await.unwrap();
        log.extend(steps.iter().map(|step| acknowledged(*step, seq)));
        let gone: Vec<_> = (steps.iter().skip(10).step_by(7))
            .map(|step| Step::Delete(step.key()))
            .collect();
        let seq = save(&mut db.context(), &gone).await.unwrap();
        log.extend(gone.iter().map(|step| acknowledged(*step, seq)));
    }
    log.retain(|change| change.key > SHARED);
    log
}

fn acknowledged(step: Step, seq: Option<i64>) -> Acknowledged {
    Acknowledged {
        key: step.key(),
        value: step.value(),
        seq,
    }
}

/// Eight writers and a foreign one; what they were told, each in its order.
pub(crate) fn write_until(db: &Database, end: Instant, random: &mut Random) -> Vec<Acknowledged> {
    let runtime = Handle::current();
    thread::scope(|scope| {
        let writers = NUMBERS.map(|number| {
            let writer = Writer::new(number, random.branch());
            let runtime = runtime.clone();
            scope.spawn(move || match number {
                FOREIGN => writer.foreign_until(db, end),
                _ => runtime.block_on(writer.write_until(db, end)),
            })
        });
        let logs = writers.into_iter().map(|writer| writer.join().unwrap());
        logs.flatten().collect()
    })
}

/// One of them.
#[derive(Debug)]
struct Writer {
    number: i64,
    random: Random,
    /// The keys that it wrote, and whether they are there.
    known: BTreeMap<i64, bool>,
    log: Vec<Acknowledged>,
}

impl Writer {
    const fn new(number: i64, random: Random) -> Self {
        Self {
            number,
            random,
            known: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    async fn write_until(mut self, db: &Database, end: Instant) -> Vec<Acknowledged> {
        while Instant::now() < end {
            let steps = self.draw();
            match self.commit(db, &steps).await {
                Ok(seq) => self.note(&steps, seq),
                // It did not take place.
                Err(error) if error.is_conflict() || error.is_retryable() => {}
                Err(error) => panic!("writer {}: {error:?}", self.number),
            }
            tokio::time::sleep(self.random.micros(4000)).await;
        }
        self.log
    }

    async fn commit(&mut self, db: &Database, steps: &[Step]) -> Result<Option<i64>> {
        match self.number {
            1 | 2 => save(&mut db.context(), steps).await,
            3 => {
                let mut tx = db.begin().await?;
                save(&mut tx.context(), steps).await?;
                tx.commit().await
            }
            4 => {
                let written = db.write(async |tx| write(tx, steps).await);
                written.await.map(|()| None)
            }
            5 | 6 => {
                let written = db.concurrent(async |s| save(&mut s.context(), steps).await);
                written.await.map(|_| None)
            }
            // Open while many others commit.
            _ => {
                let mut s = db.begin_concurrent(Isolation::Serializable).await?;
                save(&mut s.context(), steps).await?;
                tokio::time::sleep(self.random.micros(100_000)).await;
                s.commit().await
            }
        }
    }

    /// Another program, which has the triggers only.
    fn foreign_until(mut self, db: &Database, end: Instant) -> Vec<Acknowledged> {
        let mut connection = plainly(db.path()).unwrap();
        while Instant::now() < end {
            let steps = self.draw();
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .unwrap();
            for step in &steps {
                let (sql, value) = sql(*step);
                let key = step.key();
                let changed = match value {
                    Some(value) => transaction.execute(sql, [value, key]),
                    None => transaction.execute(sql, [key]),
                };
                assert_eq!(changed, Ok(1));
            }
            transaction.commit().unwrap();
            self.note(&steps, None);
            thread::sleep(self.random.micros(10_000));
        }
        self.log
    }

    /// Some changes of different rows.
    fn draw(&mut self) -> Vec<Step> {
        let mut steps = BTreeMap::new();
        for _ in 0..=self.random.below(4) {
            let key = self.number * RANGE + i64::try_from(self.random.below(KEYS)).unwrap();
            let value = another_value();
            let step = match self.known.get(&key) {
                Some(true) if self.random.once_in(3) => Step::Delete(key),
                Some(true) => Step::Update(key, value),
                _ => Step::Insert(key, value),
            };
            steps.insert(key, step);
        }
        if self.random.once_in(4) {
            let key = 1 + i64::try_from(self.random.below(SHARED as u64)).unwrap();
            steps.insert(key, Step::Update(key, another_value()));
        }
        steps.into_values().collect()
    }

    fn note(&mut self, steps: &[Step], seq: Option<i64>) {
        for step in steps.iter().filter(|step| step.key() > SHARED) {
            self.known.insert(step.key(), step.value().is_some());
            self.log.push(acknowledged(*step, seq));
        }
    }
}

/// Through a context, whatever it belongs to.
async fn save(ctx: &mut Context<'_>, steps: &[Step]) -> Result<Option<i64>> {
    for step in steps {
        match *step {
            Step::Insert(id, value) => {
                let seq = CommitSeq(0);
                ctx.add(Item { id, value, seq });
            }
            Step::Update(id, value) => {
                let item = ctx.find::<Item>(id).await?;
                ctx[item.expect("the row is there")].value = value;
            }
            Step::Delete(id) => {
                let item = ctx.find::<Item>(id).await?;
                ctx.remove(item.expect("the row is there"));
            }
        }
    }
    let saved = ctx.save_changes().await?;
    Ok(saved.commit_seq.map(|seq| seq.0))
}

/// By statements of the application's own.
async fn write(tx: &mut Transaction, steps: &[Step]) -> Result<()> {
    for step in steps {
        let (sql, value) = sql(*step);
        let query = match value {
            Some(value) => sqlx::query(sql).bind(value),
            None => sqlx::query(sql),
        };
        query.bind(step.key()).execute(&mut *tx).await?;
    }
    Ok(())
}

const fn sql(step: Step) -> (&'static str, Option<i64>) {
    match step {
        Step::Insert(_, value) => ("INSERT INTO items (value, id) VALUES (?, ?)", Some(value)),
        Step::Update(_, value) => ("UPDATE items SET value = ? WHERE id = ?", Some(value)),
        Step::Delete(_) => ("DELETE FROM items WHERE id = ?", None),
    }
}
