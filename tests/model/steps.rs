//! The steps of a run: each choice becomes a call on the context, and the same act in the worlds.

use anabranch::{context::Graph, error::Result, prelude::*, value::Value};
use serde_json::json;

use crate::{
    op::{Local, Op, Pick, Spoil},
    run::{Run, rows},
    save::is_temporary,
    tables::{
        EPOCH, Handle, Kept, Key, LEAF, Leaf, NODE, Node, PART, Part, Row, SPECS, TAG, Tag,
        integer, of_row, text, typed,
    },
    world::{Act, Answer},
};

type Changes = Vec<(usize, Value)>;

impl Run {
    pub(crate) async fn step(&mut self, op: &Op) {
        match op {
            Op::Local(local) => return self.local(local),
            Op::Find(pick) => return self.find(*pick).await,
            Op::Query(table) => return self.query(*table).await,
            Op::Reload(pick) => return self.reload(*pick).await,
            Op::Save { how, resolve, heal } => return self.save(how, *resolve, *heal).await,
            _ => self.settle().await,
        }
        if self.is_muddled() {
            return;
        }
        match op {
            Op::Json { of, what, value } => self.json(*of, *what, *value),
            Op::Sever { of, which } => self.sever(*of, *which),
            Op::Reset(of) => {
                if let Some(slot) = self.pick(*of) {
                    let reset = typed!(self.slots[&slot], handle => self.ctx.reset(handle));
                    self.noted(&Act::Reset(slot), &Answer::Yes(reset));
                }
            }
            Op::ResetColumn { of, column } => self.of_column(*of, *column, true),
            Op::Mark { of, column } => self.of_column(*of, *column, false),
            Op::Attach {
                row,
                whole,
                stale,
                value,
            } => self.attach(*row, *whole, *stale, *value),
            Op::Graph { root, kind, child } => self.graph(*root, *kind, *child),
            Op::Spoil { of, how } => self.spoil(*of, *how),
            Op::Other {
                who,
                row,
                what,
                value,
            } => self.other(*who, *row, *what, *value).await,
            _ => unreachable!("done above"),
        }
    }

    /// Some entity: mostly one that is tracked.
    fn pick(&self, pick: Pick) -> Option<usize> {
        let any = pick.is_multiple_of(16);
        let slots: Vec<_> = (self.slots.keys().copied())
            .filter(|slot| any || self.is_tracked(*slot))
            .collect();
        chosen(&slots, pick)
    }

    fn pick_of(&self, table: usize, pick: Pick) -> Option<usize> {
        let slots: Vec<_> = (self.slots.iter())
            .filter(|(slot, handle)| handle.table() == table && self.is_tracked(**slot))
            .map(|(slot, _)| *slot)
            .collect();
        chosen(&slots, pick)
    }

    pub(crate) fn current(&self, slot: usize) -> Option<Row> {
        typed!(self.slots[&slot], handle => self.ctx.get(handle).map(Kept::to_row))
    }

    fn state(&self, slot: usize) -> EntityState {
        typed!(self.slots[&slot], handle => self.ctx.entry(handle).state())
    }

    /// The key of some row or entity, to be referred to.
    fn target(&self, table: usize, pick: Pick) -> Option<i64> {
        let tracked = (self.pick_of(table, pick / 4)).and_then(|slot| self.current(slot));
        let stored: Vec<_> = self.seen[table].keys().collect();
        let stored = chosen(&stored, pick / 4).map(|key| key[0]);
        let tracked = tracked.map(|row| integer(&row[0]));
        if pick.is_multiple_of(4) {
            stored.or(tracked)
        } else {
            tracked.or(stored)
        }
    }

    fn maybe(&self, table: usize, pick: Pick) -> Value {
        let target = (!pick.is_multiple_of(3)).then(|| self.target(table, pick / 3));
        target.flatten().map_or(Value::Null, Value::Integer)
    }

    fn mark(&mut self) -> Value {
        self.marks += 1;
        Value::Integer(self.marks)
    }

