//! What a subquery names of the rows around it, found as the rendering finds it.

use crate::sql::{Compound, Hop, Piece, Predicate, Recursion, Select, Source, Term, Window};

/// What is told of each expression over a row around: the row's table, and the expression.
type Found<'f> = &'f mut dyn FnMut(&'static str, &Term);

/// Goes through a tree, and tells of each expression over a row that is around the whole.
struct Walk<'f> {
    /// The tables of the rows, of which the last is the present one.
    rows: Vec<&'static str>,
    found: Found<'f>,
}

impl Select {
    /// The table of a row that it names, but does not have.
    #[must_use]
    pub(crate) fn around(&self) -> Option<&'static str> {
        first(|found| self.each_around(found))
    }

    /// Each expression over a row around it.
    pub(crate) fn each_around(&self, found: Found<'_>) {
        Walk::begin(Vec::new(), found).select(self);
    }
}

impl Compound {
    /// The table of a row that it names, but does not have.
    #[must_use]
    pub(crate) fn around(&self) -> Option<&'static str> {
        first(|found| Walk::begin(Vec::new(), found).compound(self))
    }
}

impl Term {
    /// Each expression in it over a row around; the row that it is over itself is one for what is inside.
    pub(crate) fn each_around(&self, found: Found<'_>) {
        Walk::begin(Vec::new(), found).term(self);
    }

    /// The table of a row that it names, if it is over a row of this table.
    #[must_use]
    pub(crate) fn around(&self, table: &'static str) -> Option<&'static str> {
        first(|found| Walk::begin(vec![table], found).term(self))
    }
}

impl Predicate {
    /// Each expression in it over a row around; the row that it is asked of is one for what is inside.
    pub(crate) fn each_around(&self, found: Found<'_>) {
        Walk::begin(Vec::new(), found).predicate(self);
    }

    /// The table of a row that it names, if it is asked of a row of this table.
    #[must_use]
    pub(crate) fn around(&self, table: &'static str) -> Option<&'static str> {
        first(|found| Walk::begin(vec![table], found).predicate(self))
    }
}

fn first(walk: impl FnOnce(Found<'_>)) -> Option<&'static str> {
    let mut first = None;
    walk(&mut |table, _| {
        first.get_or_insert(table);
    });
    first
}

impl<'f> Walk<'f> {
    fn begin(rows: Vec<&'static str>, found: Found<'f>) -> Self {
        Self { rows, found }
    }

    fn within(&mut self, table: Option<&'static str>, walk: impl FnOnce(&mut Self)) {
        let depth = self.rows.len();
        self.rows.extend(table);
        walk(self);
        self.rows.truncate(depth);
    }

    /// The row to which hops lead; what each must fulfil is asked of it alone.
    fn beyond(&mut self, hops: &[Hop], walk: impl FnOnce(&mut Self)) {
        for hop in hops {
            self.within(Some(hop.table), |this| this.predicates(&hop.conditions));
        }
        self.within(hops.last().map(|hop| hop.table), walk);
    }

    /// What does not see the present row.
    fn outside(&mut self, walk: impl FnOnce(&mut Self)) {
        let here = self.rows.pop();
        walk(self);
        self.rows.extend(here);
    }

    fn compound(&mut self, compound: &Compound) {
        self.select(&compound.first);
        for (_, select) in &compound.others {
            self.select(select);
        }
    }

    fn select(&mut self, select: &Select) {
        if let Some(Source::Rows { rows, .. }) = &select.source {
            self.compound(rows);
        }
        self.within(Some(select.table), |this| {
            if let Some(Source::Sql(pieces)) = &select.source {
                this.pieces(pieces);
            }
            this.term(&select.columns);
            this.predicates(&select.conditions);
            this.terms(&select.group);
            this.predicates(&select.having);
            for order in &select.order {
                this.term(&order.term);
            }
        });
    }

    fn recursion(&mut self, recursion: &Recursion) {
        self.outside(|this| {
            this.select(&recursion.start);
            this.within(Some(recursion.start.table), |this| {
                this.beyond(&recursion.hops, |this| {
                    this.predicates(&recursion.conditions)
                });
            });
        });
    }

    fn terms<'t>(&mut self, terms: impl IntoIterator<Item = &'t Term>) {
        for term in terms {
            self.term(term);
        }
    }

    fn predicates(&mut self, predicates: &[Predicate]) {
        for predicate in predicates {
            self.predicate(predicate);
        }
    }

    fn pieces(&mut self, pieces: &[Piece]) {
        self.terms(pieces.iter().filter_map(|piece| match piece {
            Piece::Term(term) => Some(term),
            Piece::Sql(_) => None,
        }));
    }

    /// The nearest of the rows around the present one.
    fn outer(&mut self, table: &'static str, term: &Term) {
        let around = self.rows.len().saturating_sub(1);
        match self.rows[..around].iter().rposition(|row| *row == table) {
            Some(at) => {
                let inner = self.rows.split_off(at + 1);
                self.term(term);
                self.rows.extend(inner);
            }
            None => (self.found)(table, term),
        }
    }

    fn window(&mut self, window: &Window) {
        self.term(&window.function);
        self.terms(&window.partition);
        for order in &window.order {
            self.term(&order.term);
        }
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Outer { table, term } => self.outer(table, term),
            Term::Call { args: terms, .. } | Term::Several(terms) => self.terms(terms),
            Term::Infix { left, right, .. } => self.terms([&**left, right]),
            Term::Cast { of, .. } | Term::Exact(of) => self.term(of),
            Term::Case {
                branches,
                otherwise,
            } => {
                for (test, term) in branches {
                    self.predicate(test);
                    self.term(term);
                }
                self.term(otherwise);
            }
            Term::Test(predicate) => self.predicate(predicate),
            Term::Aggregate(aggregate) => {
                self.terms(&aggregate.of);
                if let Some(filter) = &aggregate.filter {
                    self.predicate(filter);
                }
            }
            Term::Window(window) => self.window(window),
            Term::Select(select) => self.select(select),
            Term::Related {
                hops,
                term,
                conditions,
                once_by: _,
            } => self.beyond(hops, |this| {
                this.term(term);
                this.predicates(conditions);
            }),
            Term::At { hops, term } => {
                self.beyond(hops, |this| this.term(term));
            }
            Term::Fragment(pieces) => self.pieces(pieces),
            Term::Column(_)
            | Term::All(_)
            | Term::Path { .. }
            | Term::Length(..)
            | Term::Value(_)
            | Term::Number(_)
            | Term::Values(_) => {}
        }
    }

    fn predicate(&mut self, predicate: &Predicate) {
        match predicate {
            Predicate::Null { term, .. }
            | Predicate::In { term, .. }
            | Predicate::Term(term)
            | Predicate::Like { term, .. } => self.term(term),
            Predicate::InSelect { term, select } => {
                self.term(term);
                self.select(select);
            }
            Predicate::Compare { term, with, .. } => self.terms([term, with]),
            Predicate::Between { term, low, high } => self.terms([term, low, high]),
            Predicate::Exists(select) => self.select(select),
            Predicate::Reached(recursion) => self.recursion(recursion),
            Predicate::Related { hops, conditions } => {
                self.beyond(hops, |this| {
                    this.predicates(conditions);
                });
            }
            Predicate::At { hops, predicate } => {
                self.beyond(hops, |this| {
                    this.predicate(predicate);
                });
            }
            Predicate::All(parts) | Predicate::Any(parts) => self.predicates(parts),
            Predicate::Not(inverse) => self.predicate(inverse),
            Predicate::Constant(_) | Predicate::Has { .. } => {}
        }
    }
}
