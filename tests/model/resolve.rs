//! Conflicts in the model: each way of resolving one.

use std::collections::BTreeSet;

use anabranch::prelude::*;

use crate::{
    tables::{Key, Row},
    world::{Answer, How, Life, Rec, World},
};

/// What one entity becomes.
enum Resolved {
    Gone,
    Row(Row),
    New,
    /// Its own over the row, but for these columns.
    Over(Row, Vec<usize>),
}

impl World {
    /// Resolves a conflict about these entities, with the rows as they are now.
    pub(crate) fn resolve(&mut self, how: How, conflicts: &BTreeSet<(usize, Key)>) -> Answer {
        let mut resolved = Vec::new();
        for (table, key) in conflicts {
            let of_key = |rec: &&Rec| rec.table == *table && rec.key == *key;
            let found = |life: Life| {
                let mut found = self
                    .recs
                    .iter()
                    .filter(|(_, rec)| of_key(rec) && rec.life == life);
                found.next()
            };
            let Some((slot, rec)) = found(Life::Stored).or_else(|| found(Life::Removed)) else {
                return Answer::Failed(ErrorKind::Refused);
            };
            let row = self.db[*table].get(key);
            let (one, clashes) = resolution(rec, row, how);
            if clashes && matches!(how, How::Merge) {
                return Answer::Failed(ErrorKind::Conflict);
            }
            resolved.push((*slot, one));
        }
        for (slot, one) in &resolved {
            let rec = &self.recs[slot];
            if matches!(one, Resolved::Row(_))
                && self
                    .live(rec.table, &rec.key)
                    .is_some_and(|other| other != *slot)
            {
                return Answer::Failed(ErrorKind::AlreadyTracked);
            }
        }
        for (slot, one) in resolved {
            self.become_resolved(slot, one);
        }
        Answer::Done
    }

    fn become_resolved(&mut self, slot: usize, resolved: Resolved) {
        let Some(rec) = self.recs.get_mut(&slot) else {
            return;
        };
        match resolved {
            Resolved::Gone => {
                self.recs.remove(&slot);
            }
            Resolved::Row(row) => rec.become_row(&row),
            Resolved::New => {
                rec.life = Life::New;
                rec.forced.clear();
            }
            Resolved::Over(row, theirs) => {
                let created = (rec.spec().created).filter(|column| !rec.differs(*column));
                for (column, value) in row.into_iter().enumerate() {
                    if rec.spec().keeps(column)
                        || created == Some(column)
                        || theirs.contains(&column)
                    {
                        rec.current[column] = value.clone();
                        rec.forced.remove(&column);
                    }
                    rec.original[column] = Some(value);
                }
            }
        }
    }
}

/// What an entity becomes, and whether something clashed.
fn resolution(rec: &Rec, row: Option<&Row>, how: How) -> (Resolved, bool) {
    let (client, merges) = match how {
        How::Client => (true, false),
        How::Store => (false, false),
        How::Merge => (true, true),
        How::MergeWith { client } => (client, true),
    };
    let deletes = rec.life == Life::Removed;
    match row {
        None if deletes => (Resolved::Gone, false),
        None if merges && rec.state() == EntityState::Unchanged => (Resolved::Gone, false),
        None if client => (Resolved::New, true),
        None => (Resolved::Gone, true),
        Some(row) if deletes || !merges => match client {
            true => (Resolved::Over(row.clone(), Vec::new()), true),
            false => (Resolved::Row(row.clone()), true),
        },
        Some(row) => {
            let (mut theirs, clashing) = compared(rec, row);
            let clashes = !clashing.is_empty();
            if !client {
                theirs.extend(clashing);
            }
            (Resolved::Over(row.clone(), theirs), clashes)
        }
    }
}

/// The columns that only the row changed, and those that both changed to different values.
fn compared(rec: &Rec, row: &Row) -> (Vec<usize>, Vec<usize>) {
    let (mut theirs, mut clashing) = (Vec::new(), Vec::new());
    let spec = rec.spec();
    for column in (0..row.len()).filter(|at| !spec.keeps(*at)) {
        let group = spec.group(column);
        if group.start != column {
            continue;
        }
        let before = &rec.original[group.clone()];
        let (now, there) = (&rec.current[group.clone()], &row[group.clone()]);
        let is_known = !before.contains(&None);
        if spec.updated == Some(column) {
            theirs.push(column);
        } else if is_known && before.iter().flatten().eq(there) {
        } else if !rec.differs(column) {
            theirs.extend(group);
        } else if now != there {
            clashing.extend(group);
        }
    }
    (theirs, clashing)
}
