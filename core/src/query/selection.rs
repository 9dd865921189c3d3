//! What a query reads of each row, and what comes of it.

use std::{any::TypeId, marker::PhantomData};

use crate::{
    entity::{Column, Entity},
    error::{Error, ErrorKind, Result},
    query::{
        Part,
        condition::{Invalid, Shape},
        including,
        table_sql::TableSql,
    },
    sql::{Reads, Term},
    value::{ColumnType, Row},
};

/// What a query over `E` reads of each row: an expression, the [`Whole`] entity, what a relation leads to, or a tuple of
/// these.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # ctx.add(Item { id: 0, name: "tea".into(), price: 3 });
/// # ctx.save_changes().await?;
/// let names: Vec<String> = Item::query().select(Item::NAME).all(&db).await?;
/// let prices: Vec<(String, i64)> = Item::query().select((Item::NAME, Item::PRICE * 2)).all(&db).await?;
/// assert_eq!((names.len(), &prices[0].0[..], prices[0].1), (1, "tea", 6));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read of each row of `{E}`",
    label = "nothing that is read of a row of `{E}`",
    note = "give a column or an expression of `{E}`, a relation of it, or a tuple of up to eight of these (which may be tuples)"
)]
pub trait Selection<E: Entity>: Clone + Send + Sync + 'static {
    /// What comes of a row.
    type Output: Send + 'static;
    /// The same before the rows that belong to it were read.
    #[doc(hidden)]
    type Partial: Send + 'static;
    /// The same with all in its place that is looked up where the query is run.
    #[doc(hidden)]
    type Prepared: Selection<E, Output = Self::Output, Partial = Self::Partial>;
    /// Whether one statement reads it all.
    #[doc(hidden)]
    const FLAT: bool;

    /// Looks it up.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn prepare(self) -> Result<Self::Prepared, Invalid>;

    /// How many columns of a result it is.
    #[doc(hidden)]
    fn width() -> usize;

    /// Adds the types of these columns, of those that are known.
    #[doc(hidden)]
    fn types(types: &mut Vec<Option<TypeId>>) {
        types.extend((0..Self::width()).map(|_| None));
    }

    /// Adds what the statement selects: as many columns as [`width`](Self::width) says.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid>;

    /// How deep the deepest of them is.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "as above")]
    fn shape(&self) -> Shape {
        Shape::FLAT
    }

    /// Reads it from a row, in which it begins at `at`.
    #[doc(hidden)]
    fn decode(row: &dyn Row, at: usize) -> Result<Self::Partial>;

    /// Makes what comes of a row, where one statement reads it all: as each row is read, and not of all in the end.
    #[doc(hidden)]
    fn finish_one(partial: Self::Partial) -> Result<Self::Output>;

    /// Reads what belongs to the rows.
    #[doc(hidden)]
    fn finish(
        &self,
        partials: Vec<Self::Partial>,
        reads: &mut dyn Reads,
    ) -> Result<Vec<Self::Output>>;
}

