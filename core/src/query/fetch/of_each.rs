//! What a relation leads to from entities that were read before.

use std::{
    fmt,
    future::{self, Future},
};

use futures_util::FutureExt as _;

use crate::{
    entity::Entity,
    error::Result,
    query::{
        Fetch, Related, Relation, Selection, Through, Whole, condition::Invalid, fetch::wrapped,
    },
    sql::{Cost, Executor, ReadTogether, Reads},
    value::Value,
};

/// What a relation leads to from each of some entities, by their fields as they are; made by [`Relation::of_each`] and
/// [`Fetch::of_each`].
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::OfEach;
///
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(lines: Line))]
/// # struct Invoice { #[entity(id)] id: i64 }
/// # #[derive(Debug, Entity)]
/// # struct Line { #[entity(id)] id: i64, #[entity(references = Invoice, index)] invoice_id: i64, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<(Invoice, Line)>().await?;
/// # let mut ctx = db.context();
/// # for price in [3, 4] {
/// #     let invoice = ctx.add(Invoice { id: 0 });
/// #     ctx.add(Line { id: 0, invoice_id: ctx[invoice].id, price });
/// # }
/// # ctx.save_changes().await?;
/// let invoices = Invoice::query().order_by(Invoice::ID.desc()).all(&db).await?;
/// let dear: OfEach<Invoice, Vec<Line>> = Invoice::LINES.filter(Line::PRICE.gt(3)).of_each(&invoices);
/// let lines = dear.all(&db).await?;
/// assert_eq!((lines[0].len(), lines[1].len()), (1, 0));
/// # Ok(()) }
/// ```
#[must_use = "it does nothing until it is run"]
pub struct OfEach<E, R, J = (), N = Whole> {
    fetch: Fetch<E, R, J, N>,
    /// Or what is wrong with one of them.
    keys: Result<Vec<Vec<Value>>, Invalid>,
}

impl<E: Entity, R: Related, J: Through> Relation<E, R, J> {
    /// Reads what it leads to from each of these entities, by their fields as they are: in one statement for all of them,
    /// and in their order. For a query that is yet to be run [`Query::with`](crate::query::Query::with) does the same.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(has_many(lines: Line))]
    /// # struct Invoice { #[entity(id)] id: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Line { #[entity(id)] id: i64, #[entity(references = Invoice, index)] invoice_id: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Invoice, Line)>().await?;
    /// # let mut ctx = db.context();
    /// # let invoice = ctx.add(Invoice { id: 0 });
    /// # ctx.add(Line { id: 0, invoice_id: ctx[invoice].id, price: 3 });
    /// # ctx.save_changes().await?;
    /// let invoices = Invoice::query().all(&db).await?;
    /// let lines: Vec<Vec<Line>> = Invoice::LINES.of_each(&invoices).all(&db).await?;
    /// for (invoice, lines) in invoices.iter().zip(&lines) {
    ///     assert!(lines.iter().all(|line| line.invoice_id == invoice.id));
    /// }
    /// let owners: Vec<Invoice> = Line::INVOICE.of_each(&lines[0]).all(&db).await?;
    /// assert_eq!(owners[0].id, lines[0][0].invoice_id);
    /// # Ok(()) }
    /// ```
    pub fn of_each<'e>(self, entities: impl IntoIterator<Item = &'e E>) -> OfEach<E, R, J> {
        self.fetch().of_each(entities)
    }
}

impl<E: Entity, R: Related, J: Through, N: Selection<R::Entity>> Fetch<E, R, J, N> {
    /// Reads this from each of these entities, by their fields as they are: in one statement for all of them, and in their
    /// order.
    pub fn of_each<'e>(self, entities: impl IntoIterator<Item = &'e E>) -> OfEach<E, R, J, N> {
        let keys = self.starts(entities);
        OfEach { fetch: self, keys }
    }

    /// The values that the relation starts from.
    fn starts<'e>(
        &self,
        entities: impl IntoIterator<Item = &'e E>,
    ) -> Result<Vec<Vec<Value>>, Invalid> {
        let steps = self.steps()?;
        let Some(first) = steps.first() else {
            return Err(Invalid::Refused("a relation leads nowhere"));
        };
        let key = |entity| first.starts_at(entity);
        entities.into_iter().map(key).collect()
    }
}

impl<E: Entity, R: Related, J: Through, N: Selection<R::Entity>> OfEach<E, R, J, N> {
    /// Reads it all, on one state of the database: for each entity what `with` would give, in the order of the entities.
    /// Without any entity nothing is asked.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::NotFound`](crate::error::ErrorKind::NotFound) if the row that there always is to a required
    /// relation is not there; those of [`Query::all`](crate::query::Query::all).
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn all<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Vec<R::Wrapped<N::Output>>>> + Send {
        match self.into_reads() {
            Ok(Some(reads)) => executor.read_together(reads).left_future(),
            Ok(None) => future::ready(Ok(Vec::new())).right_future(),
            Err(invalid) => future::ready(Err(invalid.into())).right_future(),
        }
    }

    /// What is read; nothing where there is nothing to ask.
    #[allow(clippy::type_complexity, reason = "it is what an end gives")]
    fn into_reads(self) -> Result<Option<ReadTogether<Vec<R::Wrapped<N::Output>>>>, Invalid> {
        let keys = self.keys?;
        let fetch = self.fetch.prepare()?;
        fetch.terms(&mut Vec::new())?;
        if keys.is_empty() {
            return Ok(None);
        }
        let work = move |reads: &mut dyn Reads| {
            let found = fetch.finish_many(&keys, reads)?;
            found.into_iter().map(wrapped::<E, R, _>).collect()
        };
        Ok(Some(ReadTogether {
            cost: Cost::Any,
            work: Box::new(work),
        }))
    }
}

impl<E, R, J, N: Clone> Clone for OfEach<E, R, J, N> {
    fn clone(&self) -> Self {
        Self {
            fetch: self.fetch.clone(),
            keys: self.keys.clone(),
        }
    }
}

impl<E: Entity, R: Related, J: Through, N> fmt::Debug for OfEach<E, R, J, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfEach")
            .field("fetch", &self.fetch)
            .field("of", &self.keys.as_ref().map_or(0, Vec::len))
            .finish()
    }
}
