//! What contexts do on the database itself: saves, reads, and saves that commit as sessions.

use anabranch::prelude::*;
use anabranch_tests::random::Random;

use crate::{
    client::{did, mark},
    draw::Chance,
    operation::{Operation, Seen, is_constraint},
    pace::Pace,
    tables::{Event, Item},
    typed::{FIND, SET_VALUE, columns, inserted, new_item},
    unit::{Entry, Kind, Outcome},
    world::{World, kind},
};

/// What one save changes.
#[derive(Default)]
struct Changes {
    added: Vec<Tracked<Item>>,
    /// What goes and what changes, in the order in which it does no harm.
    entries: Vec<Entry>,
}

impl World {
    /// What the context finds is read before, on the database itself: it is no part of the unit.
    pub(crate) async fn save(&self, random: &mut Random) {
        let mut unit = self.unit(Kind::Save);
        let mut chance = Chance {
            random,
            keys: self.shape.keys,
        };
        let mut ctx = self.db.context();
        let mut changes = Changes::default();
        match ctx.find::<Item>(chance.key()).await.unwrap() {
            Some(item) if !chance.random.once_in(4) => changes.change(&mut ctx, item, &mut chance),
            _ => changes.add(&mut ctx, &mut chance),
        }
        changes.mark(&mut ctx, unit.id);
        unit.submitted = self.recorder.tick();
        let outcome = match ctx.save_changes().await {
            Ok(saved) => {
                unit.entries = changes.done(&ctx);
                Outcome::Committed(saved.commit_seq.map(|seq| seq.0))
            }
            Err(error) => {
                assert!(
                    is_constraint(error.kind()) || error.is_conflict(),
                    "{error:?}"
                );
                Outcome::Undone
            }
        };
        self.ended(unit, outcome);
    }

    pub(crate) async fn read(&self, random: &mut Random) {
        let mut unit = self.unit(Kind::Read);
        let group = i64::try_from(random.below(5)).unwrap();
        let asked = self.recorder.tick();
        let items = Item::query()
            .filter(Item::GRP.eq(group))
            .order_by([Item::ID.asc()]);
        let items = items.all(&self.db).await.unwrap();
        unit.snapshot = Some((asked, self.recorder.tick()));
        let all = "SELECT id, grp, val, tag FROM item WHERE grp = ? ORDER BY id";
        let rows = items.iter().map(columns).collect();
        did(
            &mut unit.entries,
            Operation::read(all, vec![group.into()]),
            Seen::Rows(rows),
        );
        self.ended(unit, Outcome::Undone);
    }

    /// Reads one snapshot, and saves as a session.
    pub(crate) async fn context(&self, isolation: Isolation, random: &mut Random, pace: &Pace) {
        let mut unit = self.unit(kind(isolation));
        let mut ctx = self.db.context().concurrent_with(isolation);
        let mut found = Vec::new();
        for key in self.some_keys(random) {
            pace.next().await;
            let asked = self.recorder.tick();
            let item = ctx.find::<Item>(key).await.unwrap();
            unit.snapshot.get_or_insert((asked, self.recorder.tick()));
            let rows = item.iter().map(|item| columns(&ctx[*item])).collect();
            did(
                &mut unit.entries,
                Operation::read(FIND, vec![key.into()]),
                Seen::Rows(rows),
            );
            found.extend(item);
        }
        let mut chance = Chance {
            random,
            keys: self.shape.keys,
        };
        let mut changes = Changes::default();
        for item in found {
            changes.change(&mut ctx, item, &mut chance);
        }
        changes.add(&mut ctx, &mut chance);
        changes.mark(&mut ctx, unit.id);
        pace.next().await;
        unit.submitted = self.recorder.tick();
        let outcome = match ctx.save_changes().await {
            Ok(saved) => {
                unit.entries.extend(changes.done(&ctx));
                Outcome::Committed(saved.commit_seq.map(|seq| seq.0))
            }
            Err(error) if error.is_conflict() => Outcome::Conflict,
            Err(error) => {
                assert!(is_constraint(error.kind()), "{error:?}");
                Outcome::Undone
            }
        };
        self.ended(unit, outcome);
    }

    /// Keys in a row, so that each is there once.
    fn some_keys(&self, random: &mut Random) -> impl Iterator<Item = i64> + use<> {
        let first = Chance {
            random,
            keys: self.shape.keys,
        }
        .key();
        let more = i64::try_from(random.below(4)).unwrap();
        first..=first + more
    }
}

impl Changes {
    fn change(&mut self, ctx: &mut Context<'_>, item: Tracked<Item>, chance: &mut Chance<'_>) {
        let id = ctx[item].id;
        let (operation, place) = match chance.below(5) {
            0 => {
                ctx.remove(item);
                let delete = "DELETE FROM item WHERE id = ?";
                (Operation::write(delete, vec![id.into()]), 0)
            }
            1..=3 => {
                ctx[item].val += 1;
                let args = vec![ctx[item].val.into(), id.into()];
                (Operation::write(SET_VALUE, args), self.entries.len())
            }
            _ => return,
        };
        let seen = Seen::Changed(1);
        self.entries.insert(place, Entry::Did { operation, seen });
    }

    fn add(&mut self, ctx: &mut Context<'_>, chance: &mut Chance<'_>) {
        for _ in 0..chance.below(3) {
            self.added.push(ctx.add(new_item(chance)));
        }
    }

    fn mark(&mut self, ctx: &mut Context<'_>, unit: i64) {
        ctx.add(Event {
            id: unit,
            seq: CommitSeq(0),
        });
        did(&mut self.entries, mark(unit), Seen::Changed(1));
    }

    /// What was done, now that the keys are known.
    fn done(mut self, ctx: &Context<'_>) -> Vec<Entry> {
        for item in self.added {
            did(&mut self.entries, inserted(&ctx[item]), Seen::Changed(1));
        }
        self.entries
    }
}
