//! Reading what relations lead to: to-one relations with the row, by a join; to-many relations in one statement for all
//! rows.

mod asked;
mod of_each;

use std::{collections::HashMap, fmt};

use crate::{
    entity::{Entity, Identities, TableDef},
    error::{Error, ErrorKind, Result},
    query::{
        Condition, Included, Narrowed, Orders, Projection, Query, Related, Relation, Selection,
        Through, Whole, With,
        condition::{Invalid, Shape},
        filters::Lifted,
        outer,
        route::Ends,
        step::Step,
    },
    sql::{OrderTerm, Predicate, Reads, Select, Term},
    value::{Row, Value, ValueRef},
};

pub use self::of_each::OfEach;

/// What a [`Relation`] leads to, narrowed, sorted, or limited for each row; and what is read of it.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(orders: Order))]
/// # struct Customer { #[entity(id)] id: i64, name: String }
/// # #[derive(Debug, Entity)]
/// # #[entity(table = "orders", has_many(lines: Line))]
/// # struct Order { #[entity(id)] id: i64, #[entity(references = Customer, index)] customer_id: i64 }
/// # #[derive(Debug, Entity)]
/// # #[entity(filter(live = Line::live))]
/// # struct Line {
/// #     #[entity(id)] id: i64,
/// #     #[entity(references = Order, index)] order_id: i64,
/// #     item: String,
/// #     price: i64,
/// #     deleted: bool,
/// # }
/// # impl Line { fn live() -> Condition<Self> { Self::DELETED.eq(false) } }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<(Customer, Order, Line)>().await?;
/// # let mut ctx = db.context();
/// # let ada = ctx.add(Customer { id: 0, name: "Ada".into() });
/// # let order = ctx.add(Order { id: 0, customer_id: ctx[ada].id });
/// # for (item, price, deleted) in [("tea", 4, false), ("cake", 7, false), ("jam", 9, true)] {
/// #     ctx.add(Line { id: 0, order_id: ctx[order].id, item: item.into(), price, deleted });
/// # }
/// # ctx.save_changes().await?;
/// let dearest: Fetch<Order, Vec<Line>> = Order::LINES.order_by(Line::PRICE.desc()).limit(1);
/// let orders = Order::query().with(dearest.offset(1)).all(&db).await?;
/// assert_eq!(orders[0].1[0].item, "tea");
///
/// // Also what the entity's filter leaves out, and with what leads on from there.
/// let all = Order::LINES.filter(Line::PRICE.gt(5)).without_filter("live").then(Line::ORDER);
/// assert_eq!(Order::query().with(all).all(&db).await?[0].1.len(), 2);
/// let items = Order::LINES.filter(Line::PRICE.gt(5)).without_filters().select(Line::ITEM);
/// assert_eq!(Order::query().with(items).all(&db).await?[0].1.len(), 2);
/// let dear = || Order::LINES.filter(Line::PRICE.gt(5));
/// let asked = dear().any(Line::ITEM.eq("cake")).and(dear().none(Line::ITEM.eq("jam")));
/// let asked = asked.and(dear().all(Line::ITEM.ne("tea"))).and(dear().exists());
/// assert_eq!(Order::query().filter(asked).count(&db).await?, 1);
/// let made = (dear().count(), dear().of_all(Line::PRICE.sum()));
/// assert_eq!(Order::query().select(made).one(&db).await?, (1, Some(7)));
/// # Ok(()) }
/// ```
#[must_use = "it does nothing until a query reads it or asks about it"]
pub struct Fetch<E, R, J = (), N = Whole> {
    relation: Relation<E, R, J>,
    selection: N,
    /// Or what is wrong with one of them, or with the order.
    conditions: Result<Vec<Predicate>, Invalid>,
    shape: Shape,
    order: Vec<OrderTerm>,
    limit: Option<u64>,
    offset: u64,
    lifted: Lifted,
    /// The steps, once the filters of the entities between are in their place.
    steps: Option<Vec<Step>>,
    /// The deferred columns that the whole of a row is read with.
    pub(in crate::query) included: Included,
}

