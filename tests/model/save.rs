//! What a save does in the model: what it writes, how it may fail, and what the context makes of it.

use std::collections::{BTreeMap, BTreeSet};

use anabranch::{prelude::*, value::Value};

use crate::{
    tables::{EPOCH, Key, OnDelete, PART, Row, SPECS, integer, reference_of},
    world::{Answer, Db, Life, Rec, Step, World, delete, is_nan},
};

/// A save as the model expects it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Of the entities that are written, what they hold then.
    written: BTreeMap<usize, Row>,
    inserts: BTreeSet<usize>,
    deletes: BTreeMap<usize, (usize, Key)>,
    /// The rows afterwards, with temporary keys and times that are not known yet.
    after: Db,
    /// It fails before it reaches the database, with one of these.
    early: Vec<ErrorKind>,
    /// It fails, with one of these or of the next.
    definite: Vec<ErrorKind>,
    /// It may fail so: the order of the statements decides.
    possible: Vec<ErrorKind>,
    /// Rows that are not as they were read.
    conflicts: BTreeSet<(usize, Key)>,
    /// Deletes of rows that are gone, which may have gone with others of this save.
    lenient: BTreeSet<(usize, Key)>,
    /// A row makes room for another one, and others refer to it: what becomes of these depends on the order.
    loose: bool,
    token: Option<u8>,
    /// Whether it is known to be written, or not to be.
    fate: Option<bool>,
}

/// Temporary keys are far below zero.
pub(crate) const fn is_temporary(key: i64) -> bool {
    key < -1_000_000
}

/// Stands for a time that is not known before the row is looked at.
const NOW: &str = "now ";

pub(crate) fn is_now(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.starts_with(NOW))
}

impl Plan {
    /// It is known whether it will be written.
    pub(crate) fn with_fate(self, is_written: bool) -> Self {
        Self {
            fate: Some(is_written),
            ..self
        }
    }

    fn has_changes(&self) -> bool {
        !(self.written.is_empty() && self.deletes.is_empty())
    }

    /// It would fail whatever happens.
    const fn is_refused(&self) -> bool {
        !self.early.is_empty() || !self.definite.is_empty()
    }

    /// Two rows have one key or name, unless one of them goes with a row that is deleted before.
    fn collide(&mut self, gone: &[(usize, Key)]) {
        if gone.is_empty() {
            self.definite.push(ErrorKind::Unique);
        } else {
            let kinds = [
                ErrorKind::Unique,
                ErrorKind::ForeignKey,
                ErrorKind::Conflict,
            ];
            self.possible.extend(kinds);
            self.loose = true;
        }
    }

    pub(crate) const fn is_loose(&self) -> bool {
        self.loose
    }

    /// Whether this answer may be.
    pub(crate) fn fits(&self, answer: &Answer) -> Step {
        let fits = match answer {
            Answer::Failed(kind) if !self.early.is_empty() => self.early.contains(kind),
            Answer::Failed(kind) => self.definite.contains(kind) || self.possible.contains(kind),
            Answer::Saved(saved) => {
                let writes = (saved.inserted + saved.updated, self.inserts.len());
                !self.is_refused()
                    && writes == (self.written.len(), saved.inserted)
                    && saved.deleted == self.deletes.len()
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "{answer:?} does not fit: before {:?}, certain {:?}, possible {:?}, {} inserts of {} written, {} deletes",
            self.early,
            self.definite,
            self.possible,
            self.inserts.len(),
            self.written.len(),
            self.deletes.len()
        ))
    }

    /// Whether a conflict may be about these.
    pub(crate) fn fits_conflicts(&self, found: &BTreeSet<(usize, Key)>) -> Step {
        let may_be = found
            .iter()
            .all(|it| self.loose || self.conflicts.contains(it) || self.lenient.contains(it));
        // Another error may end the save before all of them are found; then it is told.
        let all = self.conflicts.iter().all(|it| found.contains(it));
        if may_be && (all || self.loose) {
            return Ok(());
        }
        Err(format!(
            "conflicts of {found:?}, not of {:?}",
            self.conflicts
        ))
    }
}

