//! The model: rows and tracked entities as plain maps, and what each call does with them.
//!
//! Where it cannot be known yet what happened (a save was dropped), there are several worlds, and each observation
//! ends those that do not fit. A test fails when none is left.

use std::collections::{BTreeMap, BTreeSet};

use anabranch::{
    context::{AnyEntry, Saved},
    prelude::*,
    value::Value,
};

use crate::{
    save::Plan,
    tables::{
        Handle, Kept, Key, OnDelete, PART, Row, SPECS, Spec, integer, of_row, reference_of, typed,
    },
};

/// The rows of all tables.
pub(crate) type Db = [BTreeMap<Key, Row>; 4];

/// What an entity is to the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    New,
    Stored,
    Removed,
}

/// A tracked entity.
#[derive(Debug, Clone)]
pub(crate) struct Rec {
    pub(crate) table: usize,
    pub(crate) life: Life,
    pub(crate) key: Key,
    pub(crate) current: Row,
    /// What the row holds; `None` for a column that is not known. Of a new one it means nothing.
    pub(crate) original: Vec<Option<Value>>,
    pub(crate) forced: BTreeSet<usize>,
}

/// A call on the context, with all that it was given. Entities have numbers.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Add {
        slot: usize,
        table: usize,
        row: Row,
    },
    Set {
        slot: usize,
        changes: Vec<(usize, Value)>,
    },
    /// Two at once, or none.
    SetTwo {
        slots: [usize; 2],
        changes: Vec<(usize, Value)>,
    },
    Json {
        slot: usize,
        changes: Vec<(usize, Value)>,
    },
    Remove(usize),
    Detach(usize),
    Clear,
    Sever {
        slot: usize,
        column: usize,
    },
    Reset(usize),
    ResetColumn {
        slot: usize,
        column: usize,
    },
    Mark {
        slot: usize,
        column: usize,
    },
    Attach {
        slot: usize,
        table: usize,
        row: Row,
        whole: bool,
    },
    /// A parent, the column of the children that refers to it, and the children; each with whether it is new.
    Graph {
        column: usize,
        members: Vec<(usize, usize, Row, bool)>,
    },
    Find {
        table: usize,
        key: Key,
    },
    Query {
        table: usize,
    },
    Reload(usize),
    /// Waits for what is in flight.
    Settle,
}

/// How a conflict is resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Client,
    Store,
    Merge,
    MergeWith { client: bool },
}

/// What a call answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Done,
    Yes(bool),
    Found(Option<usize>),
    Rows(Vec<usize>),
    Saved(Saved),
    Failed(ErrorKind),
}

/// One state in which everything may be.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) recs: BTreeMap<usize, Rec>,
    /// A plan of which it is not known what became, and the calls since.
    pub(crate) pending: Option<(Box<Plan>, Vec<Act>)>,
    /// Real keys of temporary ones.
    pub(crate) given: BTreeMap<i64, i64>,
    /// The same, as entities showed them: they are taken over once a save is known to be written.
    pub(crate) shown: BTreeMap<i64, i64>,
    /// The temporary keys of rows that came and went in one save: nobody saw the real ones.
    pub(crate) lost: BTreeSet<i64>,
    pub(crate) tokens: BTreeSet<u8>,
    /// How many were accepted.
    pub(crate) saves: usize,
    /// The model does not say what comes next: two entities have one key (that of a row that is gone was given
    /// again), or the order of the statements decided. The run ends here.
    pub(crate) muddled: bool,
}

pub(crate) type Step<T = ()> = Result<T, String>;

impl Rec {
    pub(crate) fn new(table: usize, life: Life, row: Row) -> Self {
        Self {
            table,
            life,
            key: SPECS[table].key_of(&row),
            original: row.iter().cloned().map(Some).collect(),
            current: row,
            forced: BTreeSet::new(),
        }
    }