/// What one row of a query has to begin with.
#[doc(hidden)]
#[derive(Debug)]
pub enum Begun<P> {
    /// What there is of the one row that there may be.
    One(Option<P>),
    /// The key by which the others are found.
    Many(Vec<Value>),
}

/// The most keys of several columns that one statement asks for; each is two parameters at least.
const PAIRS: usize = 200;

/// How many keys of so many columns one statement asks for.
pub(crate) const fn most_keys(columns: usize) -> usize {
    if columns == 1 { usize::MAX } else { PAIRS }
}

impl<E, R, J> Fetch<E, R, J> {
    pub(in crate::query) const fn new(relation: Relation<E, R, J>) -> Self {
        Self {
            relation,
            selection: Whole,
            conditions: Ok(Vec::new()),
            shape: Shape::FLAT,
            order: Vec::new(),
            limit: None,
            offset: 0,
            lifted: Lifted::None,
            steps: None,
            included: Included::NONE,
        }
    }
}

impl<E: Entity, R: Related, J: Through, N> Fetch<E, R, J, N> {
    /// Reads only those that fulfil the condition too.
    pub fn filter(mut self, condition: Condition<R::Entity>) -> Self
    where
        R: Narrowed,
    {
        let (predicate, shape) = condition.into_parts();
        self.shape = self.shape.and(shape);
        if let Ok(conditions) = &mut self.conditions {
            match predicate {
                Ok(predicate) if predicate.aggregates() => {
                    self.conditions = Err(Invalid::Refused(
                        "those that a relation leads to cannot be filtered by an aggregate: ask about it in `having`, or by `of_all`",
                    ));
                }
                Ok(predicate) => conditions.push(predicate),
                Err(invalid) => self.conditions = Err(invalid),
            }
        }
        self
    }

    /// Reads them in this order; where it is equal, in that given before.
    pub fn order_by(mut self, orders: impl Orders<R::Entity>) -> Self
    where
        R: Narrowed,
    {
        for order in orders.orders() {
            match order.into_term() {
                Ok(term) => self.order.push(term),
                Err(invalid) => self.conditions = self.conditions.and(Err(invalid)),
            }
        }
        self
    }

    /// Reads no more than this many for each row.
    pub fn limit(mut self, rows: u64) -> Self
    where
        R: Narrowed,
    {
        self.limit = Some(rows);
        self
    }

    /// Leaves out this many at the beginning, for each row.
    pub fn offset(mut self, rows: u64) -> Self
    where
        R: Narrowed,
    {
        self.offset = rows;
        self
    }

    /// Reads also those that the filter of this name leaves out: one of the other entity, or of an entity between.
    pub fn without_filter(mut self, name: &'static str) -> Self {
        self.lifted.add(name);
        self
    }

    /// Reads also those that any filter leaves out: of the other entity, and of those between.
    pub fn without_filters(mut self) -> Self {
        self.lifted = Lifted::All;
        self
    }

    /// Reads each with what another relation leads to from there.
    pub fn then<L>(self, load: L) -> Fetch<E, R, J, N::Both>
    where
        N: With<L>,
    {
        let (selection, rest) = self.take_selection();
        rest.put_selection(selection.with(load))
    }

    /// Reads this of each of them instead.
    pub fn select<M: Selection<R::Entity>>(self, selection: M) -> Fetch<E, R, J, M> {
        self.take_selection().1.put_selection(selection)
    }

    /// Reads each as a struct that derives [`Projection`].
    pub fn project<P: Projection<Entity = R::Entity>>(
        self,
    ) -> Fetch<E, R, J, impl Selection<R::Entity, Output = P>> {
        self.select(P::selection())
    }

    /// The same of what another selection is made to.
    pub(crate) fn try_map<M>(self, make: impl FnOnce(N) -> Result<M>) -> Result<Fetch<E, R, J, M>> {
        let (selection, rest) = self.take_selection();
        Ok(rest.put_selection(make(selection)?))
    }