    pub(crate) fn local(&mut self, local: &Local) {
        match local {
            Local::Add {
                table,
                target,
                name,
            } => self.add(usize::from(*table), *target, *name),
            Local::AddAgain(pick) => self.add_again(*pick),
            Local::Set { of, what, value } => {
                if let Some(slot) = self.pick(*of) {
                    let changes = self.change(self.slots[&slot].table(), *what, *value);
                    self.set(slot, changes);
                }
            }
            Local::SetTwo {
                one,
                other,
                what,
                value,
            } => self.set_two(*one, *other, *what, *value),
            Local::Remove(pick) => {
                if let Some(slot) = self.pick(*pick) {
                    let was = typed!(self.slots[&slot], handle => self.ctx.remove(handle));
                    self.noted(&Act::Remove(slot), &Answer::Yes(was));
                }
            }
            Local::Detach(pick) => {
                if let Some(slot) = self.pick(*pick) {
                    let was =
                        typed!(self.slots[&slot], handle => self.ctx.detach(handle).is_some());
                    self.noted(&Act::Detach(slot), &Answer::Yes(was));
                }
            }
            Local::Clear => {
                self.ctx.clear();
                self.noted(&Act::Clear, &Answer::Done);
            }
        }
    }

    fn add(&mut self, table: usize, target: Pick, name: u8) {
        let mark = self.mark();
        let name_text = text(&format!("n{name}"));
        let unset = Value::Integer(0);
        let row = match table {
            LEAF if let Some(node) = self.target(NODE, target) => vec![
                unset,
                mark,
                Value::Integer(node),
                self.maybe(LEAF, target / 2),
                Value::Real(f64::from(name)),
            ],
            PART if let Some(leaf) = self
                .target(LEAF, target)
                .filter(|leaf| !self.is_pending() || !is_temporary(*leaf)) =>
            {
                let number = Value::Integer(i64::from(name % 3));
                vec![Value::Integer(leaf), number, name_text, unset]
            }
            TAG => {
                let (node, leaf) = (self.maybe(NODE, target), self.maybe(LEAF, target / 3));
                vec![unset, mark, node, leaf, name_text]
            }
            _ => {
                let score = Value::Integer(i64::from(target % 50));
                let parent = self.maybe(NODE, target);
                node(unset, mark, name_text, parent, score)
            }
        };
        let table = match row.len() {
            11 => NODE,
            4 => PART,
            _ => table,
        };
        let key = (integer(&row[0]), integer(&row[1]));
        let is_taken = (self.ctx.iter::<Part>()).any(|(_, part)| part_key(part) == key);
        if table == PART && is_taken {
            return;
        }
        self.add_row(table, &row);
    }

    /// A removed entity comes again, as a new one with its key.
    fn add_again(&mut self, pick: Pick) {
        let removed: Vec<_> = (self.slots.keys().copied())
            .filter(|slot| self.state(*slot) == EntityState::Deleted)
            .collect();
        let Some(slot) = chosen(&removed, pick).filter(|_| !self.is_pending()) else {
            return;
        };
        let rec = &self.worlds[0].recs[&slot];
        let (table, mut row) = (rec.table, rec.current.clone());
        for (column, part) in SPECS[table].key.iter().zip(&rec.key) {
            row[*column] = Value::Integer(*part);
        }
        if self.worlds[0].live(table, &rec.key).is_some() || row.iter().any(crate::world::is_nan) {
            return;
        }
        if let Some(column) = SPECS[table].mark {
            row[column] = self.mark();
        }
        self.add_row(table, &row);
    }

    fn add_row(&mut self, table: usize, row: &Row) {
        let handle = of_row!(table, row, entity => handle_of(self.ctx.add(entity)));
        let slot = self.slot(handle);
        let mut row = row.clone();
        if row[0] == Value::Integer(0) {
            // The key that it was given at once.
            row[0] = self.current(slot).unwrap()[0].clone();
            self.temporary.insert(slot, integer(&row[0]));
            assert!(is_temporary(integer(&row[0])));
        }
        self.noted(&Act::Add { slot, table, row }, &Answer::Done);
    }

