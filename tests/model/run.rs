//! A run: a context and the worlds that it may be in, step by step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anabranch::{context::Interceptor, error::Result, prelude::*, value::Value};
use anabranch_tests::{Mode, dropped_after, outsider};

use crate::{
    op::{End, Op, Save},
    save::{Plan, is_temporary},
    tables::{Handle, Key, LEAF, NODE, PART, Row, SPECS, TAG, Tables, integer, typed},
    world::{Act, Answer, Db, How, World},
};

/// Says no when it is told to.
struct Refuser(Arc<AtomicBool>);

impl Interceptor for Refuser {
    async fn saving(&self, _: &mut Context<'_>) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::application("not now"));
        }
        Ok(())
    }
}

/// A database for run after run.
pub(crate) struct Stage {
    pub(crate) db: Database,
    /// Plain SQLite on the same file.
    pub(crate) plain: rusqlite::Connection,
}

impl Stage {
    pub(crate) async fn new(mode: Mode) -> Self {
        let db = mode.temporary().await;
        db.create_tables::<Tables>().await.unwrap();
        // Its table of tokens is made by the first.
        db.context()
            .save_changes_with(&SaveToken::new())
            .await
            .unwrap();
        let plain = outsider(db.path());
        plain.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        Self { db, plain }
    }

