//! The two ways into a context from elsewhere: a transaction's own, and a query that tracks.

use crate::{
    context::Context,
    engine::{Session, Transaction},
    entity::Entity,
    error::{Error, ErrorKind, Result},
    query::{Fetch, Joined, Page, Paged, Query, Related, Relation, Selection, Through, Via, Whole},
    sql::NewKey,
    tracker::Tracked,
    value::PrimaryKey,
};

impl Transaction {
    /// A unit of work whose reads and saves are part of this transaction.
    #[must_use]
    pub fn context(&mut self) -> Context<'_> {
        Context::in_transaction(self)
    }
}

impl Session {
    /// A unit of work whose reads and saves are part of this session.
    #[must_use]
    pub fn context(&mut self) -> Context<'_> {
        Context::in_session(self)
    }

    /// A key for a new row that no other session, and no save of this process, is given: for raw SQL, and for entities
    /// that are to be referred to before they are saved. In SQL the function `next_id('table')` does the same.
    ///
    /// A key that is not used leaves a gap.
    ///
    /// # Errors
    ///
    /// Kind `Model` if keys of this entity are not integers that the writer gives; `Full` after the largest key there is.
    ///
    /// # Cancel safety
    ///
    /// Dropped, a key may be lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// db.concurrent(async |s| {
    ///     let id = s.next_id::<Note>().await?;
    ///     sqlx::query("INSERT INTO note (id, text) VALUES (?, 'tea')").bind(id).execute(&mut *s).await?;
    ///     Ok(())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub async fn next_id<E: Entity>(&mut self) -> Result<E::Key> {
        let refused = || {
            Error::new(
                ErrorKind::Model,
                "keys of this entity are not integers that the writer gives",
            )
            .with_table(E::TABLE.name)
        };
        let column = E::TABLE.writer_key().ok_or_else(refused)?;
        let key = NewKey {
            table: E::TABLE.name,
            column: E::TABLE.columns[column].name,
            above: 0,
        };
        let key = self.next_key(key).await?;
        E::Key::from_integer(key).ok_or_else(refused)
    }
}

impl<E: Entity, S: Tracking<E>> Query<E, S> {
    /// Runs the query and tracks its entities in `ctx`, those that relations lead to as well. One that is tracked
    /// already stays as it is there, with its local changes, and takes from its row only deferred columns that it did not
    /// have; one that was removed there is left out, and with it from the
    /// answer (though it is tracked) what always refers to it.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(table = "orders", has_many(lines: Line))]
    /// # struct Order { #[entity(id)] id: i64, total: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Line { #[entity(id)] id: i64, #[entity(references = Order, index)] order_id: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Order, Line)>().await?;
    /// # let mut ctx = db.context();
    /// # let order = ctx.add(Order { id: 0, total: 0 });
    /// # ctx.add(Line { id: 0, order_id: ctx[order].id, price: 3 });
    /// # ctx.save_changes().await?;
    /// # ctx.clear();
    /// for (order, lines) in Order::query().with(Order::LINES).load(&mut ctx).await? {
    ///     ctx[order].total = lines.iter().map(|line| ctx[*line].price).sum();
    /// }
    /// assert_eq!(ctx.save_changes().await?.updated, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of reading; kind `Value` for an operand that cannot be stored.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load(self, ctx: &mut Context<'_>) -> Result<Vec<S::Handles>> {
        let read = self.read_into(ctx).await?;
        Ok((read.into_iter())
            .filter_map(|read| S::track(ctx, read))
            .collect())
    }

    /// Tracks the first of them, in the order asked for, if there is any.
    ///
    /// # Errors
    ///
    /// Those of reading.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load_first(self, ctx: &mut Context<'_>) -> Result<Option<S::Handles>> {
        let found = self.at_most(1).load(ctx).await?;
        Ok(found.into_iter().next())
    }

    /// Tracks the only one.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Item { id: 0, name: "tea".into(), price: 3 });
    /// # ctx.save_changes().await?;
    /// let tea = Item::query().filter(Item::NAME.eq("tea")).load_one(&mut ctx).await?;
    /// ctx[tea].price += 1;
    /// ctx.save_changes().await?;
    /// let dearest = Item::query().order_by(Item::PRICE.desc()).load_first(&mut ctx).await?;
    /// let jam = Item::query().filter(Item::NAME.eq("jam")).load_optional(&mut ctx).await?;
    /// assert_eq!((dearest, jam), (Some(tea), None));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind `NotFound` if there is none, or it was removed here; `MoreThanOne` if there are more, none of which is tracked
    /// then; those of reading.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load_one(self, ctx: &mut Context<'_>) -> Result<S::Handles> {
        let found = self.load_optional(ctx).await?;
        found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "no row fulfils the conditions")
                .with_table(E::TABLE.name)
        })
    }

    /// Tracks the only one, if there is one.
    ///
    /// # Errors
    ///
    /// Kind `MoreThanOne` if there are more, none of which is tracked then; those of reading.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load_optional(self, ctx: &mut Context<'_>) -> Result<Option<S::Handles>> {
        let mut read = self.at_most(2).read_into(ctx).await?;
        if read.len() > 1 {
            return Err(Error::new(
                ErrorKind::MoreThanOne,
                "more than one row fulfils the conditions",
            )
            .with_table(E::TABLE.name));
        }
        Ok(read.pop().and_then(|read| S::track(ctx, read)))
    }

    /// Reads what is to be tracked in a context.
    async fn read_into(
        self,
        ctx: &mut Context<'_>,
    ) -> Result<Vec<<S::Read as Selection<E>>::Output>> {
        let query = self.try_select(Tracking::read)?;
        ctx.settle_abandoned().await?;
        let read = ctx.run(query).await?;
        if ctx.is_accepted_later() {
            // Rows of its transaction may have become visible meanwhile: they are those that are tracked here.
            ctx.settle_abandoned().await?;
        }
        Ok(read)
    }
}

