//! Asking about what a relation leads to, and computing with it.

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

/// What is asked about related rows.
struct Asked {
    /// The way, to the join entity where that has conditions of its own.
    hops: Vec<Hop>,
    conditions: Vec<Predicate>,
    /// The rest of the way then.
    beyond: Vec<Hop>,
}

/// # Asking about them
impl<E: Entity, R: Related, J: Through, N> Fetch<E, R, J, N> {
    /// There is one that fulfils the condition.
    pub fn any(self, condition: Condition<R::Entity>) -> Condition<E> {
        let (predicate, shape) = condition.into_parts();
        let shape = shape.and(self.shape).around();
        let asked = predicate.and_then(|predicate| self.asked(Some(predicate)));
        let asked = asked.map(
            |Asked {
                 hops, conditions, ..
             }| {
                if R::MANY {
                    return Predicate::Related { hops, conditions };
                }
                Predicate::At {
                    hops,
                    predicate: Box::new(Predicate::All(conditions)),
                }
            },
        );
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
        let asked = self.asked(None);
        let mut node = node;
        node.term = node.term.and_then(|term| {
            if !term.aggregates() || !grouping::is_of_all::<R::Entity>(&term) {
                return Err(Invalid::Refused(
                    "of the rows that a relation leads to one value is made by an aggregate: sum, min, max, count",
                ));
            }
            let asked = asked?;
            let term = match asked.beyond {
                hops if hops.is_empty() => term,
                hops => Term::At {
                    hops,
                    term: Box::new(term),
                },
            };
            Ok(Term::Related {
                hops: asked.hops,
                term: Box::new(term),
                conditions: asked.conditions,
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
        let asked = self.asked(None);
        let mut node = expression.node();
        node.is_required = false;
        node.term = node.term.and_then(|term| {
            if term.aggregates() {
                return Err(Invalid::Refused(
                    "an aggregate is of the rows of a query: of those that a relation leads to it is `of_all`",
                ));
            }
            let Asked {
                hops, conditions, ..
            } = asked?;
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
        let asked = self.asked(None).map(|asked| Onward {
            hops: asked.hops,
            beyond: asked.beyond,
            conditions: asked.conditions,
        });
        (asked, self.shape)
    }

    /// The way, and what those at its end must fulfil, this among it.
    fn asked(&self, also: Option<Predicate>) -> Result<Asked, Invalid> {
        if self.limit.is_some() || self.offset > 0 {
            return Err(Invalid::Refused(
                "a limit says how many are read, and cannot be asked about",
            ));
        }
        let steps = self.relation.steps()?;
        let mut asked = Asked {
            hops: steps.iter().map(Step::hop).collect(),
            conditions: self.all_conditions()?,
            beyond: Vec::new(),
        };
        asked.conditions.extend(also);
        let mut between = J::conditions::<R::Entity>(&self.lifted)?;
        if !between.is_empty() {
            asked.beyond = asked.hops.split_off(1);
            between.push(Predicate::At {
                hops: asked.beyond.clone(),
                predicate: Box::new(Predicate::All(asked.conditions)),
            });
            asked.conditions = between;
        }
        Ok(asked)
    }

    /// With those of the entity's filters; but the one row that has to be there always is.
    pub(super) fn all_conditions(&self) -> Result<Vec<Predicate>, Invalid> {
        let mut conditions = self.conditions.clone()?;
        if !R::REQUIRED {
            conditions.extend(filters::of::<R::Entity>(&self.lifted, J::JOIN)?);
        } else {
            filters::check(&self.lifted, [Some(R::Entity::TABLE), None])?;
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