    /// Some change of a table's columns.
    fn change(&self, table: usize, what: Pick, value: Pick) -> Changes {
        let small = i64::from(value % 50);
        let word = text(&format!("n{}", value % 24));
        match (table, what % 4) {
            (NODE, 0) => vec![(2, word)],
            (NODE, 1) => vec![(3, self.maybe(NODE, value))],
            (NODE, 2) => vec![(4, Value::Integer(small))],
            (NODE, _) => match value % 3 {
                0 => vec![(5, Value::Null), (6, Value::Null)],
                1 => vec![(5, Value::Integer(small)), (6, Value::Null)],
                _ => vec![(5, Value::Integer(small)), (6, word)],
            },
            (LEAF, 0) if let Some(node) = self.target(NODE, value) => {
                vec![(2, Value::Integer(node))]
            }
            (LEAF, 1) => vec![(3, self.maybe(LEAF, value))],
            #[allow(clippy::cast_precision_loss, reason = "it is below fifty")]
            (LEAF, _) => vec![(4, Value::Real(small as f64))],
            (PART, _) => vec![(2, word)],
            (_, 0) => vec![(2, self.maybe(NODE, value))],
            (_, 1) => vec![(3, self.maybe(LEAF, value))],
            (_, _) => vec![(4, word)],
        }
    }

    fn set(&mut self, slot: usize, mut changes: Changes) {
        // While a plan is in flight a value that is set again is no change, whatever becomes of it by then.
        if let Some(current) = self.current(slot).filter(|_| self.is_pending()) {
            changes.retain(|(column, value)| current[*column] != *value);
        }
        let was = typed!(self.slots[&slot], handle => {
            let entity = self.ctx.get_mut(handle);
            entity.map(|entity| entity.put(&changes)).is_some()
        });
        self.noted(&Act::Set { slot, changes }, &Answer::Yes(was));
    }

    fn set_two(&mut self, one: Pick, other: Pick, what: Pick, value: Pick) {
        let Some(one) = self.pick(one) else { return };
        let table = self.slots[&one].table();
        let Some(other) = self.pick_of(table, other) else {
            return;
        };
        let changes = self.change(table, what, value);
        // As in `set`.
        let is_again = |slot: usize| {
            let row = self.current(slot).unwrap_or_default();
            (changes.iter()).any(|(column, value)| row.get(*column) == Some(value))
        };
        if self.is_pending() && (is_again(one) || is_again(other)) {
            return;
        }
        let both = match (self.slots[&one], self.slots[&other]) {
            (Handle::Node(one), Handle::Node(other)) => self.put_two([one, other], &changes),
            (Handle::Leaf(one), Handle::Leaf(other)) => self.put_two([one, other], &changes),
            (Handle::Part(one), Handle::Part(other)) => self.put_two([one, other], &changes),
            (Handle::Tag(one), Handle::Tag(other)) => self.put_two([one, other], &changes),
            _ => unreachable!("they are of one table"),
        };
        if both || !self.is_pending() {
            let slots = [one, other];
            self.noted(&Act::SetTwo { slots, changes }, &Answer::Yes(both));
        }
    }

    fn put_two<E: Kept>(&mut self, handles: [Tracked<E>; 2], changes: &Changes) -> bool {
        let entities = self.ctx.get_disjoint_mut(handles);
        let entities = entities.into_iter().flatten();
        entities.map(|entity| entity.put(changes)).count() == 2
    }

    async fn find(&mut self, pick: Pick) {
        let table = usize::from(pick % 4);
        let stored: Vec<_> = self.seen[table].keys().cloned().collect();
        let tracked = self
            .pick_of(table, pick / 8)
            .and_then(|slot| self.current(slot));
        let key = match tracked {
            Some(row) if (pick / 4).is_multiple_of(2) => Some(SPECS[table].key_of(&row)),
            _ => chosen(&stored, pick / 8),
        };
        let Some(key) = key else { return };
        let found = match table {
            NODE => self
                .ctx
                .find::<Node>(key[0])
                .await
                .map(|it| it.map(handle_of)),
            LEAF => self
                .ctx
                .find::<Leaf>(key[0])
                .await
                .map(|it| it.map(handle_of)),
            PART => {
                let key = (key[0], key[1]);
                self.ctx.find::<Part>(key).await.map(|it| it.map(handle_of))
            }
            _ => self
                .ctx
                .find::<Tag>(key[0])
                .await
                .map(|it| it.map(handle_of)),
        };
        let found = found.unwrap().map(|handle| self.slot(handle));
        self.observe(&Act::Find { table, key }, &Answer::Found(found));
    }