    /// Nothing is broken, and nobody has a transaction open. Leaves no rows.
    fn strike(self) -> Self {
        let check = |pragma: &str| {
            let mut statement = self.plain.prepare(pragma).unwrap();
            let rows = statement
                .query_map([], |row| row.get::<_, String>(0))
                .unwrap();
            rows.map(std::result::Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(check("PRAGMA foreign_key_check"), [""; 0]);
        assert_eq!(check("PRAGMA integrity_check"), ["ok"]);
        self.plain.busy_timeout(Duration::ZERO).unwrap();
        let empty = "BEGIN IMMEDIATE; DELETE FROM tag; DELETE FROM part; DELETE FROM leaf; DELETE FROM node;
             DELETE FROM anabranch_saves; COMMIT";
        self.plain.execute_batch(empty).unwrap();
        self.plain.busy_timeout(Duration::from_secs(10)).unwrap();
        self
    }
}

pub(crate) struct Run {
    pub(crate) stage: Stage,
    pub(crate) ctx: Context<'static>,
    refuse: Arc<AtomicBool>,
    /// All handles that there ever were.
    pub(crate) slots: BTreeMap<usize, Handle>,
    pub(crate) worlds: Vec<World>,
    pub(crate) marks: i64,
    /// The temporary keys that entities began with.
    pub(crate) temporary: BTreeMap<usize, i64>,
    /// The rows as they were seen last.
    pub(crate) seen: Db,
}

impl Run {
    pub(crate) fn new(stage: Stage) -> Self {
        let mut ctx = stage.db.context();
        let refuse = Arc::new(AtomicBool::new(false));
        ctx.intercept(Refuser(Arc::clone(&refuse)));
        Self {
            stage,
            ctx,
            refuse,
            slots: BTreeMap::new(),
            worlds: vec![World::new()],
            marks: 0,
            temporary: BTreeMap::new(),
            seen: Db::default(),
        }
    }

    /// Does all steps, and leaves the stage for the next run.
    pub(crate) async fn all(mut self, ops: &[Op]) -> Stage {
        for op in ops {
            self.step(op).await;
            if self.is_muddled() {
                break;
            }
        }
        self.settle().await;
        self.end().await
    }

    async fn end(self) -> Stage {
        let is_muddled = self.is_muddled();
        drop(self.ctx);
        for token in (0..6).filter(|_| !is_muddled) {
            let was_saved = self
                .stage
                .db
                .was_saved(&name(token))
                .await
                .unwrap()
                .is_some();
            let mut worlds = self.worlds.iter();
            let known = worlds.any(|it| it.tokens.contains(&token) == was_saved);
            assert!(known, "token {token}: {was_saved}");
        }
        self.stage.strike()
    }

    /// The model does not say what comes next.
    pub(crate) fn is_muddled(&self) -> bool {
        self.worlds.iter().any(|world| world.muddled)
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.worlds.iter().any(|world| world.pending.is_some())
    }

    pub(crate) fn is_tracked(&self, slot: usize) -> bool {
        typed!(self.slots[&slot], handle => self.ctx.entry(handle).state() != EntityState::Detached)
    }

    /// The number of a handle: its own if it is tracked already.
    pub(crate) fn slot(&mut self, handle: Handle) -> usize {
        if let Some((slot, _)) = self.slots.iter().find(|(_, known)| **known == handle) {
            return *slot;
        }
        let slot = self.slots.len();
        self.slots.insert(slot, handle);
        slot
    }

    /// Waits for what is in flight, without anything else.
    pub(crate) async fn settle(&mut self) {
        if self.is_pending() {
            let stale = self.ctx.find::<crate::tables::Tag>(i64::MAX).await;
            assert_eq!(stale.unwrap(), None);
            self.observe(&Act::Settle, &Answer::Done);
        }
    }

    /// Compares what happened with what may happen; the worlds that fit go on.
    pub(crate) fn observe(&mut self, act: &Act, answer: &Answer) {
        self.seen = rows(&self.stage.plain);
        let seen = self.seen.clone();
        self.narrow(act, |world| {
            let mut worlds = Vec::new();
            for mut world in world.settled(&seen) {
                worlds.push(world.act(act, Some(answer)).map(|()| world));
            }
            worlds
        });
    }

    /// Keeps the worlds that fit; says why if none is left.
    fn narrow(
        &mut self,
        what: &dyn std::fmt::Debug,
        go_on: impl Fn(&World) -> Vec<std::result::Result<World, String>>,
    ) {
        let mut reasons = Vec::new();
        let mut left: Vec<World> = Vec::new();
        for world in self.worlds.iter().flat_map(go_on) {
            let fits = world.and_then(|mut world| {
                world.check_rows(&self.seen)?;
                if world.pending.is_none() && !world.muddled {
                    world.check_context(&self.ctx, &self.slots)?;
                }
                Ok(world)
            });
            match fits {
                Ok(world) => left.push(world),
                Err(reason) => reasons.push(reason),
            }
        }
        assert!(!left.is_empty(), "{what:?}\n  {}", reasons.join("\n  or "));
        let mut told = BTreeSet::new();
        left.retain(|world| told.insert(format!("{world:?}")));
        self.worlds = left;
    }

    /// Notes the keys that entities show by now: their rows may be gone before anybody looks.
    pub(crate) fn look_at_keys(&mut self) {
        for (slot, temporary) in &self.temporary {
            if let Some(row) = self.current(*slot)
                && let key = integer(&row[0])
                && !is_temporary(key)
            {
                for world in &mut self.worlds {
                    world.shown.entry(*temporary).or_insert(key);
                }
            }
        }
    }

    /// A call that did not wait: it is looked at now, or once it is known what became of what is in flight.
    pub(crate) fn noted(&mut self, act: &Act, answer: &Answer) {
        self.look_at_keys();
        if self.is_pending() {
            for world in &mut self.worlds {
                world.act(act, None).unwrap();
            }
        } else {
            self.observe(act, answer);
        }
    }

    /// Saves, and does with a failure what chance says.
    pub(crate) async fn save(&mut self, how: &Save, resolve: u8, heal: bool) {
        let answer = match how {
            Save::Plain => Some(self.ctx.save_changes().await),
            Save::Token(token) => Some(self.ctx.save_changes_with(&name(*token)).await),
            Save::Refused => {
                self.refuse.store(true, Ordering::Relaxed);
                let refused = self.ctx.save_changes().await.unwrap_err();
                self.refuse.store(false, Ordering::Relaxed);
                assert_eq!(refused.kind(), ErrorKind::Application);
                self.observe(&Act::Settle, &Answer::Done);
                None
            }
            Save::In { end, meanwhile } => self.save_in(*end, meanwhile).await,
            Save::Dropped {
                polls,
                held,
                token,
                meanwhile,
            } => self.dropped_save(*polls, *held, *token, meanwhile).await,
        };
        let token = match how {
            Save::Token(token) => Some(*token),
            Save::Dropped { token, .. } => *token,
            Save::Plain | Save::Refused | Save::In { .. } => None,
        };
        if let Some(answer) = answer {
            self.saved(answer, token, resolve, heal).await;
        }
    }

    /// A save was answered.
    async fn saved(&mut self, answer: Result<Saved>, token: Option<u8>, resolve: u8, heal: bool) {
        self.seen = rows(&self.stage.plain);
        let seen = self.seen.clone();
        let told = told(&answer);
        let conflicts = answer.as_ref().err().map(conflicts).unwrap_or_default();
        self.narrow(&(&answer, token), |world| {
            let after = |mut world: World| {
                if world.muddled {
                    return Ok(world);
                }
                let plan = world.plan(token);
                plan.fits(&told)?;
                match &told {
                    Answer::Saved(_) => world.accept(&plan, &seen),
                    Answer::Failed(ErrorKind::Conflict) => plan.fits_conflicts(&conflicts)?,
                    _ => {}
                }
                Ok(world)
            };
            world.settled(&seen).into_iter().map(after).collect()
        });
        match answer {
            // A row that went with another of this save is no conflict with others.
            Err(error) if error.is_conflict() && !self.is_loose(token) => {
                self.resolve(&error, resolve, &conflicts)
            }
            Err(_) if heal => self.heal(),
            _ => {}
        }
    }

    fn is_loose(&self, token: Option<u8>) -> bool {
        self.worlds.iter().any(|world| world.plan(token).is_loose())
    }

    fn resolve(&mut self, error: &Error, resolve: u8, conflicts: &BTreeSet<(usize, Key)>) {
        use anabranch::context::Winner;

        let how = match resolve {
            0 => How::Client,
            1 => How::Store,
            2 => How::Merge,
            3 => How::MergeWith { client: true },
            4 => How::MergeWith { client: false },
            _ => return,
        };
        let resolved = match how {
            How::Client => self.ctx.client_wins(error),
            How::Store => self.ctx.store_wins(error),
            How::Merge => self.ctx.merge(error),
            How::MergeWith { client: true } => self.ctx.merge_with(error, |_| Winner::Client),
            How::MergeWith { client: false } => self.ctx.merge_with(error, |_| Winner::Store),
        };
        let answer = resolved.map_or_else(|error| Answer::Failed(error.kind()), |()| Answer::Done);
        self.narrow(&(how, &answer), |world| {
            let mut world = world.clone();
            let expected = world.resolve(how, conflicts);
            let fits = if expected == answer {
                Ok(world)
            } else {
                Err(format!("{expected:?} was expected, not {answer:?}"))
            };
            vec![fits]
        });
    }

    /// Undoes all changes, so that the run goes on.
    fn heal(&mut self) {
        let changed: Vec<_> = (self.slots.keys().copied())
            .filter(|slot| self.is_tracked(*slot))
            .collect();
        for slot in changed {
            let reset = typed!(self.slots[&slot], handle => self.ctx.reset(handle));
            self.observe(&Act::Reset(slot), &Answer::Yes(reset));
            if !reset {
                let detached =
                    typed!(self.slots[&slot], handle => self.ctx.detach(handle).is_some());
                self.observe(&Act::Detach(slot), &Answer::Yes(detached));
            }
        }
    }

    /// From here on there is a plan in flight.
    fn depart(&mut self, plans: impl Fn(&World) -> Plan) {
        for world in &mut self.worlds {
            world.pending = Some((Box::new(plans(world)), Vec::new()));
        }
    }

    async fn save_in(&mut self, end: End, meanwhile: &[crate::op::Local]) -> Option<Result<Saved>> {
        self.settle().await;
        if self.is_muddled() {
            return None;
        }
        let mut tx = self.stage.db.begin().await.unwrap();
        let answer = if matches!(end, End::Undo) {
            let mut answer = None;
            let undone = tx.savepoint(async |tx| {
                answer = Some(self.ctx.save_changes_in(tx).await);
                Err::<(), _>(Error::application("undo it"))
            });
            assert_eq!(undone.await.unwrap_err().kind(), ErrorKind::Application);
            answer.unwrap()
        } else {
            self.ctx.save_changes_in(&mut tx).await
        };
        let written = matches!(&answer, Ok(saved) if *saved != Saved::default());
        if !written {
            tx.rollback().await.unwrap();
            return Some(answer);
        }
        for world in &self.worlds {
            world.plan(None).fits(&told(&answer)).unwrap();
        }
        let is_kept = matches!(end, End::Commit);
        self.depart(|world| world.plan(None).with_fate(is_kept));
        for local in meanwhile {
            self.local(local);
        }
        match end {
            End::Commit | End::Undo => drop(tx.commit().await.unwrap()),
            End::RollBack => tx.rollback().await.unwrap(),
            End::Drop => drop(tx),
        }
        None
    }

    async fn dropped_save(
        &mut self,
        polls: usize,
        held: bool,
        token: Option<u8>,
        meanwhile: &[crate::op::Local],
    ) -> Option<Result<Saved>> {
        self.settle().await;
        if self.is_muddled() {
            return None;
        }
        let holder = if held {
            Some(self.stage.db.begin().await.unwrap())
        } else {
            None
        };
        let token_name = token.map(name);
        let answer = match &token_name {
            Some(token) => dropped_after(polls, self.ctx.save_changes_with(token)).await,
            None => dropped_after(polls, self.ctx.save_changes()).await,
        };
        if answer.is_none() {
            self.depart(|world| world.plan(token));
            for local in meanwhile {
                self.local(local);
            }
        }
        if let Some(holder) = holder {
            holder.rollback().await.unwrap();
        }
        answer
    }
}

/// The name of a token.
pub(crate) fn name(token: u8) -> SaveToken {
    SaveToken::from_text(&format!("save {token}")).unwrap()
}

fn told(answer: &Result<Saved>) -> Answer {
    match answer {
        Ok(saved) => Answer::Saved(*saved),
        Err(error) => Answer::Failed(error.kind()),
    }
}

fn conflicts(error: &Error) -> BTreeSet<(usize, Key)> {
    let conflicts = error.conflicts().iter().map(|conflict| {
        let table = SPECS.iter().position(|spec| spec.name == conflict.table);
        (table.unwrap(), conflict.key.iter().map(integer).collect())
    });
    conflicts.collect()
}

/// All rows, as plain SQLite reads them.
pub(crate) fn rows(plain: &rusqlite::Connection) -> Db {
    [NODE, LEAF, PART, TAG].map(|table| {
        let spec = &SPECS[table];
        let sql = format!("SELECT {} FROM {}", spec.columns.join(", "), spec.name);
        let mut statement = plain.prepare_cached(&sql).unwrap();
        let found = statement.query_map([], |row| {
            (0..spec.columns.len())
                .map(|at| row.get_ref(at).map(value))
                .collect::<rusqlite::Result<Row>>()
        });
        let rows: Vec<Row> = found.unwrap().map(std::result::Result::unwrap).collect();
        let mut marks = BTreeSet::new();
        let once = |row: &Row| spec.mark.is_none_or(|at| marks.insert(integer(&row[at])));
        assert!(
            rows.iter().all(once),
            "a row of {} was written twice",
            spec.name
        );
        rows.into_iter()
            .map(|row| (spec.key_of(&row), row))
            .collect()
    })
}

fn value(value: rusqlite::types::ValueRef<'_>) -> Value {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).unwrap()),
        ValueRef::Blob(blob) => Value::Blob(blob.to_vec()),
    }
}
