//! From an entity to those that are related to it.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
};

use crate::{
    context::{Context, Tracked, Tracking},
    entity::{Column, Entity, Identities, encode_column},
    error::{Error, ErrorKind, Result},
    query::{Invalid, Query, Related, Relation, Step, most_keys},
    tracker::is_temporary,
    value::Value,
};

impl Context<'_> {
    /// Those that a relation leads to among the entities tracked here, as they are here: with the references that were
    /// changed and not saved yet, without what was removed. A to-one relation gives an `Option`, a to-many one a `Vec` in
    /// the order in which they came to be tracked.
    ///
    /// It asks no database, and looks at all tracked entities of the type: where many parents are gone through take the
    /// handles that [`Query::load`] gives.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// #[derive(Debug, Entity)]
    /// #[entity(has_many(lines: Line))]
    /// struct Invoice {
    ///     #[entity(id)]
    ///     id: i64,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct Line {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(references = Invoice, index)]
    ///     invoice_id: i64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Invoice, Line)>().await?;
    /// let mut ctx = db.context();
    /// let invoice = ctx.add(Invoice { id: 0 });
    /// let line = ctx.add(Line { id: 0, invoice_id: ctx[invoice].id });
    /// assert_eq!(ctx.related(invoice, Invoice::LINES)?, [line]);
    /// assert_eq!(ctx.related(line, Line::INVOICE)?, Some(invoice));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind `Model` if the relation is none; `Value` if a key cannot be stored. A stale handle has nothing related to it.
    pub fn related<E: Entity, V: Navigation<E>>(
        &self,
        handle: Tracked<E>,
        relation: V,
    ) -> Result<V::Found> {
        relation.local(self, &[handle])?.pop().ok_or_else(nothing)
    }

    /// Reads those that a relation leads to and tracks them; then it gives what [`related`](Context::related) does, with
    /// those that are not saved yet among them. One that is tracked already stays as it is here.
    ///
    /// # Errors
    ///
    /// Those of `related`, and those of reading.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    ///
    /// # Examples
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
    /// let mut ctx = db.context();
    /// let order = ctx.find::<Order>(1).await?.expect("it was saved");
    /// let lines = ctx.load_related(order, Order::LINES).await?;
    /// assert_eq!(lines.len(), 2);
    /// let customer = ctx.load_related(order, Order::CUSTOMER).await?.expect("there always is one");
    /// assert_eq!(ctx[customer].name, "Ada");
    /// # Ok(()) }
    /// ```
    pub async fn load_related<E: Entity, V: Navigation<E>>(
        &mut self,
        handle: Tracked<E>,
        relation: V,
    ) -> Result<V::Found> {
        let mut found = self.load_related_all(&[handle], relation).await?;
        found.pop().ok_or_else(nothing)
    }

    /// The same for any number of entities, with one statement for all; what belongs to each, in their order.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(has_many(lines: Line))]
    /// # struct Invoice { #[entity(id)] id: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Line { #[entity(id)] id: i64, #[entity(references = Invoice, index)] invoice_id: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Invoice, Line)>().await?;
    /// # let mut ctx = db.context();
    /// # let invoice = ctx.add(Invoice { id: 0 });
    /// # ctx.add(Line { id: 0, invoice_id: ctx[invoice].id });
    /// # ctx.save_changes().await?;
    /// # let mut ctx = db.context();
    /// let invoices = Invoice::query().load(&mut ctx).await?;
    /// let lines = ctx.load_related_all(&invoices, Invoice::LINES).await?;
    /// assert_eq!(lines[0].len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `related`, and those of reading.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load_related_all<E: Entity, V: Navigation<E>>(
        &mut self,
        handles: &[Tracked<E>],
        relation: V,
    ) -> Result<Vec<V::Found>> {
        self.settle_abandoned().await?;
        relation.read(self, handles).await?;
        relation.local(self, handles)
    }

    /// The values in some columns of a tracked entity; nothing if one is NULL.
    pub(in crate::context) fn values<E: Entity>(
        &self,
        handle: Tracked<E>,
        columns: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        let Some(entity) = self.get(handle) else {
            return Ok(None);
        };
        let values = columns.iter().map(|column| encode_column(entity, *column));
        let values = values.collect::<Result<Vec<_>>>()?;
        Ok((!values.iter().any(Value::is_null)).then_some(values))
    }

    /// The tracked entities that a step leads to, from each of these.
    pub(in crate::context) fn next<E: Entity, T: Entity>(
        &self,
        handles: &[Tracked<E>],
        step: &Step,
    ) -> Result<Vec<Vec<Tracked<T>>>> {
        let mut theirs = Vec::new();
        for (handle, _) in self.iter::<T>() {
            theirs.extend((self.values(handle, &step.to_columns)?).map(|values| (handle, values)));
        }
        let (table, columns) = step.compared();
        let mut known: HashMap<_, Vec<_>> = HashMap::with_capacity(theirs.len());
        for (handle, values) in &theirs {
            let identity = Identities::within(table, columns, values);
            known.entry(identity).or_default().push(*handle);
        }
        let mut found = Vec::with_capacity(handles.len());
        for handle in handles {
            let values = self.values(*handle, &step.from_columns)?;
            let identity =
                (values.as_ref()).and_then(|values| Identities::within(table, columns, values));
            let related = identity.and_then(|identity| known.get(&Some(identity)));
            found.push(related.cloned().unwrap_or_default());
        }
        Ok(found)
    }

    /// Reads those rows of a query that are equal in the step's columns to any of the entities.
    async fn read_step<E: Entity, T: Entity, S: Tracking<T>>(
        &mut self,
        handles: &[Tracked<E>],
        step: &Step,
        query: Query<T, S>,
    ) -> Result<()> {
        let mut keys = HashSet::with_capacity(handles.len());
        for handle in handles {
            // What is not saved has no rows that refer to it.
            let values = self.values(*handle, &step.from_columns)?;
            keys.extend(values.filter(|values| !values.iter().any(is_temporary)));
        }
        let keys: Vec<_> = keys.into_iter().collect();
        let at_once = most_keys(step.to_columns.len());
        for keys in keys.chunks(at_once) {
            let query = query.clone().equal_to_any(&step.links(), keys);
            query.load(self).await?;
        }
        Ok(())
    }
}