    async fn query(&mut self, table: u8) {
        let table = usize::from(table);
        let found = match table {
            NODE => handles(
                Node::query()
                    .order_by(Node::ID.asc())
                    .load(&mut self.ctx)
                    .await,
            ),
            LEAF => handles(
                Leaf::query()
                    .order_by(Leaf::ID.asc())
                    .load(&mut self.ctx)
                    .await,
            ),
            PART => {
                let parts = Part::query()
                    .order_by(Part::LEAF.asc())
                    .order_by(Part::NUMBER.asc());
                handles(parts.load(&mut self.ctx).await)
            }
            _ => handles(
                Tag::query()
                    .order_by(Tag::ID.asc())
                    .load(&mut self.ctx)
                    .await,
            ),
        };
        let slots = found.into_iter().map(|handle| self.slot(handle)).collect();
        self.observe(&Act::Query { table }, &Answer::Rows(slots));
    }

    async fn reload(&mut self, pick: Pick) {
        let Some(slot) = self.pick(pick) else { return };
        let reloaded = typed!(self.slots[&slot], handle => self.ctx.reload(handle).await);
        let answer = reloaded.map_or_else(|error| Answer::Failed(error.kind()), Answer::Yes);
        self.observe(&Act::Reload(slot), &answer);
    }

    fn json(&mut self, of: Pick, what: Pick, value: Pick) {
        let Some(slot) = self.pick(of) else { return };
        let table = self.slots[&slot].table();
        let changes: Changes = self.change(table, what, value);
        if changes.iter().any(|(_, value)| *value == Value::Real(0.0)) {
            return;
        }
        let spec = &SPECS[table];
        let mut object = serde_json::Map::new();
        for (column, value) in &changes {
            let value = match value {
                Value::Null => json!(null),
                Value::Integer(value) => json!(value),
                Value::Real(value) => json!(value),
                Value::Text(value) => json!(value),
                Value::Blob(_) | Value::Unread => unreachable!("there are no blobs"),
            };
            object.insert(spec.columns[*column].to_owned(), value);
        }
        let set = typed!(self.slots[&slot], handle => self.ctx.set_values(handle, &object));
        let answer = set.map_or_else(|error| Answer::Failed(error.kind()), |()| Answer::Done);
        self.noted(&Act::Json { slot, changes }, &answer);
    }

    fn sever(&mut self, of: Pick, which: Pick) {
        let Some(slot) = self.pick(of) else { return };
        let first = which.is_multiple_of(2);
        let (column, severed) = match self.slots[&slot] {
            Handle::Node(handle) => (3, self.ctx.sever(handle, Node::PARENT)),
            Handle::Leaf(handle) if first => (2, self.ctx.sever(handle, Leaf::NODE)),
            Handle::Leaf(handle) => (3, self.ctx.sever(handle, Leaf::FRIEND)),
            Handle::Part(handle) => (0, self.ctx.sever(handle, Part::LEAF)),
            Handle::Tag(handle) if first => (2, self.ctx.sever(handle, Tag::NODE)),
            Handle::Tag(handle) => (3, self.ctx.sever(handle, Tag::LEAF)),
        };
        self.noted(&Act::Sever { slot, column }, &Answer::Yes(severed.unwrap()));
    }