impl World {
    /// What a save would do now.
    pub(crate) fn plan(&self, token: Option<u8>) -> Plan {
        let mut plan = Plan {
            token,
            after: self.db.clone(),
            ..Plan::default()
        };
        let mut updates = BTreeMap::new();
        for (slot, rec) in &self.recs {
            match rec.life {
                Life::New => {
                    plan.inserts.insert(*slot);
                    self.look_at(rec, 0..rec.current.len(), &mut plan);
                    let twins = self.recs.values().filter(|other| {
                        other.table == rec.table && other.is_live() && other.key == rec.key
                    });
                    if twins.count() > 1 {
                        plan.early.push(ErrorKind::AlreadyTracked);
                    }
                }
                Life::Stored => {
                    let columns: Vec<_> = (0..rec.current.len())
                        .filter(|at| rec.differs(*at))
                        .collect();
                    let spec = rec.spec();
                    let mut kept = spec.key.iter().chain(&spec.version);
                    if kept.any(|column| columns.contains(column)) {
                        plan.early.push(ErrorKind::Refused);
                    }
                    self.look_at(rec, columns.iter().copied(), &mut plan);
                    if !columns.is_empty() {
                        updates.insert(*slot, columns);
                    }
                }
                Life::Removed => {
                    plan.deletes.insert(*slot, (rec.table, rec.key.clone()));
                }
            }
        }
        if plan.early.is_empty() {
            self.simulate(&mut plan, &updates);
        }
        if token.is_some_and(|token| self.tokens.contains(&token)) {
            plan.definite = vec![ErrorKind::AlreadySaved];
            plan.possible.clear();
        }
        plan
    }

    /// Values that cannot be stored.
    fn look_at(&self, rec: &Rec, columns: impl IntoIterator<Item = usize>, plan: &mut Plan) {
        for column in columns {
            let value = &rec.current[column];
            let reference = rec.spec().references.iter().find(|it| it.column == column);
            let dangling = reference
                .zip(reference_of(value))
                .is_some_and(|(reference, key)| {
                    is_temporary(key)
                    && !self.lost.contains(&key)
                    // Of a row that came and went before anybody looked, the real key is not known.
                    && !self.db[reference.target].contains_key(&vec![key])
                    && !self.recs.values().any(|target| {
                        target.table == reference.target
                            && target.life == Life::New
                            && target.key == [key]
                    })
                });
            if is_nan(value) || dangling {
                plan.early.push(ErrorKind::Value);
            }
        }
    }

    /// Writes into the rows of the plan, and finds what the database would say.
    fn simulate(&self, plan: &mut Plan, updates: &BTreeMap<usize, Vec<usize>>) {
        self.find_conflicts(plan, updates);
        self.find_moves(plan, updates);
        let now = Value::Text(format!("{NOW}{}", self.saves));
        // Those whose values are taken have to go first; where others depend on them, the plan is loose.
        let gone: Vec<_> = plan.deletes.values().cloned().collect();
        for (table, key) in &gone {
            plan.after[*table].remove(key);
        }
        for (slot, columns) in updates {
            let rec = &self.recs[slot];
            let spec = rec.spec();
            let mut written = rec.current.clone();
            let version = spec.version.map(|column| match &rec.original[column] {
                Some(Value::Integer(version)) => version.wrapping_add(1),
                _ => 1,
            });
            if let (Some(column), Some(version)) = (spec.version, version) {
                written[column] = Value::Integer(version);
            }
            if let Some(column) = spec.updated {
                written[column] = now.clone();
            }
            if let Some(row) = plan.after[rec.table].get_mut(&rec.key) {
                for column in columns.iter().chain(&spec.version).chain(&spec.updated) {
                    row[*column] = written[*column].clone();
                }
                spec.compute(row);
                if let Some(double) = spec.double {
                    written[double] = row[double].clone();
                }
            }
            plan.written.insert(*slot, written);
        }
        for slot in plan.inserts.clone() {
            let rec = &self.recs[&slot];
            let written = inserted(rec, &now);
            let key = rec.spec().key_of(&written);
            if plan.after[rec.table].insert(key, written.clone()).is_some() {
                plan.collide(&gone);
            }
            plan.written.insert(slot, written);
        }
        self.find_violations(plan, updates, &gone);
        // Where a row came again with its key, and others refer to it, the plan is loose.
        let gone: Vec<_> = (gone.into_iter())
            .filter(|(table, key)| !plan.after[*table].contains_key(key))
            .collect();
        delete(&mut plan.after, &gone);
        if !is_whole(&plan.after) {
            plan.definite.push(ErrorKind::ForeignKey);
        }
    }

