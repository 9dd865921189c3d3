//! The order of the rows of a plan: see the module's page.

use std::collections::{HashMap, HashSet};

use crate::{
    entity::{ForeignKeyAction, Identities, Identity, TableDef},
    flush::{Action, PlannedRow, dependency::in_order},
    schema::{Rank, Ranks},
    sql::Arg,
    tracker::RowKey,
};

/// Puts rows in order, and says whether foreign keys can be looked at only at the end.
pub(crate) fn ordered(rows: Vec<PlannedRow>) -> (Vec<PlannedRow>, bool) {
    if rows.len() < 2 {
        return (rows, false);
    }
    let mut sorter = Sorter::new(&rows);
    let order = sorter.order();
    let (defer, cascaded) = (sorter.defer, sorter.cascaded(&order));
    let mut rows: Vec<_> = rows.into_iter().map(Some).collect();
    for at in cascaded {
        if let Some(row) = &mut rows[at] {
            row.may_be_gone = true;
        }
    }
    let rows = order.into_iter().filter_map(|at| rows[at].take()).collect();
    (rows, defer)
}

/// The values in some columns of a table.
type Cell<'a> = (&'static str, &'static [usize], Identities<'a>);

struct Sorter<'a> {
    rows: &'a [PlannedRow],
    ranks: Vec<Rank>,
    inserts: Vec<usize>,
    updates: Vec<usize>,
    deletes: Vec<usize>,
    defer: bool,
    /// Some delete stands before the inserts.
    early: bool,
}

impl<'a> Sorter<'a> {
    fn new(rows: &'a [PlannedRow]) -> Self {
        let mut ranks = Ranks::default();
        let mut sorter = Self {
            rows,
            ranks: rows.iter().map(|row| ranks.of(row.table)).collect(),
            inserts: Vec::new(),
            updates: Vec::new(),
            deletes: Vec::new(),
            defer: false,
            early: false,
        };
        for (at, row) in rows.iter().enumerate() {
            match row.action {
                Action::Insert { .. } => sorter.inserts.push(at),
                Action::Update { .. } => sorter.updates.push(at),
                Action::Delete { .. } => sorter.deletes.push(at),
            }
        }
        sorter
    }

    fn order(&mut self) -> Vec<usize> {
        let inserts = self.by_references(&self.inserts.clone());
        let mut deletes = self.by_references(&self.deletes.clone());
        deletes.reverse();
        let updates = self.by_freed_values();
        let (early_deletes, deletes) = self.split_deletes(deletes);
        let (leaving, updates) = self.split_leaving(&early_deletes, updates);
        let (early_updates, updates) = self.split_updates(updates);
        self.early = !early_deletes.is_empty();
        // A row that makes room may be one that others refer to until the end of the save.
        self.defer |= !early_deletes.is_empty() || !early_updates.is_empty();
        [
            leaving,
            early_deletes,
            early_updates,
            inserts,
            updates,
            deletes,
        ]
        .concat()
    }

    /// Deletes that an earlier one may have done already, by a cascade: where tables refer to each other in a circle, or
    /// a row went early, those that refer do not always stand before those referred to.
    fn cascaded(&self, order: &[usize]) -> Vec<usize> {
        if self.deletes.len() < 2 {
            return Vec::new();
        }
        let is_delete = |at: &usize| matches!(self.rows[*at].action, Action::Delete { .. });
        let cascades = |at: &usize| {
            let mut keys = self.rows[*at].table.foreign_keys();
            keys.any(|key| key.reference.on_delete == ForeignKeyAction::Cascade)
        };
        (order.iter().copied().filter(is_delete).skip(1))
            .filter(|at| self.ranks[*at].circular || self.early)
            .filter(cascades)
            .collect()
    }

    /// Those referred to first: by the rank of the tables, on a circle of tables row by row.
    fn by_references(&mut self, members: &[usize]) -> Vec<usize> {
        let mut sorted = members.to_vec();
        sorted.sort_by_key(|at| self.ranks[*at].level);
        let mut order = Vec::with_capacity(sorted.len());
        for group in sorted.chunk_by(|a, b| self.ranks[*a].level == self.ranks[*b].level) {
            let rank = self.ranks[group[0]];
            if group.len() < 2 || !rank.circular {
                order.extend_from_slice(group);
                continue;
            }
            let keys: HashMap<Cell<'_>, usize> = (group.iter().enumerate())
                .filter_map(|(member, at)| Some((self.key(*at)?, member)))
                .collect();
            let needs: Vec<_> = (group.iter())
                .map(|at| {
                    self.references(*at)
                        .filter_map(|cell| keys.get(&cell).copied())
                        .collect()
                })
                .collect();
            let (members, possible) = in_order(&needs);
            self.defer |= !possible;
            order.extend(members.into_iter().map(|member| group[member]));
        }
        order
    }

