//! The filters that an entity declares for all its queries.

use std::cell::RefCell;

use crate::{
    entity::{Entity, TableDef},
    query::{Condition, condition::Invalid},
    sql::Predicate,
};

/// Which of the filters do not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::query) enum Lifted {
    #[default]
    None,
    Named(Vec<&'static str>),
    All,
}

impl Lifted {
    pub(in crate::query) fn add(&mut self, name: &'static str) {
        match self {
            Self::None => *self = Self::Named(vec![name]),
            Self::Named(names) => names.push(name),
            Self::All => {}
        }
    }

    fn lifts(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Named(names) => names.contains(&name),
            Self::All => true,
        }
    }
}

/// What the entity's filters ask for, but for those that are lifted.
pub(in crate::query) fn of<E: Entity>(lifted: &Lifted) -> Result<Vec<Predicate>, Invalid> {
    let declared = E::TABLE.filters.iter();
    let applied = declared.filter(|filter| !lifted.lifts(filter.name));
    let predicates = applied.map(|filter| {
        let _asking = Asking::begin(E::TABLE, filter.name)?;
        let condition = (filter.condition)().downcast::<Condition<E>>();
        condition.map_or_else(
            |_| {
                Err(Invalid::Model {
                    table: E::TABLE.name,
                    message: format!("the filter `{}` is one of another entity", filter.name),
                })
            },
            |condition| condition.into_predicate(),
        )
    });
    predicates.collect()
}

/// Whether each name that is lifted is that of a filter of one of these tables, of which the first is meant most likely.
pub(in crate::query) fn check(
    lifted: &Lifted,
    tables: &[&'static TableDef],
) -> Result<(), Invalid> {
    let Lifted::Named(names) = lifted else {
        return Ok(());
    };
    let known = |name: &str| {
        let mut filters = tables.iter().flat_map(|table| table.filters);
        filters.any(|filter| filter.name == name)
    };
    let unknown = names.iter().find(|name| !known(name));
    match (unknown, tables) {
        (Some(unknown), [table, ..]) => Err(Invalid::Model {
            table: table.name,
            message: format!("{} has no filter `{unknown}`", table.entity),
        }),
        _ => Ok(()),
    }
}

thread_local! {
    /// The filters whose conditions are being made, each asked for by the one before.
    static ASKED: RefCell<Vec<(&'static str, &'static str)>> = const { RefCell::new(Vec::new()) };
}

/// While it lives the condition of a filter is being made.
struct Asking;

impl Asking {
    fn begin(table: &'static TableDef, filter: &'static str) -> Result<Self, Invalid> {
        ASKED.with_borrow_mut(|asked| {
            if asked.contains(&(table.name, filter)) {
                return Err(Invalid::Model {
                    table: table.name,
                    message: format!(
                        "the filter `{filter}` follows a relation that leads to {}, where it applies again: write \
                         `without_filter(\"{filter}\")` at the relation",
                        table.entity
                    ),
                });
            }
            asked.push((table.name, filter));
            Ok(Self)
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKED.with_borrow_mut(Vec::pop);
    }
}