    fn find_conflicts(&self, plan: &mut Plan, updates: &BTreeMap<usize, Vec<usize>>) {
        for (slot, rec) in &self.recs {
            if !updates.contains_key(slot) && !plan.deletes.contains_key(slot) {
                continue;
            }
            let row = self.db[rec.table].get(&rec.key);
            let lost = row.is_none_or(|row| {
                let version = rec.spec().version;
                version.is_some_and(|at| rec.original[at].as_ref() != Some(&row[at]))
            });
            let at = (rec.table, rec.key.clone());
            let cascades =
                (rec.spec().references.iter()).any(|it| it.on_delete == OnDelete::Cascade);
            if lost
                && row.is_none()
                && cascades
                && rec.life == Life::Removed
                && plan.deletes.len() > 1
            {
                plan.lenient.insert(at);
                plan.possible.push(ErrorKind::Conflict);
            } else if lost {
                plan.conflicts.insert(at);
            }
        }
        if !plan.conflicts.is_empty() {
            plan.definite.push(ErrorKind::Conflict);
            // A row that is not there can make the others fail in their own ways.
            plan.possible.push(ErrorKind::ForeignKey);
        }
    }

    /// Values that go from one row to another in this save.
    fn find_moves(&self, plan: &mut Plan, updates: &BTreeMap<usize, Vec<usize>>) {
        let moves = self.moves(plan, updates);
        if self.frees_unseen(plan, updates, &moves.taken) {
            plan.possible.push(ErrorKind::Unique);
            // A delete that may make room goes first, and others may refer to the row.
            if !plan.deletes.is_empty() {
                plan.loose = true;
                plan.possible
                    .extend([ErrorKind::ForeignKey, ErrorKind::Conflict]);
            }
        }
        if moves.has_circle() {
            plan.definite.push(ErrorKind::Unique);
        }
        // An update that makes room for an insert, and needs another insert before.
        let needs_insert = updates.keys().any(|slot| {
            let rec = &self.recs[slot];
            let mut references = rec.spec().references.iter();
            references.any(|it| reference_of(&rec.current[it.column]).is_some_and(is_temporary))
        });
        if needs_insert && moves.makes_room() {
            plan.possible.push(ErrorKind::Unique);
        }
        let makes_room = |slot: &usize, (table, key): &(usize, Key)| {
            let rec = &self.recs[slot];
            // Of what was never read the entity itself tells.
            let held = |at: usize| {
                rec.original[at]
                    .clone()
                    .unwrap_or_else(|| rec.current[at].clone())
            };
            let name = rec.spec().unique.map(held);
            let is_taken = |value: String| moves.taken.contains(&(*table, value));
            is_taken(format!("{key:?}")) || name.is_some_and(|name| is_taken(format!("{name:?}")))
        };
        let mut early = (plan.deletes.iter()).filter(|(slot, at)| makes_room(slot, at));
        if early.any(|(_, (table, key))| self.is_referred_to(*table, key)) {
            plan.loose = true;
            plan.possible.extend([
                ErrorKind::ForeignKey,
                ErrorKind::Conflict,
                ErrorKind::Unique,
            ]);
        }
    }