    /// An update that takes a unique value comes after the one that gives it up.
    fn by_freed_values(&self) -> Vec<usize> {
        let freed = self.freed(&self.updates);
        if freed.is_empty() || self.updates.len() < 2 {
            return self.updates.clone();
        }
        let needs: Vec<_> = (self.updates.iter())
            .map(|at| {
                self.taken(*at)
                    .filter_map(|cell| freed.get(&cell).copied())
                    .collect()
            })
            .collect();
        let (members, _) = in_order(&needs);
        members
            .into_iter()
            .map(|member| self.updates[member])
            .collect()
    }

    /// Deletes whose unique values an insert or update takes, with the deletes of rows that refer to them.
    fn split_deletes(&self, deletes: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        if deletes.is_empty() || deletes.len() == self.rows.len() {
            return (Vec::new(), deletes);
        }
        let taken: HashSet<_> = (self.inserts.iter().chain(&self.updates))
            .flat_map(|at| self.taken(*at))
            .collect();
        let written = self.conditional(self.inserts.iter().chain(&self.updates));
        let mut early: HashSet<usize> = (deletes.iter().copied())
            .filter(|at| {
                written.contains(self.rows[*at].table.name)
                    || self.taken(*at).any(|cell| taken.contains(&cell))
            })
            .collect();
        if early.is_empty() {
            return (Vec::new(), deletes);
        }
        let mut keys: HashSet<_> = early.iter().filter_map(|at| self.key(*at)).collect();
        // Those that refer stand before those referred to, so one pass backwards finds chains, circles apart.
        for at in deletes.iter().rev() {
            if self.references(*at).any(|cell| keys.contains(&cell)) && early.insert(*at) {
                keys.extend(self.key(*at));
            }
        }
        deletes.into_iter().partition(|at| early.contains(at))
    }