    /// The steps, with the filters of the entities between.
    fn steps(&self) -> Result<Vec<Step>, Invalid> {
        match &self.steps {
            Some(steps) => Ok(steps.clone()),
            None => self.relation.steps_without(&self.lifted),
        }
    }

    fn take_selection(self) -> (N, Fetch<E, R, J>) {
        let Self {
            relation,
            selection,
            conditions,
            shape,
            order,
            limit,
            offset,
            lifted,
            steps,
            included,
        } = self;
        let rest = Fetch {
            relation,
            selection: Whole,
            conditions,
            shape,
            order,
            limit,
            offset,
            lifted,
            steps,
            included,
        };
        (selection, rest)
    }
}

impl<E, R, J> Fetch<E, R, J> {
    fn put_selection<M>(self, selection: M) -> Fetch<E, R, J, M> {
        Fetch {
            relation: self.relation,
            selection,
            conditions: self.conditions,
            shape: self.shape,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
            lifted: self.lifted,
            steps: self.steps,
            included: self.included,
        }
    }
}

impl<E: Entity, T: Entity, J: Entity, N: Clone> Fetch<E, Vec<T>, J, N> {
    /// The same by way of the join entities, which are read too.
    pub(crate) fn by_join(self) -> Result<Joined<E, T, J, N>, Invalid> {
        let steps = self.steps()?;
        let (Ends::Through { by, to }, [first, second]) = (self.relation.route.first(), &steps[..])
        else {
            return Err(Invalid::Refused("a relation goes through nothing"));
        };
        let seen = Select {
            order: self.order.clone(),
            ..Select::of(T::TABLE.name, Term::Several(Vec::new()))
        };
        let mut conditions = beyond(second, self.all_conditions(&steps)?);
        conditions.extend(first.conditions.iter().cloned());
        let mut others = Fetch::new(Relation::<J, T>::belongs_to(to)).put_selection(self.selection);
        others.shape = self.shape.around();
        others.included = self.included;
        Ok(Fetch {
            relation: Relation::has(by),
            selection: (Whole, others),
            conditions: Ok(conditions),
            shape: self.shape,
            order: seen.beginning_at(J::TABLE.name, &[second.hop()]).order,
            limit: self.limit,
            offset: self.offset,
            // Those that apply are among the conditions.
            lifted: Lifted::All,
            steps: None,
            included: Included::NONE,
        })
    }
}

impl<E: Entity, T: Entity, J: Entity> Relation<E, Vec<T>, J> {
    /// The join entities, each with the other.
    pub(crate) fn joined(self) -> Result<Query<J, EachWith<J, T>>, Invalid> {
        let joined = self.fetch().by_join()?;
        Ok(Query::new()
            .without_filters()
            .fulfilling(joined.conditions?)
            .select(joined.selection))
    }
}

/// What is read of entities and asked of them, in a statement that begins with the join entities; whether there is such an
/// entity comes first.
fn of_joined(select: Select, step: &Step) -> Select {
    let hops = vec![step.hop()];
    let conditions = beyond(step, select.conditions.clone());
    let is_there = Term::Test(Box::new(Predicate::is_there(hops.clone())));
    let seen = select.beginning_at(step.from.name, &hops);
    Select {
        columns: Term::Several(vec![is_there, seen.columns]),
        conditions,
        ..seen
    }
}

/// What join entities must fulfil of which the others fulfil these conditions. One that refers to what is not there is
/// not left out: that is found when the other is read.
fn beyond(step: &Step, conditions: Vec<Predicate>) -> Vec<Predicate> {
    let columns = step.from_columns.iter();
    let nullable = (columns.map(|column| &step.from.columns[*column])).filter(|it| it.nullable);
    let mut all: Vec<_> = nullable
        .map(|column| Predicate::Null {
            term: Term::Column(column.name),
            negated: true,
        })
        .collect();
    if !conditions.is_empty() {
        let hops = vec![step.hop()];
        let missing = Predicate::is_there(hops.clone()).complement();
        let fulfils = Predicate::At {
            hops,
            predicate: Box::new(Predicate::All(conditions)),
        };
        all.push(Predicate::Any(vec![fulfils, missing]));
    }
    all
}