    fn moves(&self, plan: &Plan, updates: &BTreeMap<usize, Vec<usize>>) -> Moves {
        let mut moves = Moves::default();
        for slot in &plan.inserts {
            let rec = &self.recs[slot];
            moves.taken.insert((rec.table, format!("{:?}", rec.key)));
        }
        for (slot, rec) in &self.recs {
            let Some(unique) = rec.spec().unique else {
                continue;
            };
            let name = format!("{:?}", rec.current[unique]);
            let original = rec.original[unique].as_ref();
            if plan.inserts.contains(slot) {
                moves.inserted.insert(name.clone());
                moves.taken.insert((rec.table, name));
            } else if (updates.get(slot)).is_some_and(|columns| columns.contains(&unique))
                && original != Some(&rec.current[unique])
            {
                if let Some(original) = original {
                    moves.frees.insert(format!("{original:?}"), *slot);
                }
                moves.takes.insert(*slot, name.clone());
                moves.taken.insert((rec.table, name));
            }
        }
        moves
    }

    /// Whether a row that was never read, or was attached with another name, gives up one that is taken.
    fn frees_unseen(
        &self,
        plan: &Plan,
        updates: &BTreeMap<usize, Vec<usize>>,
        taken: &BTreeSet<(usize, String)>,
    ) -> bool {
        let mut rows = updates
            .keys()
            .chain(plan.deletes.keys())
            .filter_map(|slot| {
                let rec = &self.recs[slot];
                let unique = rec.spec().unique?;
                let name = &self.db[rec.table].get(&rec.key)?[unique];
                let is_read = rec.original[unique].as_ref() == Some(name);
                (!is_read).then(|| (rec.table, format!("{name:?}")))
            });
        rows.any(|name| taken.contains(&name))
    }

    fn is_referred_to(&self, table: usize, key: &Key) -> bool {
        let refers = |child: usize, value: &dyn Fn(usize) -> Option<i64>| {
            let mut references = SPECS[child].references.iter();
            references.any(|it| it.target == table && value(it.column) == Some(key[0]))
        };
        let rows = self.db.iter().enumerate();
        let mut rows = rows.flat_map(|(child, rows)| rows.values().map(move |row| (child, row)));
        rows.any(|(child, row)| refers(child, &|at| reference_of(&row[at])))
            || self.recs.values().any(|rec| {
                refers(rec.table, &|at| reference_of(&rec.current[at]))
                    || refers(rec.table, &|at| {
                        rec.original[at].as_ref().and_then(reference_of)
                    })
            })
    }

    /// What each statement would meet.
    fn find_violations(
        &self,
        plan: &mut Plan,
        updates: &BTreeMap<usize, Vec<usize>>,
        gone: &[(usize, Key)],
    ) {
        for (slot, written) in plan.written.clone() {
            let rec = &self.recs[&slot];
            let spec = rec.spec();
            let writes =
                |column: usize| plan.inserts.contains(&slot) || updates[&slot].contains(&column);
            if spec
                .score
                .is_some_and(|at| writes(at) && integer(&written[at]) < 0)
            {
                plan.definite.push(ErrorKind::Check);
            }
            for reference in spec.references.iter().filter(|it| writes(it.column)) {
                if let Some(key) = reference_of(&written[reference.column])
                    && !plan.after[reference.target].contains_key(&vec![key])
                    && !(self.db[reference.target].contains_key(&vec![key])
                        && gone.contains(&(reference.target, vec![key])))
                {
                    // A cascade may make up for it, if references are looked at in the end.
                    plan.possible.push(ErrorKind::ForeignKey);
                }
            }
        }
        let mut tables = plan.after.iter().zip(&SPECS);
        let has_twins = tables.any(|(rows, spec)| {
            let mut names = BTreeSet::new();
            let is_new = |row: &Row, unique: usize| names.insert(format!("{:?}", row[unique]));
            (spec.unique.zip(Some(is_new)))
                .is_some_and(|(unique, mut is_new)| !rows.values().all(|row| is_new(row, unique)))
        });
        if has_twins {
            plan.collide(gone);
        }
    }