    /// Resets a column, or marks it.
    fn of_column(&mut self, of: Pick, column: Pick, resets: bool) {
        let Some(slot) = self.pick(of) else { return };
        macro_rules! on {
            ($handle:expr, $column:expr) => {
                match resets {
                    true => self.ctx.reset_column($handle, $column),
                    false => self.ctx.mark_modified($handle, $column),
                }
            };
        }
        let (column, done) = match (self.slots[&slot], column % 4) {
            (Handle::Node(handle), 0) => (2, on!(handle, Node::NAME)),
            (Handle::Node(handle), 1) => (3, on!(handle, Node::PARENT)),
            (Handle::Node(handle), 2) => (4, on!(handle, Node::SCORE)),
            (Handle::Node(handle), _) => (10, on!(handle, Node::VERSION)),
            (Handle::Leaf(handle), 0) => (2, on!(handle, Leaf::NODE)),
            (Handle::Leaf(handle), 1) => (0, on!(handle, Leaf::ID)),
            (Handle::Leaf(handle), _) => (4, on!(handle, Leaf::WEIGHT)),
            (Handle::Part(handle), 0) => (1, on!(handle, Part::NUMBER)),
            (Handle::Part(handle), _) => (2, on!(handle, Part::NOTE)),
            (Handle::Tag(handle), 0) => (2, on!(handle, Tag::NODE)),
            (Handle::Tag(handle), _) => (4, on!(handle, Tag::TEXT)),
        };
        let act = if resets {
            Act::ResetColumn { slot, column }
        } else {
            Act::Mark { slot, column }
        };
        self.noted(&act, &Answer::Yes(done));
    }

    /// Some row of the database.
    fn stored(&self, pick: Pick) -> Option<(usize, Key, Row)> {
        let rows: Vec<_> = (self.seen.iter().enumerate())
            .flat_map(|(table, rows)| rows.iter().map(move |(key, row)| (table, key, row)))
            .collect();
        let (table, key, row) = chosen(&rows, pick)?;
        Some((table, key.clone(), row.clone()))
    }

    /// An entity comes from elsewhere: as its row is, or changed, or of an older version.
    fn attach(&mut self, row: Pick, whole: bool, stale: bool, value: Pick) {
        let Some((table, _, mut row)) = self.stored(row) else {
            return;
        };
        for (column, value) in self.change(table, value / 7, value) {
            let temporary = matches!(value, Value::Integer(key) if is_temporary(key));
            if whole && !temporary {
                row[column] = value;
            }
        }
        if let Some(version) = SPECS[table].version.filter(|_| stale) {
            row[version] = Value::Integer(integer(&row[version]) + 7);
        }
        let attached = of_row!(table, &row, entity => {
            let tracked = if whole { self.ctx.update(entity) } else { self.ctx.attach(entity) };
            tracked.map(handle_of)
        });
        let (slot, answer) = match attached {
            Ok(handle) => (self.slot(handle), Answer::Done),
            Err(error) => (usize::MAX, Answer::Failed(error.kind())),
        };
        self.noted(
            &Act::Attach {
                slot,
                table,
                row,
                whole,
            },
            &answer,
        );
    }

    fn graph(&mut self, root: Pick, kind: u8, child: Pick) {
        let leaves: Vec<_> = self.seen[LEAF].values().cloned().collect();
        let nodes: Vec<_> = self.seen[NODE].values().cloned().collect();
        let mut members = Vec::new();
        let answer;
        if let (2, Some(leaf)) = (kind % 3, chosen(&leaves, root)) {
            let parts: Vec<_> = self.seen[PART].values().cloned().collect();
            let Some(part) = chosen(&parts, child) else {
                return;
            };
            let graph =
                Graph::attach(Leaf::from_row(&leaf)).with(Part::LEAF, [Part::from_row(&part)]);
            members.push((LEAF, leaf, false));
            members.push((PART, part, false));
            answer = self.ctx.attach_graph(graph).map(drop);
        } else {
            let unset = Value::Integer(0);
            let (row, new) = match chosen(&nodes, root).filter(|_| kind.is_multiple_of(3)) {
                Some(row) => (row, false),
                None => {
                    let name = text(&format!("n{}", root % 24));
                    (
                        node(unset.clone(), self.mark(), name, Value::Null, unset.clone()),
                        true,
                    )
                }
            };
            let mut children = vec![(
                vec![
                    unset.clone(),
                    self.mark(),
                    unset,
                    Value::Null,
                    Value::Real(1.0),
                ],
                true,
            )];
            children.extend(chosen(&leaves, child).map(|leaf| (leaf, false)));
            let leaves = children.iter().map(|(row, _)| Leaf::from_row(row));
            let graph = Graph::attach(Node::from_row(&row)).with(Leaf::NODE, leaves);
            answer = self.ctx.attach_graph(graph).map(drop);
            members.push((NODE, row, new));
            members.extend(children.into_iter().map(|(row, new)| (LEAF, row, new)));
        }
        let column = if kind % 3 == 2 && members[0].0 == LEAF {
            0
        } else {
            2
        };
        let tracked = answer.is_ok();
        let members = (members.into_iter())
            .map(|(table, row, new)| self.member(table, row, new, tracked))
            .collect();
        let answer = answer.map_or_else(|error| Answer::Failed(error.kind()), |()| Answer::Done);
        self.noted(&Act::Graph { column, members }, &answer);
    }