    pub(crate) fn spec(&self) -> &'static Spec {
        &SPECS[self.table]
    }

    pub(crate) fn is_live(&self) -> bool {
        self.life != Life::Removed
    }

    /// A column differs with all that are right only together with it.
    pub(crate) fn differs(&self, column: usize) -> bool {
        (self.spec().group(column)).any(|column| self.differs_itself(column))
    }

    fn differs_itself(&self, column: usize) -> bool {
        if self.life == Life::New || self.spec().double == Some(column) {
            return false;
        }
        self.forced.contains(&column)
            || is_nan(&self.current[column])
            || self.original[column].as_ref() != Some(&self.current[column])
    }

    pub(crate) fn state(&self) -> EntityState {
        match self.life {
            Life::New => EntityState::Added,
            Life::Removed => EntityState::Deleted,
            Life::Stored if (0..self.current.len()).any(|column| self.differs(column)) => {
                EntityState::Modified
            }
            Life::Stored => EntityState::Unchanged,
        }
    }

    /// It is this row, unchanged.
    pub(crate) fn become_row(&mut self, row: &Row) {
        *self = Self::new(self.table, Life::Stored, row.clone());
    }

    fn reset_column(&mut self, column: usize) {
        for column in self.spec().group(column) {
            self.reset_itself(column);
        }
    }

    fn reset_itself(&mut self, column: usize) {
        self.forced.remove(&column);
        match &self.original[column] {
            Some(original) => self.current[column] = original.clone(),
            None => {
                let current = self.current[column].clone();
                self.original[column] = (!is_nan(&current)).then_some(current);
            }
        }
    }
}

pub(crate) fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Real(real) if real.is_nan())
}