    /// Takes over that a plan was written.
    pub(crate) fn accept(&mut self, plan: &Plan, actual: &Db) {
        self.saves += 1;
        self.tokens.extend(plan.token);
        for slot in &plan.inserts {
            self.find_key(
                &plan.written[slot],
                self.recs.get(slot).map(|rec| rec.table),
                actual,
            );
        }
        self.db = plan.after.clone();
        self.translate_rows();
        for (slot, written) in &plan.written {
            let Some(mut rec) = self.recs.remove(slot) else {
                continue;
            };
            rec.current = written.clone();
            if let Some(real) = self.given.get(&rec.key[0]) {
                rec.current[0] = Value::Integer(*real);
            }
            self.translate(&mut rec);
            self.recs
                .insert(*slot, Rec::new(rec.table, Life::Stored, rec.current));
        }
        for slot in plan.deletes.keys() {
            self.recs.remove(slot);
        }
        for slot in self.recs.keys().copied().collect::<Vec<_>>() {
            if let Some(mut rec) = self.recs.remove(&slot) {
                self.translate(&mut rec);
                self.recs.insert(slot, rec);
            }
        }
        self.follow(plan.deletes.values().cloned().collect());
        let mut keys = BTreeSet::new();
        let mut live = self.recs.values().filter(|rec| rec.is_live());
        self.muddled |= plan.loose || !live.all(|rec| keys.insert((rec.table, &rec.key)));
    }

    /// The key that a row got, found by its mark.
    fn find_key(&mut self, written: &Row, table: Option<usize>, actual: &Db) {
        let Some(table) = table.filter(|table| *table != PART) else {
            return;
        };
        let temporary = integer(&written[0]);
        let Some(mark) = SPECS[table].mark else {
            return;
        };
        let found = actual[table]
            .values()
            .find(|row| row[mark] == written[mark]);
        let found = found.map(|row| integer(&row[0]));
        let found = found.or_else(|| self.shown.get(&temporary).copied());
        if !is_temporary(temporary) {
            return;
        }
        if found.is_none() {
            self.lost.insert(temporary);
        }
        if let Some(real) = found {
            self.given.insert(temporary, real);
            // Who had this key before has no row any more.
            self.recs
                .retain(|_, rec| rec.table != table || rec.key != [real]);
        }
    }

    fn translate_rows(&mut self) {
        for (table, spec) in SPECS.iter().enumerate() {
            let rows = std::mem::take(&mut self.db[table]);
            for (_, mut row) in rows {
                let references = spec.references.iter().map(|it| it.column);
                for column in references.chain(spec.key.iter().copied()) {
                    let real = reference_of(&row[column]).and_then(|key| self.given.get(&key));
                    if let Some(real) = real {
                        row[column] = Value::Integer(*real);
                    }
                }
                self.db[table].insert(spec.key_of(&row), row);
            }
        }
    }

    /// What the context does when rows were deleted: as the references declare, by what was read.
    fn follow(&mut self, mut deleted: Vec<(usize, Key)>) {
        while let Some((table, key)) = deleted.pop() {
            let mut gone = Vec::new();
            for (slot, rec) in &mut self.recs {
                for reference in rec.spec().references {
                    let column = reference.column;
                    let refers = rec.original[column] == Some(Value::Integer(key[0]));
                    if reference.target != table || rec.life == Life::New || !refers {
                        continue;
                    }
                    match reference.on_delete {
                        OnDelete::Cascade => gone.push(*slot),
                        OnDelete::SetNull => {
                            if !rec.differs(column) {
                                rec.current[column] = Value::Null;
                            }
                            rec.original[column] = Some(Value::Null);
                        }
                        OnDelete::Refuse => {}
                    }
                }
            }
            for slot in gone {
                let rec = self.recs.remove(&slot);
                deleted.extend(rec.map(|rec| (rec.table, rec.key)));
            }
        }
    }

