//! How relations get from one entity to another, as a constant can say it.

use std::slice;

use crate::{
    entity::{Entity, TableDef},
    query::{
        Related,
        condition::Invalid,
        filters::{self, Lifted},
        step::Step,
    },
};

/// Which columns refer to which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The entity's own columns, to the other's key.
    BelongsTo {
        /// The position of one of them.
        by: usize,
    },
    /// The other's columns, to the entity's key.
    Has {
        /// The position of one of them, in the other's table.
        by: usize,
    },
    /// The two are equal in one column each, neither of which need refer to the other.
    On {
        /// The position of the entity's.
        from: usize,
        /// The position of the other's.
        to: usize,
    },
    /// Whatever a condition says.
    When,
    /// Columns of a third entity, to the keys of both.
    Through {
        /// The position of one that refers to the entity.
        by: usize,
        /// The position of one that refers to the other.
        to: usize,
    },
}

/// The most relations that follow one another: a constant has no room that grows.
const MOST: usize = 8;

/// The ends of a relation, or of those that it is made of.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Route {
    ends: [Ends; MOST],
    /// How many of them; more than there is room for is no route.
    count: usize,
}

impl Route {
    pub(in crate::query) const fn of(ends: Ends) -> Self {
        Self {
            ends: [ends; MOST],
            count: 1,
        }
    }

    /// The one, and then the other.
    pub(in crate::query) const fn and(mut self, next: Self) -> Self {
        let mut at = 0;
        while at < next.count && self.count + at < MOST {
            self.ends[self.count + at] = next.ends[at];
            at += 1;
        }
        self.count = self.count.saturating_add(next.count);
        self
    }

    pub(in crate::query) const fn first(&self) -> Ends {
        self.ends[0]
    }
}

/// The steps of a relation in the making: each relation that it is made of adds its own.
#[derive(Debug)]
pub(in crate::query) struct Way<'w> {
    ends: slice::Iter<'w, Ends>,
    lifted: &'w Lifted,
    /// Whether there always is a row where it has got to.
    is_required: bool,
    steps: Vec<Step>,
}

impl<'w> Way<'w> {
    pub(in crate::query) fn along(route: &'w Route, lifted: &'w Lifted) -> Result<Self, Invalid> {
        let ends = (route.ends.get(..route.count)).ok_or(Invalid::Refused(
            "more than eight relations follow one another: make two relations of them, one in the other's `then` or `any`",
        ))?;
        Ok(Self {
            ends: ends.iter(),
            lifted,
            is_required: true,
            steps: Vec::with_capacity(route.count + 1),
        })
    }

    pub(in crate::query) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn next_ends(&mut self) -> Result<Ends, Invalid> {
        let ends = self.ends.next().copied();
        ends.ok_or(Invalid::Refused(
            "a relation has fewer steps than its type says",
        ))
    }

    /// One step, from an entity to the next.
    pub(in crate::query) fn step<E: Entity, R: Related>(&mut self) -> Result<(), Invalid> {
        let (here, there) = (E::TABLE, R::Entity::TABLE);
        let step = match self.next_ends()? {
            Ends::BelongsTo { by } => Step::to_parent(here, by, there)?,
            Ends::Has { by } => leading_to::<R>(Step::to_children(here, there, by)?)?,
            Ends::On { from, to } => {
                leading_to::<R>(Step::between_columns((here, from), (there, to)))?
            }
            Ends::When => Step::between_any(here, there),
            Ends::Through { .. } => {
                return Err(Invalid::Refused("a relation goes through nothing"));
            }
        };
        self.steps.push(step);
        Ok(())
    }

    /// Two steps, through a join entity.
    pub(in crate::query) fn steps_through<E: Entity, J: Entity, T: Entity>(
        &mut self,
    ) -> Result<(), Invalid> {
        let Ends::Through { by, to } = self.next_ends()? else {
            return Err(Invalid::Refused("a relation goes through nothing"));
        };
        self.steps.push(Step::to_children(E::TABLE, J::TABLE, by)?);
        self.pass::<J>(false)?;
        self.steps.push(Step::to_parent(J::TABLE, to, T::TABLE)?);
        Ok(())
    }

    /// What it has got to is gone past. The entity's filters hold there; but the one row that has to be there always is.
    pub(in crate::query) fn pass<M: Entity>(&mut self, is_required: bool) -> Result<(), Invalid> {
        self.is_required &= is_required;
        if !self.is_required
            && let Some(step) = self.steps.last_mut()
        {
            step.conditions = filters::of::<M>(self.lifted)?;
        }
        Ok(())
    }
}

/// The step, if it leads to as many as the relation says: joined, two of them would make two rows of one.
fn leading_to<R: Related>(step: Step) -> Result<Step, Invalid> {
    let (here, there): (_, &TableDef) = (step.from, step.to);
    if R::MANY || (step.is_to_unique() && !R::REQUIRED) {
        return Ok(step);
    }
    Err(Invalid::Model {
        table: there.name,
        message: format!(
            "there may be several for one {}: write `unique` at the field `{}`, or take a relation to many",
            here.entity, there.columns[step.to_columns[0]].field
        ),
    })
}