    /// A member of a graph, with its number and the key that it was given.
    fn member(
        &mut self,
        table: usize,
        mut row: Row,
        new: bool,
        tracked: bool,
    ) -> (usize, usize, Row, bool) {
        if !tracked {
            return (usize::MAX, table, row, new);
        }
        let spec = &SPECS[table];
        let is_it = |found: &Row| match spec.mark {
            Some(mark) => found[mark] == row[mark],
            None => found[1] == row[1] && found[2] == row[2],
        };
        // The last one that came to be tracked.
        let entries: Vec<_> = self.ctx.entries().collect();
        let handle = entries.iter().rev().find_map(|entry| {
            let handle = match table {
                NODE => Handle::Node(entry.handle()?),
                LEAF => Handle::Leaf(entry.handle()?),
                _ => Handle::Part(entry.handle()?),
            };
            let found = typed!(handle, typed => self.ctx.get(typed).map(Kept::to_row));
            found.filter(is_it).map(|_| handle)
        });
        let slot = self.slot(handle.unwrap());
        if new {
            row[0] = self.current(slot).unwrap()[0].clone();
            self.temporary.insert(slot, integer(&row[0]));
        }
        (slot, table, row, new)
    }

    fn spoil(&mut self, of: Pick, how: Spoil) {
        let table = match how {
            Spoil::Score => NODE,
            Spoil::NotANumber | Spoil::Reference => LEAF,
            Spoil::Key => TAG,
            Spoil::Version => [NODE, PART][usize::from(of % 2)],
        };
        let Some(slot) = self.pick_of(table, of / 2) else {
            return;
        };
        let is_row = matches!(
            self.state(slot),
            EntityState::Unchanged | EntityState::Modified
        );
        if matches!(how, Spoil::Key | Spoil::Version) && !is_row {
            return;
        }
        let version = SPECS[table].version.unwrap_or_default();
        let change = match how {
            Spoil::Score => (4, Value::Integer(-1)),
            Spoil::NotANumber => (4, Value::Real(f64::NAN)),
            Spoil::Reference => (2, Value::Integer(999_999)),
            Spoil::Key => (0, Value::Integer(999_999)),
            Spoil::Version => (version, Value::Integer(77)),
        };
        self.set(slot, vec![change]);
    }

