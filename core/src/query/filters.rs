//! The filters that an entity declares for all its queries.

use crate::{
    entity::Entity,
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
    let declared = E::TABLE.filters;
    if let Lifted::Named(names) = lifted {
        let is_unknown = |name: &&&str| !declared.iter().any(|filter| filter.name == **name);
        if let Some(unknown) = names.iter().find(is_unknown) {
            return Err(Invalid::Model {
                table: E::TABLE.name,
                message: format!("{} has no filter `{unknown}`", E::TABLE.entity),
            });
        }
    }
    let applied = declared.iter().filter(|filter| !lifted.lifts(filter.name));
    let predicates = applied.map(|filter| {
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