impl<E: Entity, S: Tracking<E>> Paged<E, S> {
    /// Reads the page, and tracks its entities.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # for price in [1, 2, 3] { ctx.add(Item { id: 0, price }); }
    /// # ctx.save_changes().await?;
    /// # ctx.clear();
    /// let mut next = None;
    /// loop {
    ///     let page = Item::query().page(next, 2).load(&mut ctx).await?;
    ///     for item in page.items {
    ///         ctx[item].price += 1;
    ///     }
    ///     ctx.save_changes().await?;
    ///     ctx.clear();
    ///     next = page.next;
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(Item::query().sum(Item::PRICE, &db).await?, Some(9));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Paged::read`].
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load(self, ctx: &mut Context<'_>) -> Result<Page<S::Handles>> {
        let paged = self.try_select(Tracking::read)?;
        ctx.settle_abandoned().await?;
        let page = ctx.run_page(paged).await?;
        if ctx.is_accepted_later() {
            ctx.settle_abandoned().await?;
        }
        let tracked = page.items.into_iter();
        Ok(Page {
            items: tracked.filter_map(|read| S::track(ctx, read)).collect(),
            next: page.next,
            previous: page.previous,
        })
    }
}

/// What of a query a context can track: entities, with those that relations lead to.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{context::Tracking, error::Result};
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
/// async fn newest<S: Tracking<Order>>(query: Query<Order, S>, ctx: &mut Context<'_>) -> Result<Vec<S::Handles>> {
///     query.order_by(Order::ID.desc()).limit(10).load(ctx).await
/// }
/// let mut ctx = db.context();
/// let orders: Vec<Tracked<Order>> = newest(Order::query(), &mut ctx).await?;
/// let with_lines = newest(Order::query().with(Order::LINES), &mut ctx).await?; // pairs of a handle and a list of them
/// assert_eq!((with_lines[0].0, with_lines[0].1.len()), (orders[0], 2));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of entities, and cannot be tracked",
    label = "no entities",
    note = "`load` is of whole entities, `with` those of their relations; read a projection with `all`"
)]
pub trait Tracking<E: Entity>: Selection<E> {
    /// What is read.
    #[doc(hidden)]
    type Read: Selection<E>;
    /// The handles of what is tracked.
    type Handles: Send + 'static;

    #[doc(hidden)]
    fn read(self) -> Result<Self::Read>;

    /// Tracks what was read; nothing if it was removed in the context.
    #[doc(hidden)]
    fn track(
        ctx: &mut Context<'_>,
        read: <Self::Read as Selection<E>>::Output,
    ) -> Option<Self::Handles>;
}

impl<E: Entity> Tracking<E> for Whole {
    type Read = Self;
    type Handles = Tracked<E>;

    fn read(self) -> Result<Self> {
        Ok(self)
    }

    fn track(ctx: &mut Context<'_>, entity: E) -> Option<Tracked<E>> {
        ctx.track(entity)
    }
}

/// Of what stands between nothing is tracked.
macro_rules! ends {
    ($through:ty $(, $between:ident: $bound:ident)*) => {
        impl<E: Entity, R: Related, N: Tracking<R::Entity>, $($between: $bound),*> Tracking<E> for Fetch<E, R, $through, N> {
            type Read = Fetch<E, R, $through, N::Read>;
            type Handles = R::Wrapped<N::Handles>;

            fn read(self) -> Result<Self::Read> {
                self.try_map(Tracking::read)
            }

            fn track(
                ctx: &mut Context<'_>,
                read: <Self::Read as Selection<E>>::Output,
            ) -> Option<Self::Handles> {
                let read = R::unwrapped(read);
                R::wrapped(
                    read.into_iter()
                        .filter_map(|read| N::track(ctx, read))
                        .collect(),
                )
            }
        }

        impl<E: Entity, R: Related, $($between: $bound),*> Tracking<E> for Relation<E, R, $through> {
            type Read = Fetch<E, R, $through>;
            type Handles = R::Wrapped<Tracked<R::Entity>>;

            fn read(self) -> Result<Self::Read> {
                Ok(self.fetch())
            }

            fn track(
                ctx: &mut Context<'_>,
                read: <Self::Read as Selection<E>>::Output,
            ) -> Option<Self::Handles> {
                <Fetch<E, R, $through> as Tracking<E>>::track(ctx, read)
            }
        }
    };
}

ends!(());
ends!(Via<A, M, B>, A: Through, M: Related, B: Through);

impl<E: Entity, T: Entity, J: Entity, N: Tracking<T>> Tracking<E> for Fetch<E, Vec<T>, J, N> {
    type Read = Joined<E, T, J, N::Read>;
    type Handles = Vec<N::Handles>;

    fn read(self) -> Result<Self::Read> {
        Ok(self.try_map(Tracking::read)?.by_join()?)
    }

    fn track(
        ctx: &mut Context<'_>,
        read: <Self::Read as Selection<E>>::Output,
    ) -> Option<Self::Handles> {
        let tracked = read.into_iter().filter_map(|(join, read)| {
            ctx.track(join)?;
            N::track(ctx, read)
        });
        Some(tracked.collect())
    }
}

impl<E: Entity, T: Entity, J: Entity> Tracking<E> for Relation<E, Vec<T>, J> {
    type Read = Joined<E, T, J, Whole>;
    type Handles = Vec<Tracked<T>>;

    fn read(self) -> Result<Self::Read> {
        Tracking::read(self.fetch())
    }

    fn track(
        ctx: &mut Context<'_>,
        read: <Self::Read as Selection<E>>::Output,
    ) -> Option<Self::Handles> {
        <Fetch<E, Vec<T>, J> as Tracking<E>>::track(ctx, read)
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<E: Entity, $($name: Tracking<E>),*> Tracking<E> for ($($name,)*) {
            type Read = ($($name::Read,)*);
            type Handles = ($($name::Handles,)*);

            fn read(self) -> Result<Self::Read> {
                Ok(($(self.$index.read()?,)*))
            }

            fn track(
                ctx: &mut Context<'_>,
                read: <Self::Read as Selection<E>>::Output,
            ) -> Option<Self::Handles> {
                Some(($($name::track(ctx, read.$index)?,)*))
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, F 4);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5, H 6);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5, H 6, I 7);