    /// The worlds in which it is known what became of the plan in flight.
    pub(crate) fn settled(&self, actual: &Db) -> Vec<Self> {
        let Some((plan, queued)) = &self.pending else {
            return vec![self.clone()];
        };
        let mut fates: Vec<_> = [true, false]
            .into_iter()
            .filter(|fate| plan.fate.is_none_or(|known| known == *fate))
            .filter(|fate| !(*fate && plan.is_refused()))
            .collect();
        if !plan.has_changes() && plan.token.is_none() {
            fates.truncate(1);
        }
        let world = |written: bool| {
            let mut world = self.clone();
            world.pending = None;
            if written {
                world.accept(plan, actual);
            }
            for act in queued {
                drop(world.act(act, None));
            }
            world
        };
        fates.into_iter().map(world).collect()
    }

    /// Compares the rows; times that were not known are those that are found, the same for all of one save.
    pub(crate) fn check_rows(&mut self, actual: &Db) -> Step {
        let mut times: BTreeMap<String, Value> = BTreeMap::new();
        for (rows, found) in self.db.iter_mut().zip(actual) {
            for (key, row) in rows {
                for (value, found) in row.iter_mut().zip(found.get(key).into_iter().flatten()) {
                    if is_now(value) {
                        let time = times
                            .entry(format!("{value:?}"))
                            .or_insert_with(|| found.clone());
                        *value = time.clone();
                    }
                }
            }
        }
        for rec in self.recs.values_mut() {
            let originals = rec.original.iter_mut().flatten();
            for value in rec.current.iter_mut().chain(originals) {
                if let Some(time) = times.get(&format!("{value:?}")) {
                    *value = time.clone();
                }
            }
        }
        if times
            .values()
            .any(|time| *time == Value::Text(EPOCH.to_owned()))
        {
            return Err("a time was not set".to_owned());
        }
        for ((rows, found), spec) in self.db.iter().zip(actual).zip(&SPECS) {
            if rows != found && !self.muddled {
                return Err(format!("{} has {found:?}, not {rows:?}", spec.name));
            }
        }
        Ok(())
    }
}

/// The unique values that a save moves.
#[derive(Debug, Default)]
struct Moves {
    /// Names and keys that inserts and updates take, by table.
    taken: BTreeSet<(usize, String)>,
    /// Which update gives up which name.
    frees: BTreeMap<String, usize>,
    /// Which name an update takes.
    takes: BTreeMap<usize, String>,
    /// The names of inserts.
    inserted: BTreeSet<String>,
}

impl Moves {
    fn makes_room(&self) -> bool {
        (self.inserted.iter()).any(|name| self.frees.contains_key(name))
    }

    /// Whether some updates take from each other.
    fn has_circle(&self) -> bool {
        self.takes.keys().any(|start| {
            let mut at = start;
            for _ in 0..=self.takes.len() {
                match self.takes.get(at).and_then(|name| self.frees.get(name)) {
                    Some(next) if next == start => return true,
                    Some(next) => at = next,
                    None => return false,
                }
            }
            false
        })
    }
}

fn inserted(rec: &Rec, now: &Value) -> Row {
    let spec = rec.spec();
    let mut row = rec.current.clone();
    if let Some(column) = spec.version {
        row[column] = Value::Integer(integer(&row[column]).max(1));
    }
    for column in [spec.created, spec.updated].into_iter().flatten() {
        if row[column] == Value::Text(EPOCH.to_owned()) {
            row[column] = now.clone();
        }
    }
    spec.compute(&mut row);
    row
}

/// Whether every reference has its row.
fn is_whole(db: &Db) -> bool {
    db.iter().zip(&SPECS).all(|(rows, spec)| {
        rows.values().all(|row| {
            spec.references.iter().all(|reference| {
                reference_of(&row[reference.column])
                    .is_none_or(|key| db[reference.target].contains_key(&vec![key]))
            })
        })
    })
}
