//! Asking about what a relation leads to, and computing with it.

use std::mem;

use crate::{
    entity::{Column, Entity},
    query::{
        Condition, Expr, Fetch, Part, Reached, Related, Through,
        condition::{Invalid, Shape},
        filters, grouping,
        part::Node,
        recursion::Onward,
        step::Step,
    },
    sql::{Aggregate, Hop, Predicate, Term},
    value::Value,
};

/// # Asking about them
impl<E: Entity, R: Related, J: Through, N> Fetch<E, R, J, N> {
    /// There is one that fulfils the condition.
    pub fn any(self, condition: Condition<R::Entity>) -> Condition<E> {
        let (predicate, shape) = condition.into_parts();
        let shape = shape.and(self.shape).around();
        let asked = predicate.and_then(|predicate| {
            let (hops, mut conditions) = self.asked(&self.steps()?)?;
            conditions.push(predicate);
            if R::MANY {
                return Ok(Predicate::Related { hops, conditions });
            }
            Ok(Predicate::At {
                hops,
                predicate: Box::new(Predicate::All(conditions)),
            })
        });
        Condition::shaped(asked, shape)
    }

    /// There is none that fulfils the condition.
    pub fn none(self, condition: Condition<R::Entity>) -> Condition<E> {
        self.any(condition).not()
    }

    /// There is none that does not fulfil the condition; also where there is none at all.
    pub fn all(self, condition: Condition<R::Entity>) -> Condition<E> {
        self.any(condition.not()).not()
    }

    /// There is one.
    pub fn exists(self) -> Condition<E> {
        self.any(Condition::new(Predicate::Constant(true)))
    }

    /// How many there are.
    pub fn count(self) -> Expr<E, i64> {
        let count = Term::Aggregate(Box::new(Aggregate {
            function: "count",
            distinct: false,
            of: Vec::new(),
            filter: None,
        }));
        self.made_of(Node::of(Ok(count)))
    }

    /// What an aggregate makes of them.
    pub fn of_all<V, P: Part>(self, aggregate: Column<R::Entity, V, P>) -> Expr<E, V> {
        self.made_of(aggregate.node())
    }

    fn made_of<V>(self, node: Node) -> Expr<E, V> {
        let steps = self.steps();
        let asked = steps.and_then(|steps| Ok((self.asked(&steps)?, self.once_by(&steps))));
        let mut node = node;
        node.term = node.term.and_then(|term| {
            if !term.aggregates() || !grouping::is_of_all::<R::Entity>(&term) {
                return Err(Invalid::Refused(
                    "of the rows that a relation leads to one value is made by an aggregate: sum, min, max, count",
                ));
            }
            let ((hops, conditions), once_by) = asked?;
            Ok(Term::Related {
                hops,
                term: Box::new(term),
                conditions,
                once_by,
            })
        });
        node.shape = node.shape.and(self.shape).around();
        node.into_expr()
    }

    /// An expression over the one that there is, as one over this.
    pub fn get<V, P: Part>(self, expression: Column<R::Entity, V, P>) -> Expr<E, R::Value>
    where
        R: Reached<V>,
    {
        let asked = self.steps().and_then(|steps| self.asked(&steps));
        let mut node = expression.node();
        node.is_required = false;
        node.term = node.term.and_then(|term| {
            if term.aggregates() {
                return Err(Invalid::Refused(
                    "an aggregate is of the rows of a query: of those that a relation leads to it is `of_all`",
                ));
            }
            let (hops, conditions) = asked?;
            let at = Term::At {
                hops: hops.clone(),
                term: Box::new(term),
            };
            // Of a row that is not there all columns are NULL, but not all that can be computed of them.
            if conditions.is_empty() && (R::REQUIRED || is_null_of_nothing(&at)) {
                return Ok(at);
            }
            let fulfils = Predicate::At {
                hops,
                predicate: Box::new(Predicate::All(conditions)),
            };
            Ok(Term::Case {
                branches: vec![(fulfils, at)],
                otherwise: Box::new(Term::Value(Value::Null)),
            })
        });
        node.shape = node.shape.and(self.shape).around();
        node.into_expr()
    }

    /// The same as a step that is taken again from there.
    pub(in crate::query) fn as_step(&self) -> (Result<Onward, Invalid>, Shape) {
        let asked = self.steps().and_then(|steps| {
            if J::IS_CHAIN {
                return Err(Invalid::Refused(
                    "a recursion goes along one relation: not along one of several steps",
                ));
            }
            let (mut hops, mut conditions) = self.asked(&steps)?;
            let mut beyond = Vec::new();
            // What a join entity must fulfil is asked of it where the step is taken.
            let mut between = mem::take(&mut hops[0].conditions);
            if !between.is_empty() {
                beyond = hops.split_off(1);
                between.push(Predicate::At {
                    hops: beyond.clone(),
                    predicate: Box::new(Predicate::All(conditions)),
                });
                conditions = between;
            }
            Ok(Onward {
                hops,
                beyond,
                conditions,
            })
        });
        (asked, self.shape)
    }

    /// The way, and what those at its end must fulfil.
    fn asked(&self, steps: &[Step]) -> Result<(Vec<Hop>, Vec<Predicate>), Invalid> {
        if self.limit.is_some() || self.offset > 0 {
            return Err(Invalid::Refused(
                "a limit says how many are read, and cannot be asked about",
            ));
        }
        let hops = steps.iter().map(Step::hop).collect();
        Ok((hops, self.all_conditions(steps)?))
    }

    /// The key of those to which more than one way may lead.
    fn once_by(&self, steps: &[Step]) -> Vec<&'static str> {
        if !J::IS_CHAIN || !Step::may_meet(steps) {
            return Vec::new();
        }
        R::Entity::TABLE
            .key_columns()
            .map(|column| column.name)
            .collect()
    }

    /// With those of the entity's filters; but the one row that has to be there always is.
    pub(super) fn all_conditions(&self, steps: &[Step]) -> Result<Vec<Predicate>, Invalid> {
        let mut conditions = self.conditions.clone()?;
        let tables: Vec<_> = steps.iter().rev().map(|step| step.to).collect();
        filters::check(&self.lifted, &tables)?;
        if !R::REQUIRED {
            conditions.extend(filters::of::<R::Entity>(&self.lifted)?);
        }
        Ok(conditions)
    }
}

/// Whether an expression is NULL wherever all columns are.
fn is_null_of_nothing(term: &Term) -> bool {
    match term {
        Term::Column(_) | Term::Path { .. } | Term::Length(..) => true,
        Term::At { term, .. } | Term::Cast { of: term, .. } => is_null_of_nothing(term),
        Term::Infix { left, right, .. } => is_null_of_nothing(left) || is_null_of_nothing(right),
        _ => false,
    }
}
