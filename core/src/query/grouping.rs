//! Of rows that became one, a column that is not the same in all of them has no value of its own.

use crate::{
    entity::Entity,
    query::condition::Invalid,
    sql::{Hop, Listed, Predicate, Select, Term},
};

/// Refuses what SQLite would answer with the value of any one row: a selection or an order by a column that is neither
/// grouped by nor aggregated, or, of rows that are made distinct, an order by what is not selected.
pub(in crate::query) fn check<E: Entity>(select: &Select) -> Result<(), Invalid> {
    check_having::<E>(select)?;
    let is_grouped =
        !select.group.is_empty() || select.columns.aggregates() || !select.having.is_empty();
    if is_grouped && !has_key::<E>(select) {
        let grouping = Grouping(E::TABLE.name, &select.group);
        let sorted = select.order.iter().map(|order| &order.term);
        let mut terms = std::iter::once(&select.columns).chain(sorted);
        if !terms.all(|term| grouping.has(term)) {
            return Err(ungrouped::<E>());
        }
    }
    if select.distinct
        && !select
            .order
            .iter()
            .all(|order| selects(&select.columns, &order.term))
    {
        return Err(Invalid::Model {
            table: E::TABLE.name,
            message: "distinct rows are sorted by something that is not selected: it would be that of any one of the rows \
                      that are equal; select it too, or sort by what is selected"
                .to_owned(),
        });
    }
    Ok(())
}

/// The same of what groups must fulfil, where no more is asked than how many there are.
pub(in crate::query) fn check_having<E: Entity>(select: &Select) -> Result<(), Invalid> {
    let grouping = Grouping(E::TABLE.name, &select.group);
    if has_key::<E>(select) || select.having.iter().all(|having| grouping.tests(having)) {
        return Ok(());
    }
    Err(ungrouped::<E>())
}

/// Whether an expression over many rows that are one group is the same whichever of them is looked at.
pub(in crate::query) fn is_of_all<E: Entity>(term: &Term) -> bool {
    Grouping(E::TABLE.name, &[]).has(term)
}

/// All else depends on the key.
fn has_key<E: Entity>(select: &Select) -> bool {
    !select.group.is_empty()
        && (E::TABLE.key_columns()).all(|column| select.group.contains(&Term::Column(column.name)))
}

fn ungrouped<E: Entity>() -> Invalid {
    Invalid::Model {
        table: E::TABLE.name,
        message: "a column is neither grouped by nor aggregated: it would be that of any one row of the group; add it to \
                  `group_by`, or take `min()` or `max()` of it"
            .to_owned(),
    }
}

/// Whether a term is among what is selected.
fn selects(columns: &Term, term: &Term) -> bool {
    match columns {
        _ if columns == term => true,
        Term::All(list) => {
            matches!(term, Term::Column(name) if list.listed().contains(&Listed::Column(name)))
        }
        Term::Several(terms) => terms.iter().any(|selected| selects(selected, term)),
        Term::At { hops, term: there } => {
            matches!(term, Term::At { hops: way, term } if way == hops && selects(there, term))
        }
        _ => false,
    }
}

/// What is the same in all rows of a group: the table, and by what they are grouped.
struct Grouping<'a>(&'static str, &'a [Term]);

impl Grouping<'_> {
    fn has(&self, term: &Term) -> bool {
        if self.1.contains(term) {
            return true;
        }
        match term {
            Term::Column(_) | Term::All(_) | Term::Path { .. } | Term::Length(..) => false,
            Term::Several(terms) | Term::Call { args: terms, .. } => {
                terms.iter().all(|term| self.has(term))
            }
            Term::Infix { left, right, .. } => self.has(left) && self.has(right),
            Term::Cast { of, .. } | Term::Exact(of) => self.has(of),
            Term::Case {
                branches,
                otherwise,
            } => {
                self.has(otherwise)
                    && (branches.iter()).all(|(test, term)| self.tests(test) && self.has(term))
            }
            Term::Test(predicate) => self.tests(predicate),
            // What relations lead to is the same if the columns are by which they do.
            Term::Related { hops, .. } | Term::At { hops, .. } => {
                self.leads(hops) && self.names(|found| term.each_around(found))
            }
            Term::Select(select) => self.names(|found| select.each_around(found)),
            // Computed of the groups.
            Term::Window(window) => {
                self.has(&window.function)
                    && window.partition.iter().all(|term| self.has(term))
                    && window.order.iter().all(|order| self.has(&order.term))
            }
            // Raw SQL is the application's to answer for.
            Term::Value(_)
            | Term::Number(_)
            | Term::Values(_)
            | Term::Aggregate(_)
            | Term::Outer { .. }
            | Term::Fragment(_) => true,
        }
    }

    fn tests(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Constant(_) => true,
            Predicate::Exists(_) => self.names(|found| predicate.each_around(found)),
            Predicate::InSelect { term, select } => {
                self.has(term) && self.names(|found| select.each_around(found))
            }
            Predicate::Reached(recursion) => {
                let mut key = recursion.key.names();
                key.all(|column| self.has(&Term::Column(column)))
            }
            Predicate::Null { term, .. }
            | Predicate::In { term, .. }
            | Predicate::Like { term, .. }
            | Predicate::Term(term) => self.has(term),
            Predicate::Compare { term, with, .. } => self.has(term) && self.has(with),
            Predicate::Between { term, low, high } => {
                self.has(term) && self.has(low) && self.has(high)
            }
            Predicate::Has { column, .. } => self.has(&Term::Column(column)),
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().all(|part| self.tests(part))
            }
            Predicate::Not(inverse) => self.tests(inverse),
            Predicate::Related { hops, .. } | Predicate::At { hops, .. } => {
                self.leads(hops) && self.names(|found| predicate.each_around(found))
            }
        }
    }

    fn leads(&self, hops: &[Hop]) -> bool {
        hops.first()
            .is_some_and(|hop| hop.on.iter().all(|on| self.has(&Term::Column(on.from))))
    }

    /// Whether all is so that subqueries name of the row.
    fn names(&self, walk: impl FnOnce(&mut dyn FnMut(&'static str, &Term))) -> bool {
        let mut all = true;
        walk(&mut |table, term| all &= table != self.0 || self.has(term));
        all
    }
}