/// All columns of a row, but for those that are [deferred](crate::value::Deferred): the entity.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Whole;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// let items: Vec<(Item, i64)> = Item::query().select((Whole, Item::PRICE * 2)).all(&db).await?;
/// assert_eq!(items[0].1, 2 * items[0].0.price);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Whole;

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity> Selection<E> for Whole {
    type Output = E;
    type Partial = E;
    type Prepared = Self;
    const FLAT: bool = true;

    fn prepare(self) -> Result<Self, Invalid> {
        Ok(self)
    }

    fn width() -> usize {
        including::width::<E>()
    }

    fn types(types: &mut Vec<Option<TypeId>>) {
        E::column_types(types);
    }

    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
        terms.push(Term::All(TableSql::of(E::TABLE).columns.clone()));
        Ok(())
    }

    fn decode(row: &dyn Row, at: usize) -> Result<E> {
        including::decode(row, at)
    }

    fn finish_one(entity: E) -> Result<E> {
        Ok(entity)
    }

    fn finish(&self, entities: Vec<E>, _reads: &mut dyn Reads) -> Result<Vec<E>> {
        Ok(entities)
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, T: ColumnType + Send + 'static, P: Part> Selection<E> for Column<E, T, P> {
    type Output = T;
    type Partial = T;
    type Prepared = Self;
    const FLAT: bool = true;

    fn prepare(self) -> Result<Self, Invalid> {
        Ok(self)
    }

    fn width() -> usize {
        1
    }

    fn types(types: &mut Vec<Option<TypeId>>) {
        types.push(Some(TypeId::of::<T>()));
    }

    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
        let node = self.clone().node();
        node.shape.check()?;
        terms.push(node.term?);
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.clone().node().shape
    }

    fn decode(row: &dyn Row, at: usize) -> Result<T> {
        T::decode(row.value(at)).map_err(|error| {
            Error::new(
                ErrorKind::Decode,
                format!("value {} of the selection: {error}", at + 1),
            )
            .with_table(E::TABLE.name)
        })
    }

    fn finish_one(value: T) -> Result<T> {
        Ok(value)
    }

    fn finish(&self, values: Vec<T>, _reads: &mut dyn Reads) -> Result<Vec<T>> {
        Ok(values)
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        #[allow(private_interfaces, reason = "as in the trait")]
        #[allow(non_snake_case, reason = "a variable is named as the type is")]
        impl<E: Entity, $($name: Selection<E>),*> Selection<E> for ($($name,)*) {
            type Output = ($($name::Output,)*);
            type Partial = ($($name::Partial,)*);
            type Prepared = ($($name::Prepared,)*);
            const FLAT: bool = $($name::FLAT)&&*;

            fn prepare(self) -> Result<Self::Prepared, Invalid> {
                Ok(($(self.$index.prepare()?,)*))
            }

            fn width() -> usize {
                0 $(+ $name::width())*
            }

            fn types(types: &mut Vec<Option<TypeId>>) {
                $($name::types(types);)*
            }

            fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
                $(self.$index.terms(terms)?;)*
                Ok(())
            }

            fn shape(&self) -> Shape {
                Shape::FLAT $(.and(self.$index.shape()))*
            }

            fn decode(row: &dyn Row, mut at: usize) -> Result<Self::Partial> {
                $(
                    let $name = $name::decode(row, at)?;
                    at += $name::width();
                )*
                let _ = at;
                Ok(($($name,)*))
            }

            fn finish_one(partial: Self::Partial) -> Result<Self::Output> {
                Ok(($($name::finish_one(partial.$index)?,)*))
            }

            fn finish(
                &self,
                partials: Vec<Self::Partial>,
                reads: &mut dyn Reads,
            ) -> Result<Vec<Self::Output>> {
                let count = partials.len();
                $(let mut $name = Vec::with_capacity(count);)*
                for partial in partials {
                    $($name.push(partial.$index);)*
                }
                $(let mut $name = self.$index.finish($name, reads)?.into_iter();)*
                let mut outputs = Vec::with_capacity(count);
                while let ($(Some($name),)*) = ($($name.next(),)*) {
                    outputs.push(($($name,)*));
                }
                Ok(outputs)
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, F 4);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5, H 6);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5, H 6, I 7);

/// A selection to which what a relation leads to can be added.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::With;
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
/// fn with_lines<S: With<Relation<Order, Vec<Line>>>>(query: Query<Order, S>) -> Query<Order, S::Both> {
///     query.with(Order::LINES)
/// }
/// let (pairs, triples) = (with_lines(Order::query()), with_lines(Order::query().with(Order::CUSTOMER)));
/// ```
pub trait With<L>: Sized {
    /// Both.
    type Both;
    /// Adds it at the end.
    fn with(self, load: L) -> Self::Both;
}

impl<L> With<L> for Whole {
    type Both = (Self, L);

    fn with(self, load: L) -> (Self, L) {
        (self, load)
    }
}

macro_rules! with {
    ($($name:ident $index:tt),*) => {
        impl<L, $($name),*> With<L> for (Whole, $($name,)*) {
            type Both = (Whole, $($name,)* L);

            fn with(self, load: L) -> Self::Both {
                (self.0, $(self.$index,)* load)
            }
        }
    };
}

