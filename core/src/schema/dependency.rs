//! Which table comes first: Tarjan's strongly connected components over the references.

use std::collections::HashMap;

use crate::{entity::TableDef, schema::folded};

/// A table's place among tables that refer to each other.
#[derive(Debug, Clone, Copy)]
pub struct Dependency {
    /// The table.
    pub table: &'static TableDef,
    /// Lower than the rank of every table that refers to this one, except those on a cycle with it: these share a
    /// rank, which no other table has.
    pub rank: usize,
    /// Whether references lead from this table back to it; a table that refers to itself is such a cycle.
    pub cyclic: bool,
}

/// Orders tables so that those referred to come first; each table once, and otherwise as listed.
///
/// Tables are told apart by name, ignoring ASCII case. References to tables that are not listed do not count.
#[must_use]
pub fn dependency_order(tables: &[&'static TableDef]) -> Vec<Dependency> {
    let mut search = Search::new(tables);
    for node in 0..search.tables.len() {
        if search.visits[node].is_none() {
            search.visit(node);
        }
    }
    search.ordered
}

/// A depth-first search from tables to those that they refer to. A component is complete only after all that
/// it refers to, which is the order wanted.
struct Search {
    tables: Vec<&'static TableDef>,
    parents: Vec<Vec<usize>>,
    /// The number of each table's visit.
    visits: Vec<Option<usize>>,
    visited: usize,
    /// Visited tables whose component is not complete yet.
    open: Vec<usize>,
    ordered: Vec<Dependency>,
    rank: usize,
}

impl Search {
    fn new(tables: &[&'static TableDef]) -> Self {
        let mut distinct = Vec::with_capacity(tables.len());
        let mut positions = HashMap::with_capacity(tables.len());
        for &table in tables {
            positions.entry(folded(table.name)).or_insert_with(|| {
                distinct.push(table);
                distinct.len() - 1
            });
        }
        let parents = distinct
            .iter()
            .map(|table| {
                let references = table
                    .columns
                    .iter()
                    .filter_map(|column| column.references.as_ref());
                references
                    .filter_map(|reference| {
                        positions.get(&folded((reference.table)().name)).copied()
                    })
                    .collect()
            })
            .collect();
        Self {
            parents,
            visits: vec![None; distinct.len()],
            tables: distinct,
            visited: 0,
            open: Vec::new(),
            ordered: Vec::new(),
            rank: 0,
        }
    }

    /// Visits a table and what it refers to; returns the least visit number that is reachable from it.
    fn visit(&mut self, node: usize) -> usize {
        let number = self.visited;
        self.visited += 1;
        self.visits[node] = Some(number);
        self.open.push(node);
        let mut lowest = number;
        for parent in self.parents[node].clone() {
            match self.visits[parent] {
                None => lowest = lowest.min(self.visit(parent)),
                Some(earlier) if self.open.contains(&parent) => lowest = lowest.min(earlier),
                Some(_) => {}
            }
        }
        if lowest == number {
            self.complete(node);
        }
        lowest
    }

    /// Closes the component that was entered at this table.
    fn complete(&mut self, first: usize) {
        let start = self
            .open
            .iter()
            .position(|&node| node == first)
            .unwrap_or_default();
        let mut component = self.open.split_off(start);
        component.sort_unstable();
        let cyclic = component.len() > 1 || self.parents[first].contains(&first);
        self.ordered
            .extend(component.into_iter().map(|node| Dependency {
                table: self.tables[node],
                rank: self.rank,
                cyclic,
            }));
        self.rank += 1;
    }
}