/// Join entities, each with the entity that it leads to.
pub(crate) type Joined<E, T, J, N> = Fetch<E, Vec<J>, (), EachWith<J, T, N>>;

/// A join entity, with the entity that it leads to.
pub(crate) type EachWith<J, T, N = Whole> = (Whole, Fetch<J, T, (), N>);

impl<E: Entity, R: Related, J: Through, N: Selection<R::Entity>> Fetch<E, R, J, N> {
    /// The statement that reads those of these keys, the columns that refer to the key first.
    fn select_for(&self, keys: &[&[Value]]) -> Result<crate::sql::Statement, Invalid> {
        let (select, links) = self.tree_for(keys)?;
        if select.limit.is_some() || select.offset > 0 {
            return Ok(select.into_rows_of_parts(links));
        }
        Ok(select.into_rows())
    }

    /// Its tree, and the columns by which it is known whose a row is.
    fn tree_for(&self, keys: &[&[Value]]) -> Result<(Select, Vec<Term>), Invalid> {
        self.shape.check()?;
        let steps = self.steps()?;
        let [first, further @ ..] = &steps[..] else {
            return Err(Invalid::Refused("a relation leads nowhere"));
        };
        let mut terms = Vec::new();
        self.selection.terms(&mut terms)?;
        self.included.apply::<R::Entity>(&mut terms);
        let mut select = Select {
            conditions: self.all_conditions(&steps)?,
            order: self.order.clone(),
            ..Select::of(R::Entity::TABLE.name, Term::Several(terms))
        };
        let mut links = owners(first);
        let starts = vec![Predicate::among(&links, keys)];
        if J::IS_CHAIN && Step::may_meet(&steps) {
            links = select.read_from_ends(&steps, starts, links);
        } else {
            if first.to_columns.is_empty() {
                // The rows that it starts from take part, joined to all others; the conditions are what connects them.
                select = select.beginning_at(first.from.name, &[first.hop()]);
            } else if let ([second], Some(_)) = (further, J::JOIN) {
                select = of_joined(select, second);
            } else if !further.is_empty() {
                let hops: Vec<_> = further.iter().map(Step::hop).collect();
                select = select.beginning_at(first.to.name, &hops);
            }
            select.conditions.splice(0..0, starts);
            select.conditions.extend(first.conditions.iter().cloned());
        }
        select.columns = Term::Several(links.iter().cloned().chain([select.columns]).collect());
        select.limit = self.limit;
        select.offset = self.offset;
        outer::check(select.around())?;
        Ok((select, links))
    }

    /// Reads those that belong to rows with these keys.
    fn finish_many(
        &self,
        keys: &[Vec<Value>],
        reads: &mut dyn Reads,
    ) -> Result<Vec<Vec<N::Output>>> {
        let steps = self.steps()?;
        let [first, ..] = &steps[..] else {
            return Err(Invalid::Refused("a relation leads nowhere").into());
        };
        let (table, columns) = match first.to_columns[..] {
            [] => (first.from, first.from.key),
            _ => first.compared(),
        };
        // Of rows with the same key each gets its own: what is read need not be cloned.
        let mut asking: HashMap<Identities<'_>, Vec<usize>> = HashMap::with_capacity(keys.len());
        let mut distinct: Vec<&[Value]> = Vec::with_capacity(keys.len());
        for (position, key) in keys.iter().enumerate() {
            let key = &key[..columns.len()];
            let Some(identity) = Identities::within(table, columns, key) else {
                continue;
            };
            let positions = asking.entry(identity).or_default();
            if positions.is_empty() {
                distinct.push(key);
            }
            positions.push(position);
        }
        let mut owners = Vec::new();
        let mut partials = Vec::new();
        let width = columns.len();
        let begins = width + usize::from(J::JOIN.is_some());
        let chunk = most_keys(width);
        for keys in distinct.chunks(chunk) {
            let statement = self.select_for(keys).map_err(Error::from)?;
            reads.rows(&statement, &mut |row| {
                let values;
                let owner = match row.value(0) {
                    // As most keys are: nothing of it has to be kept.
                    ValueRef::Integer(key) if width == 1 => Some(Identities::integer(key)),
                    _ => {
                        values = key_of(row, width).unwrap_or_default();
                        Identities::within(table, columns, &values)
                    }
                };
                let positions = owner.and_then(|owner| asking.get(&owner));
                for position in positions.into_iter().flatten() {
                    if let Some(join) = J::JOIN
                        && row.value(width) != ValueRef::Integer(1)
                    {
                        return Err(missing(R::Entity::TABLE, join));
                    }
                    owners.push(*position);
                    partials.push(N::decode(row, begins)?);
                }
                Ok(())
            })?;
        }
        let found = self.selection.finish(partials, reads)?;
        let mut counts = vec![0; keys.len()];
        for owner in &owners {
            counts[*owner] += 1;
        }
        let mut of_each: Vec<Vec<N::Output>> = counts.into_iter().map(Vec::with_capacity).collect();
        for (owner, output) in owners.into_iter().zip(found) {
            of_each[owner].push(output);
        }
        Ok(of_each)
    }
}