    /// Somebody else writes: whatever comes of it is how the rows are now.
    async fn other(&mut self, who: u8, row: Pick, what: u8, value: Pick) {
        let stored = self.stored(row);
        let statement = self.statement(stored.as_ref(), what, value);
        match who {
            0 => drop(self.stage.plain.execute_batch(&statement)),
            1 => {
                let written = self.stage.db.write(async |tx| {
                    sqlx::raw_sql(sqlx::AssertSqlSafe(statement.as_str()))
                        .execute(&mut *tx)
                        .await?;
                    Ok(())
                });
                drop(written.await);
            }
            _ => {
                let Some((table, key, _)) = stored else {
                    return;
                };
                let changes = self.change(table, value, value / 5);
                let deletes = what == 2;
                let temporary = |(_, value): &(usize, Value)| matches!(value, Value::Integer(key) if is_temporary(*key));
                if changes.iter().any(temporary) {
                    return;
                }
                if who == 2 {
                    let mut other = self.stage.db.context();
                    drop(written_in(&mut other, table, &key, &changes, deletes).await);
                } else {
                    let written = self.stage.db.write(async |tx| {
                        let mut other = tx.context();
                        written_in(&mut other, table, &key, &changes, deletes).await?;
                        match value % 4 {
                            0 => Err(Error::application("roll it back")),
                            _ => Ok(()),
                        }
                    });
                    drop(written.await);
                }
            }
        }
        self.seen = rows(&self.stage.plain);
        for world in &mut self.worlds {
            world.db = self.seen.clone();
        }
        self.observe(&Act::Settle, &Answer::Done);
    }

    fn statement(&mut self, stored: Option<&(usize, Key, Row)>, what: u8, value: Pick) -> String {
        let number = value % 50;
        let Some((table, key, _)) = stored.filter(|_| what < 3) else {
            let mark = integer(&self.mark());
            return format!(
                "INSERT INTO node (mark, name, score, created, updated, version)
                 VALUES ({mark}, 'n{}', {number}, '{EPOCH}', '{EPOCH}', 1)",
                value % 24
            );
        };
        let spec = &SPECS[*table];
        let conditions: Vec<_> = (spec.key.iter().zip(key))
            .map(|(column, part)| format!("{} = {part}", spec.columns[*column]))
            .collect();
        let one = conditions.join(" AND ");
        if what == 2 {
            return format!("DELETE FROM {} WHERE {one}", spec.name);
        }
        let set = match *table {
            NODE => format!("score = {number}"),
            LEAF => format!("weight = {number}"),
            PART => format!("note = 'other {number}'"),
            _ => format!("text = 'other {number}'"),
        };
        // Not everybody counts the version up.
        let version = match spec.version {
            Some(_) if !value.is_multiple_of(5) => ", version = version + 1",
            _ => "",
        };
        format!("UPDATE {} SET {set}{version} WHERE {one}", spec.name)
    }
}

/// What another context does with one row.
async fn written_in(
    other: &mut Context<'_>,
    table: usize,
    key: &Key,
    changes: &Changes,
    deletes: bool,
) -> Result<()> {
    match table {
        NODE => write_in::<Node>(other, key[0], changes, deletes).await,
        LEAF => write_in::<Leaf>(other, key[0], changes, deletes).await,
        PART => write_in::<Part>(other, (key[0], key[1]), changes, deletes).await,
        _ => write_in::<Tag>(other, key[0], changes, deletes).await,
    }
}

async fn write_in<E: Kept>(
    other: &mut Context<'_>,
    key: impl Into<E::Key>,
    changes: &Changes,
    deletes: bool,
) -> Result<()> {
    if let Some(handle) = other.find::<E>(key).await? {
        other[handle].put(changes);
        if deletes {
            other.remove(handle);
        }
        other.save_changes().await?;
    }
    Ok(())
}

fn chosen<T: Clone>(among: &[T], pick: Pick) -> Option<T> {
    let at = usize::from(pick).checked_rem(among.len())?;
    Some(among[at].clone())
}

fn handle_of<E: Kept>(handle: Tracked<E>) -> Handle {
    E::handle(handle)
}

fn handles<E: Kept>(found: Result<Vec<Tracked<E>>>) -> Vec<Handle> {
    found.unwrap().into_iter().map(handle_of).collect()
}

fn part_key(part: &Part) -> (i64, i64) {
    let row = part.to_row();
    (integer(&row[0]), integer(&row[1]))
}

/// A new node.
fn node(id: Value, mark: Value, name: Value, parent: Value, score: Value) -> Row {
    let (unset, nowhere) = (Value::Integer(0), Value::Null);
    let epoch = text(EPOCH);
    vec![
        id,
        mark,
        name,
        parent,
        score,
        nowhere.clone(),
        nowhere,
        unset.clone(),
        epoch.clone(),
        epoch,
        unset,
    ]
}