    /// Updates of rows that might be deleted along with an early one, and go elsewhere; to what is not inserted yet, too.
    fn split_leaving(&self, early: &[usize], updates: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        if early.is_empty() || updates.is_empty() {
            return (Vec::new(), updates);
        }
        let gone: HashSet<_> = early.iter().filter_map(|at| self.key(*at)).collect();
        let is_gone = |row: &'a RowKey| {
            let key = Identities::within(row.table, row.table.key, &row.key);
            key.is_some_and(|key| gone.contains(&(row.table.name, row.table.key, key)))
        };
        updates
            .into_iter()
            .partition(|at| match &self.rows[*at].action {
                // One that goes to what takes the place of a row has to wait for it.
                Action::Update { joined, .. } if joined.iter().any(is_gone) => false,
                // One that takes a unique value may have to wait for it.
                Action::Update { left, unique, .. } if unique.is_empty() => !left.is_empty(),
                Action::Update { left, .. } => left.iter().any(is_gone),
                Action::Insert { .. } | Action::Delete { .. } => false,
            })
    }

    /// Updates that give up a unique value which an insert takes, and need no insert themselves.
    fn split_updates(&self, updates: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let freed = self.freed(&updates);
        let inserted = self.conditional(&self.inserts);
        if self.inserts.is_empty() || (freed.is_empty() && inserted.is_empty()) {
            return (Vec::new(), updates);
        }
        let giver = |cell| freed.get(&cell).map(|member| updates[*member]);
        let taken: HashSet<_> = self.inserts.iter().flat_map(|at| self.taken(*at)).collect();
        let mut early: HashSet<usize> = (freed.iter())
            .filter(|(cell, _)| taken.contains(*cell))
            .map(|(_, member)| updates[*member])
            .filter(|at| !self.needs_a_key(*at))
            .collect();
        // What an early one takes has to be given up before it; those that give stand before those that take.
        for at in updates.iter().rev() {
            if early.contains(at) {
                let givers = self.taken(*at).filter_map(giver);
                early.extend(givers.filter(|at| !self.needs_a_key(*at)));
            }
        }
        for at in &updates {
            if inserted.contains(self.rows[*at].table.name)
                && !self.needs_a_key(*at)
                && (self.taken(*at).filter_map(giver)).all(|it| it == *at || early.contains(&it))
            {
                early.insert(*at);
            }
        }
        updates.into_iter().partition(|at| early.contains(at))
    }

    /// The tables of these rows in which nobody can tell who gives up or takes a unique value.
    fn conditional<'r>(&self, rows: impl IntoIterator<Item = &'r usize>) -> HashSet<&'static str> {
        (rows.into_iter())
            .map(|at| self.rows[*at].table)
            .filter(|table| table.has_conditional_keys())
            .map(|table| table.name)
            .collect()
    }

    /// The unique values that these updates give up, and which of them does.
    fn freed(&self, updates: &[usize]) -> HashMap<Cell<'a>, usize> {
        let mut cells = HashMap::new();
        for (member, at) in updates.iter().enumerate() {
            let row = &self.rows[*at];
            if let Action::Update { unique, .. } = &row.action {
                for change in unique {
                    let freed = Identities::within(row.table, change.columns, &change.freed);
                    if let Some(freed) = freed {
                        cells.insert((row.table.name, change.columns, freed), member);
                    }
                }
            }
        }
        cells
    }

    /// The unique values that an insert or update takes, or that a delete gives up.
    fn taken(&self, at: usize) -> impl Iterator<Item = Cell<'a>> {
        let row = &self.rows[at];
        let (changes, keys) = match &row.action {
            Action::Update { unique, .. } => (&unique[..], None),
            Action::Insert { .. } | Action::Delete { .. } => {
                (&[][..], Some(row.table.unique_keys()))
            }
        };
        let changed = changes.iter().filter_map(|change| {
            let taken = change.taken.iter().zip(change.columns);
            let taken = taken.map(|(value, column)| argument(value, row.table, *column));
            Some((row.table.name, change.columns, Identities::of(taken)?))
        });
        let held = keys
            .into_iter()
            .flatten()
            .filter_map(move |columns| self.held(at, columns, row.table, columns));
        changed.chain(held)
    }

    fn key(&self, at: usize) -> Option<Cell<'a>> {
        let table = self.rows[at].table;
        self.held(at, table.key, table, table.key)
    }

    /// The keys that a row refers to.
    fn references(&self, at: usize) -> impl Iterator<Item = Cell<'a>> {
        self.rows[at]
            .table
            .foreign_keys()
            .filter_map(move |foreign_key| {
                let target = (foreign_key.reference.table)();
                self.held(at, foreign_key.columns, target, target.key)
            })
    }

    fn needs_a_key(&self, at: usize) -> bool {
        match &self.rows[at].action {
            Action::Update { values, .. } => {
                values.iter().any(|value| matches!(value, Arg::Key(_)))
            }
            Action::Insert { .. } | Action::Delete { .. } => false,
        }
    }

    /// What a row writes in all of these columns, or held there if it is deleted, as it is compared in those of a table.
    fn held(
        &self,
        at: usize,
        columns: &[usize],
        table: &'static TableDef,
        compared: &'static [usize],
    ) -> Option<Cell<'a>> {
        let pairs = columns.iter().zip(compared);
        let values = pairs.map(|(column, compared)| self.identity(at, *column, table, *compared));
        Some((table.name, compared, Identities::of(values)?))
    }

    fn identity(
        &self,
        at: usize,
        column: usize,
        table: &TableDef,
        compared: usize,
    ) -> Option<Identity<'a>> {
        match &self.rows[at].action {
            Action::Insert { values, .. } => argument(&values[column], table, compared),
            Action::Update {
                columns, values, ..
            } => {
                let changed = columns.iter().position(|changed| *changed == column)?;
                argument(&values[changed], table, compared)
            }
            Action::Delete { values } => Identity::of(&values[column], &table.columns[compared]),
        }
    }
}

fn argument<'a>(argument: &'a Arg, table: &TableDef, column: usize) -> Option<Identity<'a>> {
    match argument {
        Arg::Value(value) => Identity::of(value, &table.columns[column]),
        Arg::Key(position) => Some(Identity::Position(*position)),
    }
}