with!(A 1);
with!(A 1, B 2);
with!(A 1, B 2, C 3);
with!(A 1, B 2, C 3, D 4);
with!(A 1, B 2, C 3, D 4, F 5);
with!(A 1, B 2, C 3, D 4, F 5, G 6);

/// A struct that a query over [`Entity`](Self::Entity) reads of each row; derive it.
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
/// #[derive(Debug, Projection)]
/// #[projection(entity = Order)]
/// struct OrderView {
///     id: i64,
///     #[projection(from = Order::CUSTOMER.get(Customer::NAME))]
///     customer: String,
///     #[projection(nested = Order::LINES.order_by(Line::PRICE.desc()))]
///     lines: Vec<LineView>,
/// }
///
/// #[derive(Debug, Projection)]
/// #[projection(entity = Line)]
/// struct LineView {
///     item: String,
/// }
///
/// let view = Order::query().project::<OrderView>().one(&db).await?;
/// assert_eq!((&view.customer[..], &view.lines[0].item[..]), ("Ada", "cake"));
/// # Ok(()) }
/// ```
pub trait Projection: Sized + Send + 'static {
    /// What is queried.
    type Entity: Entity;

    /// What is read of each row.
    fn selection() -> impl Selection<Self::Entity, Output = Self>;
}

/// The selection of a [`Projection`].
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::projected;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # ctx.add(Item { id: 0, name: "tea".into(), price: 3 });
/// # ctx.save_changes().await?;
/// #[derive(Debug, Projection)]
/// #[projection(entity = Item)]
/// struct View {
///     name: String,
/// }
///
/// let views = Item::query().select((projected::<View>(), Item::PRICE)).all(&db).await?;
/// assert_eq!((&views[0].0.name[..], views[0].1), ("tea", 3));
/// # Ok(()) }
/// ```
#[must_use]
pub fn projected<P: Projection>() -> impl Selection<P::Entity, Output = P> {
    P::selection()
}

/// What is made of the values that a selection reads: the derive of a [`Projection`] writes one.
#[doc(hidden)]
pub trait Make<V>: Send + Sync + 'static {
    type Made: Send + 'static;

    fn make(values: V) -> Self::Made;
}

/// A selection of which something is made.
struct Made<S, M> {
    selection: S,
    make: PhantomData<fn() -> M>,
}

/// What is made of another selection.
#[doc(hidden)]
pub fn made<E: Entity, S: Selection<E>, M: Make<S::Output>>(
    selection: S,
) -> impl Selection<E, Output = M::Made> {
    Made {
        selection,
        make: PhantomData::<fn() -> M>,
    }
}

impl<S: Clone, M> Clone for Made<S, M> {
    fn clone(&self) -> Self {
        Self {
            selection: self.selection.clone(),
            make: PhantomData,
        }
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, S: Selection<E>, M: Make<S::Output>> Selection<E> for Made<S, M> {
    type Output = M::Made;
    type Partial = S::Partial;
    type Prepared = Made<S::Prepared, M>;
    const FLAT: bool = S::FLAT;

    fn prepare(self) -> Result<Self::Prepared, Invalid> {
        Ok(Made {
            selection: self.selection.prepare()?,
            make: PhantomData,
        })
    }

    fn width() -> usize {
        S::width()
    }

    fn types(types: &mut Vec<Option<TypeId>>) {
        S::types(types);
    }

    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
        self.selection.terms(terms)
    }

    fn decode(row: &dyn Row, at: usize) -> Result<S::Partial> {
        S::decode(row, at)
    }

    fn finish_one(partial: S::Partial) -> Result<M::Made> {
        S::finish_one(partial).map(M::make)
    }

    fn finish(&self, partials: Vec<S::Partial>, reads: &mut dyn Reads) -> Result<Vec<M::Made>> {
        let read = self.selection.finish(partials, reads)?;
        Ok(read.into_iter().map(M::make).collect())
    }
}
