//! Of rows that became one, a column that is not the same in all of them has no value of its own.

use crate::{
    entity::Entity,
    query::condition::Invalid,
    sql::{Predicate, Select, Term},
};

/// Refuses what SQLite would answer with the value of any one row: a selection or an order by a column that is neither
/// grouped by nor aggregated.
pub(in crate::query) fn check<E: Entity>(select: &Select) -> Result<(), Invalid> {
    let is_grouped =
        !select.group.is_empty() || select.columns.aggregates() || !select.having.is_empty();
    // All else depends on the key.
    let has_key =
        (E::TABLE.key_columns()).all(|column| select.group.contains(&Term::Column(column.name)));
    if !is_grouped || (has_key && !select.group.is_empty()) {
        return Ok(());
    }
    let grouping = Grouping(&select.group);
    let sorted = select.order.iter().map(|order| &order.term);
    let terms = std::iter::once(&select.columns).chain(sorted);
    if terms.into_iter().all(|term| grouping.has(term))
        && select.having.iter().all(|having| grouping.tests(having))
    {
        return Ok(());
    }
    Err(Invalid::Model {
        table: E::TABLE.name,
        message: "a column is neither grouped by nor aggregated: it would be that of any one row of the group; add it to \
                  `group_by`, or take `min()` or `max()` of it"
            .to_owned(),
    })
}

/// What is the same in all rows of a group.
struct Grouping<'a>(&'a [Term]);

impl Grouping<'_> {
    fn has(&self, term: &Term) -> bool {
        if self.0.contains(term) {
            return true;
        }
        match term {
            Term::Column(_) | Term::All(_) | Term::Path { .. } | Term::Length(_) => false,
            Term::Several(terms) | Term::Call { args: terms, .. } => {
                terms.iter().all(|term| self.has(term))
            }
            Term::Infix { left, right, .. } => self.has(left) && self.has(right),
            Term::Cast { of, .. } => self.has(of),
            Term::Case {
                branches,
                otherwise,
            } => {
                self.has(otherwise)
                    && (branches.iter()).all(|(test, term)| self.tests(test) && self.has(term))
            }
            Term::Test(predicate) => self.tests(predicate),
            // What relations lead to is the same if the columns are by which they do.
            Term::Related { hops, .. } | Term::At { hops, .. } => hops
                .first()
                .is_some_and(|hop| hop.on.iter().all(|(from, _)| self.has(&Term::Column(from)))),
            // Raw SQL is the application's to answer for; windows are computed of the groups.
            Term::Value(_)
            | Term::Number(_)
            | Term::Aggregate(_)
            | Term::Window(_)
            | Term::Select(_)
            | Term::Fragment(_) => true,
        }
    }

    fn tests(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Constant(_) | Predicate::Exists(_) => true,
            Predicate::Null { term, .. }
            | Predicate::In { term, .. }
            | Predicate::InSelect { term, .. }
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
            Predicate::Related { hops, .. } | Predicate::At { hops, .. } => hops
                .first()
                .is_some_and(|hop| hop.on.iter().all(|(from, _)| self.has(&Term::Column(from)))),
        }
    }
}