/// The columns by which it is known whose a row is.
fn owners(first: &Step) -> Vec<Term> {
    if first.to_columns.is_empty() {
        return (first
            .from
            .key_columns()
            .map(|column| Term::Column(column.name)))
        .collect();
    }
    first.links()
}

/// All that one row has; it is an error if there has to be one and is none.
fn wrapped<E: Entity, R: Related, O: Send + 'static>(found: Vec<O>) -> Result<R::Wrapped<O>> {
    R::wrapped(found).ok_or_else(|| missing(R::Entity::TABLE, E::TABLE))
}

fn missing(there: &TableDef, referring: &TableDef) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!(
            "the {} that a {} refers to is not there: foreign keys were switched off by whoever wrote it",
            there.entity, referring.entity
        ),
    )
    .with_table(referring.name)
}

/// The key that a row refers to, with which it begins.
fn key_of(row: &dyn Row, width: usize) -> Option<Vec<Value>> {
    (0..width)
        .map(|column| row.value(column).to_value().ok())
        .collect()
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, R: Related, J: Through, N: Selection<R::Entity>> Selection<E>
    for Fetch<E, R, J, N>
{
    type Output = R::Wrapped<N::Output>;
    type Partial = Begun<N::Partial>;
    type Prepared = Fetch<E, R, J, N::Prepared>;
    const FLAT: bool = !R::MANY && N::FLAT;

    /// With the filters in their place: they may look at the task, which the others are not read on.
    fn prepare(mut self) -> Result<Self::Prepared, Invalid> {
        let steps = self.steps()?;
        self.conditions = Ok(self.all_conditions(&steps)?);
        self.steps = Some(steps);
        self.lifted = Lifted::All;
        let (selection, rest) = self.take_selection();
        Ok(rest.put_selection(selection.prepare()?))
    }

    fn width() -> usize {
        if R::MANY {
            J::width::<E, R>()
        } else {
            1 + N::width()
        }
    }

    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
        self.shape.check()?;
        let steps = self.steps()?;
        if R::MANY {
            // What is wrong with it is told before anything is read.
            self.tree_for(&[])?;
            let links = match &steps[0].from_columns[..] {
                [] => E::TABLE.key,
                columns => columns,
            };
            terms.extend((links.iter()).map(|column| Term::Column(E::TABLE.columns[*column].name)));
            // As many values as there may be: of the relation's columns the type knows nothing.
            terms.extend((links.len()..Self::width()).map(|_| Term::Number(0)));
            return Ok(());
        }
        let hops: Vec<_> = steps.iter().map(Step::hop).collect();
        let mut conditions = self.all_conditions(&steps)?;
        if self.limit == Some(0) || self.offset > 0 {
            conditions.push(Predicate::Constant(false));
        }
        let mut there = Vec::new();
        self.selection.terms(&mut there)?;
        self.included.apply::<R::Entity>(&mut there);
        terms.push(Term::Test(Box::new(Predicate::At {
            hops: hops.clone(),
            predicate: Box::new(Predicate::All(conditions)),
        })));
        terms.push(Term::At {
            hops,
            term: Box::new(Term::Several(there)),
        });
        Ok(())
    }

    fn decode(row: &dyn Row, at: usize) -> Result<Self::Partial> {
        if R::MANY {
            let values = (at..at + Self::width()).map(|at| row.value(at).to_value());
            let key = values.collect::<Result<_, _>>().map_err(|error| {
                Error::new(ErrorKind::Decode, error.to_string()).with_table(E::TABLE.name)
            })?;
            return Ok(Begun::Many(key));
        }
        let is_there = row.value(at) == ValueRef::Integer(1);
        Ok(Begun::One(
            is_there.then(|| N::decode(row, at + 1)).transpose()?,
        ))
    }

    fn finish_one(partial: Self::Partial) -> Result<Self::Output> {
        match partial {
            Begun::One(one) => {
                let found = one.map(N::finish_one).transpose()?;
                wrapped::<E, R, _>(found.into_iter().collect())
            }
            Begun::Many(_) => Err(Invalid::Refused(
                "what to-many relations lead to is read for all rows at once",
            ))?,
        }
    }

    fn finish(
        &self,
        partials: Vec<Self::Partial>,
        reads: &mut dyn Reads,
    ) -> Result<Vec<Self::Output>> {
        let mut keys = Vec::new();
        let mut there = Vec::new();
        let mut is_there = Vec::with_capacity(partials.len());
        for partial in partials {
            match partial {
                Begun::Many(key) => keys.push(key),
                Begun::One(one) => {
                    is_there.push(one.is_some());
                    there.extend(one);
                }
            }
        }
        let found: Vec<Vec<N::Output>> = if R::MANY {
            self.finish_many(&keys, reads)?
        } else {
            let mut found = self.selection.finish(there, reads)?.into_iter();
            let of = |is_there: bool| {
                is_there
                    .then(|| found.next())
                    .flatten()
                    .into_iter()
                    .collect()
            };
            is_there.into_iter().map(of).collect()
        };
        found.into_iter().map(wrapped::<E, R, _>).collect()
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, R: Related, J: Through> Selection<E> for Relation<E, R, J> {
    type Output = R::Wrapped<R::Entity>;
    type Partial = Begun<R::Entity>;
    type Prepared = Fetch<E, R, J>;
    const FLAT: bool = !R::MANY;

    fn prepare(self) -> Result<Self::Prepared, Invalid> {
        self.fetch().prepare()
    }

    fn width() -> usize {
        <Fetch<E, R, J> as Selection<E>>::width()
    }

    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
        self.fetch().terms(terms)
    }

    fn decode(row: &dyn Row, at: usize) -> Result<Self::Partial> {
        <Fetch<E, R, J> as Selection<E>>::decode(row, at)
    }

    fn finish_one(partial: Self::Partial) -> Result<Self::Output> {
        <Fetch<E, R, J> as Selection<E>>::finish_one(partial)
    }

    fn finish(
        &self,
        partials: Vec<Self::Partial>,
        reads: &mut dyn Reads,
    ) -> Result<Vec<Self::Output>> {
        self.fetch().finish(partials, reads)
    }
}

impl<E, R, J, N: Clone> Clone for Fetch<E, R, J, N> {
    fn clone(&self) -> Self {
        Self {
            relation: self.relation,
            selection: self.selection.clone(),
            conditions: self.conditions.clone(),
            shape: self.shape,
            order: self.order.clone(),
            limit: self.limit,
            offset: self.offset,
            lifted: self.lifted.clone(),
            steps: self.steps.clone(),
            included: self.included,
        }
    }
}

impl<E: Entity, R: Related, J: Through, N> fmt::Debug for Fetch<E, R, J, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("relation", &self.relation)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