/// Deletes rows with all that goes with them.
pub(crate) fn delete(db: &mut Db, keys: &[(usize, Key)]) {
    let mut keys: Vec<_> = keys.to_vec();
    while let Some((table, key)) = keys.pop() {
        db[table].remove(&key);
        for (child, spec) in SPECS.iter().enumerate() {
            for reference in spec.references.iter().filter(|it| it.target == table) {
                let refers = |row: &Row| reference_of(&row[reference.column]) == Some(key[0]);
                match reference.on_delete {
                    OnDelete::Cascade => {
                        let gone = db[child].iter().filter(|(_, row)| refers(row));
                        keys.extend(gone.map(|(key, _)| (child, key.clone())));
                    }
                    OnDelete::SetNull => {
                        for row in db[child].values_mut().filter(|row| refers(row)) {
                            row[reference.column] = Value::Null;
                        }
                    }
                    OnDelete::Refuse => {}
                }
            }
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            db: Db::default(),
            recs: BTreeMap::new(),
            pending: None,
            given: BTreeMap::new(),
            shown: BTreeMap::new(),
            lost: BTreeSet::new(),
            tokens: BTreeSet::new(),
            muddled: false,
            saves: 0,
        }
    }

    /// The entity that is found by a key, among those that are live.
    pub(crate) fn live(&self, table: usize, key: &Key) -> Option<usize> {
        let mut found = self
            .recs
            .iter()
            .filter(|(_, rec)| rec.table == table && rec.is_live() && rec.key == *key);
        found.next().map(|(slot, _)| *slot)
    }

    fn is_removed(&self, table: usize, key: &Key) -> bool {
        (self.recs.values()).any(|rec| rec.table == table && !rec.is_live() && rec.key == *key)
    }

    /// Does what a call does, and compares the answer if there is one to be compared.
    pub(crate) fn act(&mut self, act: &Act, answer: Option<&Answer>) -> Step {
        if let Some((_, queued)) = &mut self.pending {
            queued.push(act.clone());
            return Ok(());
        }
        let expected = self.expect(act, answer);
        match answer {
            Some(answer) if expected != *answer && !self.muddled => {
                Err(format!("{expected:?} was expected, not {answer:?}"))
            }
            _ => Ok(()),
        }
    }

    fn expect(&mut self, act: &Act, answer: Option<&Answer>) -> Answer {
        match act {
            Act::Add { slot, table, row } => self.track(*slot, *table, row, Life::New),
            Act::Set { slot, changes } => return self.set(*slot, changes),
            Act::SetTwo { slots, changes } => {
                let both =
                    slots[0] != slots[1] && slots.iter().all(|it| self.recs.contains_key(it));
                if both || answer.is_none() {
                    for slot in slots {
                        self.set(*slot, changes);
                    }
                }
                return Answer::Yes(both);
            }
            Act::Json { slot, changes } => return self.json(*slot, changes),
            Act::Remove(slot) => return Answer::Yes(self.remove(*slot)),
            Act::Detach(slot) => return Answer::Yes(self.recs.remove(slot).is_some()),
            Act::Clear => self.recs.clear(),
            Act::Sever { slot, column } => return self.sever(*slot, *column),
            Act::Reset(slot) => return Answer::Yes(self.reset(*slot)),
            Act::ResetColumn { slot, column } => {
                let rec = self.stored(*slot);
                let is = rec.is_some();
                rec.into_iter().for_each(|rec| rec.reset_column(*column));
                return Answer::Yes(is);
            }
            Act::Mark { slot, column } => {
                let rec = (self.stored(*slot)).filter(|rec| !rec.spec().keeps(*column));
                return Answer::Yes(rec.is_some_and(|rec| {
                    rec.forced.insert(*column);
                    true
                }));
            }
            Act::Attach {
                slot,
                table,
                row,
                whole,
            } => {
                return self.attach(*slot, *table, row, *whole);
            }
            Act::Graph { column, members } => return self.graph(*column, members),
            Act::Find { table, key } => return Answer::Found(self.find(*table, key, answer)),
            Act::Query { table } => return self.query(*table, answer),
            Act::Reload(slot) => return self.reload(*slot),
            Act::Settle => {}
        }
        Answer::Done
    }

    fn track(&mut self, slot: usize, table: usize, row: &Row, life: Life) {
        let mut rec = Rec::new(table, life, row.clone());
        self.translate(&mut rec);
        self.recs.insert(slot, rec);
    }

    /// Temporary keys that were replaced by the time of a call that is looked at later.
    pub(crate) fn translate(&self, rec: &mut Rec) {
        for reference in rec.spec().references {
            let column = reference.column;
            let real = reference_of(&rec.current[column]).and_then(|key| self.given.get(&key));
            if let Some(real) = real {
                rec.current[column] = Value::Integer(*real);
            }
        }
        if rec.life == Life::New {
            rec.key = rec.spec().key_of(&rec.current);
        }
    }

    fn stored(&mut self, slot: usize) -> Option<&mut Rec> {
        (self.recs.get_mut(&slot)).filter(|rec| rec.life == Life::Stored)
    }

    fn set(&mut self, slot: usize, changes: &[(usize, Value)]) -> Answer {
        let Some(mut rec) = self.recs.remove(&slot) else {
            return Answer::Yes(false);
        };
        for (column, value) in changes {
            rec.current[*column] = value.clone();
        }
        self.translate(&mut rec);
        self.recs.insert(slot, rec);
        Answer::Yes(true)
    }

    fn json(&mut self, slot: usize, changes: &[(usize, Value)]) -> Answer {
        match self.recs.get_mut(&slot) {
            Some(rec) if rec.is_live() => {
                for (column, value) in changes {
                    rec.current[*column] = value.clone();
                }
                Answer::Done
            }
            _ => Answer::Failed(ErrorKind::Refused),
        }
    }

    fn remove(&mut self, slot: usize) -> bool {
        match self.recs.get_mut(&slot) {
            None => false,
            Some(rec) if rec.life == Life::New => self.recs.remove(&slot).is_some(),
            Some(rec) => {
                rec.life = Life::Removed;
                true
            }
        }
    }

    fn sever(&mut self, slot: usize, column: usize) -> Answer {
        let nullable = (self.recs.get(&slot)).is_none_or(|rec| {
            let mut references = rec.spec().references.iter();
            references.any(|it| it.column == column && it.on_delete != OnDelete::Cascade)
        });
        if nullable {
            self.set(slot, &[(column, Value::Null)])
        } else {
            Answer::Yes(self.remove(slot))
        }
    }

    fn reset(&mut self, slot: usize) -> bool {
        let Some(rec) = self.recs.get(&slot) else {
            return false;
        };
        let taken = self.live(rec.table, &rec.key).is_some();
        if rec.life == Life::New || (rec.life == Life::Removed && taken) {
            return false;
        }
        if let Some(rec) = self.recs.get_mut(&slot) {
            rec.life = Life::Stored;
            (0..rec.current.len()).for_each(|column| rec.reset_column(column));
        }
        true
    }

    fn attach(&mut self, slot: usize, table: usize, row: &Row, whole: bool) -> Answer {
        let key = SPECS[table].key_of(row);
        if self.live(table, &key).is_some() || self.is_removed(table, &key) {
            return Answer::Failed(ErrorKind::AlreadyTracked);
        }
        let mut rec = Rec::new(table, Life::Stored, row.clone());
        let spec = rec.spec();
        for column in (0..row.len()).filter(|_| whole) {
            if !spec.keeps(column) && spec.created != Some(column) {
                rec.original[column] = None;
            }
        }
        self.recs.insert(slot, rec);
        Answer::Done
    }

    fn graph(&mut self, column: usize, members: &[(usize, usize, Row, bool)]) -> Answer {
        let before = self.recs.clone();
        let root = integer(&members[0].2[0]);
        for (at, (slot, table, row, new)) in members.iter().enumerate() {
            let mut row = row.clone();
            // A part's key says which row it is, so it is set before.
            if at > 0 && (*new || *table == PART) {
                row[column] = Value::Integer(root);
            }
            if *new {
                self.track(*slot, *table, &row, Life::New);
            } else if let failed @ Answer::Failed(_) = self.attach(*slot, *table, &row, false) {
                self.recs = before;
                return failed;
            }
            if at > 0 {
                self.set(*slot, &[(column, Value::Integer(root))]);
            }
        }
        Answer::Done
    }

    /// What was read and not known before has the number that the answer has.
    fn find(&mut self, table: usize, key: &Key, answer: Option<&Answer>) -> Option<usize> {
        if let Some(slot) = self.live(table, key) {
            return Some(slot);
        }
        if self.is_removed(table, key) {
            return None;
        }
        let row = self.db[table].get(key)?.clone();
        match answer {
            Some(Answer::Found(Some(slot))) if !self.recs.contains_key(slot) => {
                self.recs.insert(*slot, Rec::new(table, Life::Stored, row));
                Some(*slot)
            }
            _ => Some(usize::MAX),
        }
    }

    fn query(&mut self, table: usize, answer: Option<&Answer>) -> Answer {
        let Some(Answer::Rows(slots)) = answer else {
            return Answer::Rows(Vec::new());
        };
        let mut answers = slots.iter();
        let mut found = Vec::new();
        let keys: Vec<_> = self.db[table].keys().cloned().collect();
        for key in keys {
            if self.live(table, &key).is_none() && self.is_removed(table, &key) {
                continue;
            }
            let next = Answer::Found(answers.next().copied());
            found.extend(self.find(table, &key, Some(&next)));
        }
        Answer::Rows(found)
    }

    fn reload(&mut self, slot: usize) -> Answer {
        let Some(rec) = self.recs.get(&slot) else {
            return Answer::Yes(false);
        };
        let (table, key) = (rec.table, rec.key.clone());
        let Some(row) = self.db[table].get(&key).cloned() else {
            if rec.life != Life::New {
                self.recs.remove(&slot);
            }
            return Answer::Yes(false);
        };
        let others =
            |(other, rec): (&usize, &Rec)| *other != slot && rec.table == table && rec.key == key;
        if self.recs.iter().any(others) {
            return Answer::Failed(ErrorKind::AlreadyTracked);
        }
        if let Some(rec) = self.recs.get_mut(&slot) {
            rec.become_row(&row);
        }
        Answer::Yes(true)
    }

    /// Compares the entities with what the context says of itself.
    pub(crate) fn check_context(&self, ctx: &Context<'_>, slots: &BTreeMap<usize, Handle>) -> Step {
        if ctx.len() != self.recs.len() {
            return Err(format!(
                "{} are tracked, not {}",
                ctx.len(),
                self.recs.len()
            ));
        }
        let entries: Vec<_> = ctx.entries().collect();
        let is_late = entries.iter().any(|entry| self.is_late(entry));
        let changed = (self.recs.values()).any(|rec| rec.state() != EntityState::Unchanged);
        if ctx.has_changes() != changed && !is_late {
            return Err(format!("has_changes is not {changed}: {:?}", self.recs));
        }
        for (slot, rec) in &self.recs {
            let handle = slots[slot];
            let is_it =
                |entry: &&AnyEntry<'_>| typed!(handle, typed => entry.handle() == Some(typed));
            let Some(entry) = entries.iter().find(is_it) else {
                return Err(format!("{slot} is not tracked: {rec:?}"));
            };
            self.check_entry(rec, entry)
                .map_err(|reason| format!("{slot}{reason}"))?;
            let mut current = rec.current.iter();
            let fits = current.any(|value| is_nan(value) || self.is_unknown(value))
                || of_row!(rec.table, &rec.current, entity => self.is_in(ctx, &entity, handle));
            if !fits {
                return Err(format!("{slot} is not the entity {:?}", rec.current));
            }
        }
        Ok(())
    }

    fn check_entry(&self, rec: &Rec, entry: &AnyEntry<'_>) -> Step {
        let is_late = self.is_late(entry);
        if entry.state() != rec.state() && !is_late {
            return Err(format!(" is {:?}, not {:?}", entry.state(), rec.state()));
        }
        for (at, column) in entry.columns().enumerate() {
            if self.is_unknown(&rec.current[at]) {
                continue;
            }
            let current = (!is_nan(&rec.current[at])).then(|| rec.current[at].clone());
            let original = (rec.life != Life::New).then(|| rec.original[at].clone());
            let modified = if is_late {
                column.modified
            } else {
                rec.differs(at)
            };
            let expected = (current, original.flatten(), modified);
            let found = column.current.map(|value| self.real(value));
            let found = (found, column.original, column.modified);
            if found != expected {
                return Err(format!(".{} is {found:?}, not {expected:?}", column.name));
            }
        }
        Ok(())
    }

    /// Whether it holds a temporary key that was looked at before the save was known to be written: the next save
    /// replaces it.
    fn is_late(&self, entry: &AnyEntry<'_>) -> bool {
        let mut columns = entry.columns().filter_map(|column| column.current);
        columns.any(|value| reference_of(&value).is_some_and(|key| self.given.contains_key(&key)))
    }

    fn real(&self, value: Value) -> Value {
        let real = reference_of(&value).and_then(|key| self.given.get(&key));
        real.map_or(value, |real| Value::Integer(*real))
    }

    /// A key that nobody saw.
    fn is_unknown(&self, value: &Value) -> bool {
        reference_of(value).is_some_and(|key| self.lost.contains(&key))
    }

    /// Whether the context has this entity.
    fn is_in<E: Kept>(&self, ctx: &Context<'_>, entity: &E, handle: Handle) -> bool {
        let mut entries = ctx.entries_of::<E>();
        let Some((_, entry)) = entries.find(|(found, _)| E::handle(*found) == handle) else {
            return false;
        };
        let mut row = entry.current().map(Kept::to_row).unwrap_or_default();
        for value in &mut row {
            *value = self.real(value.clone());
        }
        E::from_row(&row) == *entity
    }
}
