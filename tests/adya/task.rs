//! A task: transactions of a few reads and writes each, in one of the ways there are to write.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use adya::history::{Id, Mop, ReadValue};
use anabranch::{error::Result, prelude::*};
use anabranch_tests::random::Random;
use sqlx::SqliteExecutor;

use crate::history::{Kind, Log, Recorded};

/// Elements with commas between, or one.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "cells")]
pub(crate) struct Cell {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) text: String,
    #[entity(version)]
    pub(crate) version: i64,
    #[entity(commit_seq)]
    pub(crate) seq: CommitSeq,
}

/// How a task writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A session that is held, raw SQL.
    Raw,
    /// A session that is held, and its context.
    Typed,
    /// `db.concurrent_with`, which repeats it.
    Closure,
    /// Plain saves and plain reads, a key at a time.
    Save,
    /// `db.begin`.
    Write,
}

/// What all tasks have.
#[derive(Debug)]
pub(crate) struct Shared {
    db: Database,
    kind: Kind,
    isolation: Isolation,
    log: Log,
    /// Elements are written once, and are larger than keys.
    next: AtomicU32,
}

const FIRST_ELEMENT: u32 = 100_000;
/// How many keys are in use at once, and how many elements are made before the next comes and the oldest goes.
const KEYS: u64 = 5;
const ELEMENTS: u32 = 60;

impl Shared {
    pub(crate) fn new(db: Database, kind: Kind, isolation: Isolation, log: Log) -> Self {
        Self {
            db,
            kind,
            isolation,
            log,
            next: AtomicU32::new(FIRST_ELEMENT),
        }
    }

    pub(crate) fn into_recorded(self) -> Recorded {
        self.log.into_recorded()
    }

    fn write(&self, key: Id) -> Mop {
        let value = self.next.fetch_add(1, Relaxed);
        match self.kind {
            Kind::Lists => Mop::Append { key, value },
            Kind::Registers => Mop::Write { key, value },
        }
    }

    /// What the next transaction of a task does.
    fn plan(&self, way: Way, random: &mut Random) -> Vec<Mop> {
        let length = match way {
            Way::Save => 1,
            _ => 1 + random.below(4),
        };
        // From 1: an entity with key 0 is given another by the writer.
        let oldest = 1 + (self.next.load(Relaxed) - FIRST_ELEMENT) / ELEMENTS;
        let steps = (0..length).map(|_| {
            let key = oldest + u32::try_from(random.below(KEYS)).unwrap_or(0);
            if random.once_in(2) {
                self.write(key)
            } else {
                read(key, ReadValue::Nil)
            }
        });
        steps.collect()
    }
}

const fn read(key: Id, value: ReadValue) -> Mop {
    Mop::Read { key, value }
}

