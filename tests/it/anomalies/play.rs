//! A script on the stage: a session for each transaction, stepped in the order of the script.

use anabranch::{engine::SessionGuard, prelude::*};
use anabranch_tests::{Mode, execute, outsider};

use crate::anomalies::{
    actor::{Access, Cast, Item, outside, raw, table, typed},
    catalogue::{Op, Script},
    oracle::{Ended, Seen, Table},
};

/// A database with the table of the scripts, and another program beside it.
pub(crate) struct Stage {
    db: Database,
    outsider: rusqlite::Connection,
}

/// What came of a script.
#[derive(Debug)]
pub(crate) struct Played {
    /// In the order of their numbers.
    pub(crate) committed: Vec<Ended>,
    /// Their numbers, from 1.
    pub(crate) conflicts: Vec<usize>,
    pub(crate) table: Table,
}

/// One transaction of a script that is being played.
struct Part {
    cast: Cast,
    /// Begun with its first step.
    session: Option<SessionGuard>,
    done: Vec<(Op, Seen)>,
    /// Steps of one that does all at once.
    later: Vec<Op>,
    committed: bool,
    conflicted: bool,
}

impl Stage {
    pub(crate) async fn new(mode: Mode) -> Self {
        let db = mode.temporary().await;
        db.create_tables::<Item>().await.unwrap();
        let outsider = outsider(db.path());
        Self { db, outsider }
    }

    pub(crate) async fn play(
        &mut self,
        script: &Script,
        isolation: Isolation,
        cast: [Cast; 3],
    ) -> Played {
        execute(&self.db, "DELETE FROM items").await;
        execute(&self.db, "INSERT INTO items VALUES (1, 10), (2, 20)").await;
        let mut parts = cast.map(|cast| Part {
            cast,
            session: None,
            done: Vec::new(),
            later: Vec::new(),
            committed: false,
            conflicted: false,
        });
        for (number, op) in script.steps {
            self.step(&mut parts[number - 1], *op, isolation).await;
        }
        let conflicts = (1..=3).filter(|number| parts[number - 1].conflicted);
        Played {
            conflicts: conflicts.collect(),
            committed: (parts.into_iter())
                .filter(|part| part.committed)
                .map(|part| Ended { ops: part.done })
                .collect(),
            table: table(&self.outsider),
        }
    }

    async fn step(&mut self, part: &mut Part, op: Op, isolation: Isolation) {
        match (part.cast, op) {
            (Cast::Session(_), Op::Commit) => commit(part).await,
            (Cast::Session(_), Op::Rollback) => {
                part.session.take().unwrap().rollback().await.unwrap();
            }
            (Cast::Session(access), _) => {
                if part.session.is_none() {
                    let begun = self.db.begin_concurrent(isolation).await.unwrap();
                    assert!(!begun.is_exclusive(), "sessions run side by side");
                    part.session = Some(begun);
                }
                let session = part.session.as_mut().unwrap();
                let seen = in_session(&self.db, session, access, op).await;
                part.done.push((op, seen));
            }
            (_, Op::Commit) => self.all_at_once(part).await,
            (_, Op::Rollback) => {}
            (..) => part.later.push(op),
        }
    }

    /// Nobody is in the way: sessions hold no lock.
    async fn all_at_once(&mut self, part: &mut Part) {
        let mut done = Vec::new();
        match part.cast {
            Cast::Write => {
                let mut tx = self.db.begin().await.unwrap();
                for op in &part.later {
                    done.push((*op, raw(&mut *tx, *op).await.unwrap()));
                }
                tx.commit().await.unwrap();
            }
            Cast::Save => {
                let mut ctx = self.db.context();
                for op in &part.later {
                    done.push((*op, typed(&self.db, &mut ctx, *op).await.unwrap()));
                }
                ctx.save_changes().await.unwrap();
            }
            Cast::Process => {
                let transaction = self.outsider.transaction().unwrap();
                for op in &part.later {
                    done.push((*op, outside(&transaction, *op).unwrap()));
                }
                transaction.commit().unwrap();
            }
            Cast::Session(_) => unreachable!("it goes step by step"),
        }
        part.done = done;
        part.committed = true;
    }
}

async fn in_session(db: &Database, session: &mut Session, access: Access, op: Op) -> Seen {
    match access {
        Access::Raw => raw(session, op).await.unwrap(),
        Access::Typed => {
            let mut ctx = session.context();
            let seen = typed(db, &mut ctx, op).await.unwrap();
            ctx.save_changes().await.unwrap();
            seen
        }
    }
}

async fn commit(part: &mut Part) {
    match part.session.take().unwrap().commit().await {
        Ok(_) => part.committed = true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert!(
                error.statement().is_some() || error.table() == Some("items"),
                "it says where: {error}"
            );
            part.conflicted = true;
        }
    }
}