/// What [`Context::related`] follows: a [`Relation`].
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{context::Navigation, error::Result};
///
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
/// fn of_first<V: Navigation<Order>>(ctx: &Context<'_>, relation: V) -> Result<Option<V::Found>> {
///     let first = ctx.iter::<Order>().next();
///     first.map(|(order, _)| ctx.related(order, relation)).transpose()
/// }
/// let mut ctx = db.context();
/// Order::query().with(Order::LINES).load(&mut ctx).await?;
/// assert_eq!(of_first(&ctx, Order::LINES)?.map(|lines| lines.len()), Some(2));
/// assert_eq!(of_first(&ctx, Order::CUSTOMER)?, Some(None)); // not read
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be followed in a context",
    label = "no relation of one step from `{E}`",
    note = "of a relation of several steps (`via`) the entities between are not known here: follow one step after the other, \
            or read it by a query, `Customer::query().with(..)`"
)]
pub trait Navigation<E: Entity>: Copy + Send {
    /// An `Option` of a handle, or a `Vec` of them.
    type Found;

    #[doc(hidden)]
    fn local(self, ctx: &Context<'_>, handles: &[Tracked<E>]) -> Result<Vec<Self::Found>>;

    #[doc(hidden)]
    fn read(
        self,
        ctx: &mut Context<'_>,
        handles: &[Tracked<E>],
    ) -> impl Future<Output = Result<()>> + Send;
}

impl<E: Entity, R: Related> Navigation<E> for Relation<E, R> {
    type Found = R::Tracked<Tracked<R::Entity>>;

    fn local(self, ctx: &Context<'_>, handles: &[Tracked<E>]) -> Result<Vec<Self::Found>> {
        let [step] = only(self.steps()?)?;
        let found = ctx.next(handles, &step)?;
        Ok(found.into_iter().map(R::tracked).collect())
    }

    async fn read(self, ctx: &mut Context<'_>, handles: &[Tracked<E>]) -> Result<()> {
        let [step] = only(self.steps()?)?;
        let mut query = Query::<R::Entity>::new();
        if R::REQUIRED {
            // The one row that has to be there always is.
            query = query.without_filters();
        }
        ctx.read_step(handles, &step, query).await
    }
}

#[diagnostic::do_not_recommend]
impl<E: Entity, T: Entity, J: Entity> Navigation<E> for Relation<E, Vec<T>, J> {
    type Found = Vec<Tracked<T>>;

    fn local(self, ctx: &Context<'_>, handles: &[Tracked<E>]) -> Result<Vec<Self::Found>> {
        let [first, second] = only(self.steps()?)?;
        let joins = ctx.next::<E, J>(handles, &first)?;
        let all: Vec<_> = joins.iter().flatten().copied().collect();
        let mut beyond = ctx.next::<J, T>(&all, &second)?.into_iter();
        let of = |joins: Vec<_>| beyond.by_ref().take(joins.len()).flatten().collect();
        Ok(joins.into_iter().map(of).collect())
    }

    async fn read(self, ctx: &mut Context<'_>, handles: &[Tracked<E>]) -> Result<()> {
        let [first, _] = only(self.steps()?)?;
        ctx.read_step(handles, &first, self.joined()?).await
    }
}

/// For each handle there is an answer.
fn nothing() -> Error {
    Error::new(ErrorKind::NotFound, "nothing is known of the handle")
}

pub(in crate::context) fn only<const N: usize>(steps: Vec<Step>) -> Result<[Step; N]> {
    Ok(<[Step; N]>::try_from(steps)
        .map_err(|_| Invalid::Refused("a relation has more steps than its type says"))?)
}

/// What says which entity above another one is meant: the column that refers to it, or the relation between the two.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{context::Refers, error::Result};
///
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
/// fn sever_all(ctx: &mut Context<'_>, from: impl Refers<Line> + Copy) -> Result<()> {
///     let lines: Vec<_> = ctx.iter::<Line>().map(|(line, _)| line).collect();
///     lines.into_iter().try_for_each(|line| ctx.sever(line, from).map(drop))
/// }
/// let mut ctx = db.context();
/// Line::query().load(&mut ctx).await?;
/// sever_all(&mut ctx, Line::ORDER)?; // or Order::LINES, or Line::ORDER_ID
/// assert_eq!(ctx.save_changes().await?.deleted, 2);
/// # Ok(()) }
/// ```
pub trait Refers<C: Entity> {
    /// The position of a column of `C`.
    #[doc(hidden)]
    fn position(self) -> Result<usize>;
}

impl<C: Entity, T> Refers<C> for Column<C, T> {
    fn position(self) -> Result<usize> {
        Ok(self.index())
    }
}

macro_rules! refers {
    ($($relation:ty),*) => {$(
        impl<C: Entity, P: Entity> Refers<C> for $relation {
            fn position(self) -> Result<usize> {
                Ok(self.referring()?)
            }
        }
    )*};
}

refers!(Relation<P, Vec<C>>, Relation<C, P>, Relation<C, Option<P>>);