/// Runs a task to its end.
pub(crate) async fn run(
    shared: std::sync::Arc<Shared>,
    way: Way,
    process: i64,
    mut random: Random,
    transactions: u32,
) -> Result<()> {
    for _ in 0..transactions {
        let plan = shared.plan(way, &mut random);
        shared.log.begins(process, &plan);
        match attempt(&shared, way, &plan).await {
            Ok((seen, number)) => shared.log.committed(process, seen, number),
            Err(error) if error.is_conflict() => shared.log.failed(process, &plan),
            // Two added the same key.
            Err(error) if way == Way::Save && error.kind() == ErrorKind::Unique => {
                shared.log.failed(process, &plan);
            }
            Err(error) => return Err(error),
        }
        for _ in 0..random.below(4) {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

type Ended = (Vec<Mop>, Option<i64>);

async fn attempt(shared: &Shared, way: Way, plan: &[Mop]) -> Result<Ended> {
    let (db, kind) = (&shared.db, shared.kind);
    match way {
        Way::Raw | Way::Typed => {
            let mut session = db.begin_concurrent(shared.isolation).await?;
            let seen = in_session(kind, way, &mut session, plan).await?;
            Ok((seen, session.commit().await?))
        }
        Way::Closure => {
            let options = ConcurrentOptions::new().isolation(shared.isolation);
            let plan = plan.to_vec();
            let seen = db
                .concurrent_with(options, async move |session| {
                    let plan = plan.clone();
                    in_session(kind, Way::Raw, session, &plan).await
                })
                .await?;
            Ok((seen, None))
        }
        Way::Save => {
            let mut ctx = db.context();
            let seen = typed(kind, &mut ctx, &plan[0]).await?;
            let saved = ctx.save_changes().await?;
            Ok((vec![seen], saved.commit_seq.map(|number| number.0)))
        }
        Way::Write => {
            let mut tx = db.begin().await?;
            let mut ctx = tx.context();
            let mut seen = Vec::new();
            for mop in plan {
                seen.push(typed(kind, &mut ctx, mop).await?);
                ctx.save_changes().await?;
                tokio::task::yield_now().await;
            }
            drop(ctx);
            Ok((seen, tx.commit().await?))
        }
    }
}

async fn in_session(kind: Kind, way: Way, session: &mut Session, plan: &[Mop]) -> Result<Vec<Mop>> {
    let mut seen = Vec::new();
    for mop in plan {
        seen.push(if way == Way::Raw {
            raw(kind, &mut *session, mop).await?
        } else {
            let mut ctx = session.context();
            let mop = typed(kind, &mut ctx, mop).await?;
            ctx.save_changes().await?;
            mop
        });
        tokio::task::yield_now().await;
    }
    Ok(seen)
}

/// Two sessions read each what the other writes; a third transaction reads both.
pub(crate) async fn write_skew(shared: &Shared) -> Result<()> {
    let plans = [
        [read(1, ReadValue::Nil), shared.write(2)],
        [read(2, ReadValue::Nil), shared.write(1)],
    ];
    let mut sessions = Vec::new();
    for (process, plan) in (0..).zip(&plans) {
        shared.log.begins(process, plan);
        sessions.push(shared.db.begin_concurrent(shared.isolation).await?);
    }
    let mut seen = Vec::new();
    for (session, plan) in sessions.iter_mut().zip(&plans) {
        seen.push(in_session(shared.kind, Way::Raw, session, plan).await?);
    }
    for (process, (session, seen)) in (0..).zip(sessions.into_iter().zip(seen)) {
        let number = session.commit().await?;
        shared.log.committed(process, seen, number);
    }
    let plan = [read(1, ReadValue::Nil), read(2, ReadValue::Nil)];
    shared.log.begins(0, &plan);
    let (seen, number) = attempt(shared, Way::Write, &plan).await?;
    shared.log.committed(0, seen, number);
    Ok(())
}

const APPEND: &str = "INSERT INTO cells (id, text, version, seq) VALUES (?, ?, 1, 0)
    ON CONFLICT (id) DO UPDATE SET text = text || ',' || excluded.text, version = version + 1";
const WRITE: &str = "INSERT INTO cells (id, text, version, seq) VALUES (?, ?, 1, 0)
    ON CONFLICT (id) DO UPDATE SET text = excluded.text, version = version + 1";

async fn raw<'c>(kind: Kind, executor: impl SqliteExecutor<'c>, mop: &Mop) -> Result<Mop> {
    match mop {
        Mop::Read { key, .. } => {
            let found: Option<String> = sqlx::query_scalar("SELECT text FROM cells WHERE id = ?")
                .bind(i64::from(*key))
                .fetch_optional(executor)
                .await?;
            Ok(read(*key, parse(kind, found.as_deref())))
        }
        Mop::Append { key, value } | Mop::Write { key, value } => {
            sqlx::query(match kind {
                Kind::Lists => APPEND,
                Kind::Registers => WRITE,
            })
            .bind(i64::from(*key))
            .bind(value.to_string())
            .execute(executor)
            .await?;
            Ok(mop.clone())
        }
    }
}

async fn typed(kind: Kind, ctx: &mut Context<'_>, mop: &Mop) -> Result<Mop> {
    let found = ctx.find::<Cell>(i64::from(mop.key())).await?;
    let (key, value) = match mop {
        Mop::Read { key, .. } => {
            let text = found.map(|cell| ctx[cell].text.as_str());
            return Ok(read(*key, parse(kind, text)));
        }
        Mop::Append { key, value } | Mop::Write { key, value } => (*key, value.to_string()),
    };
    match (found, kind) {
        (None, _) => {
            ctx.add(Cell {
                id: i64::from(key),
                text: value,
                version: 0,
                seq: CommitSeq(0),
            });
        }
        (Some(cell), Kind::Lists) => {
            let text = &mut ctx[cell].text;
            text.push(',');
            text.push_str(&value);
        }
        (Some(cell), Kind::Registers) => ctx[cell].text = value,
    }
    Ok(mop.clone())
}

fn parse(kind: Kind, text: Option<&str>) -> ReadValue {
    let number = |text: &str| text.parse::<u32>().expect("an element");
    match (kind, text) {
        (Kind::Lists, text) => {
            let elements = text.unwrap_or_default().split(',');
            ReadValue::List(
                elements
                    .filter(|text| !text.is_empty())
                    .map(number)
                    .collect(),
            )
        }
        (Kind::Registers, Some(text)) => ReadValue::Scalar(number(text)),
        (Kind::Registers, None) => ReadValue::Nil,
    }
}
