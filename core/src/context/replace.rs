//! Making what a relation leads to these and no others.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
};

use crate::{
    context::{Context, EntityState, Tracked, related::only},
    entity::{Entity, Identities, encode_column},
    error::{Error, ErrorKind, Result},
    query::{Query, Relation, Step, most_keys},
    sql::Term,
    tracker::is_temporary,
    value::{PrimaryKey as _, Value},
};

/// A to-many relation whose entities [`Context::replace_related`] can replace: `has_many`, also `through` a join entity.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{context::Children, error::Result};
///
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(lines: Line))]
/// # struct Invoice { #[entity(id)] id: i64 }
/// # #[derive(Debug, Entity)]
/// # struct Line { #[entity(id)] id: i64, #[entity(references = Invoice, index)] invoice_id: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<(Invoice, Line)>().await?;
/// async fn empty<V: Children<Invoice>>(ctx: &mut Context<'_>, invoice: Tracked<Invoice>, relation: V) -> Result<()> {
///     ctx.replace_related(invoice, relation, []).await.map(drop)
/// }
/// # let mut ctx = db.context();
/// # let invoice = ctx.add(Invoice { id: 0 });
/// # let line = ctx.add(Line { id: 0, invoice_id: ctx[invoice].id });
/// # ctx.save_changes().await?;
/// empty(&mut ctx, invoice, Invoice::LINES).await?;
/// assert_eq!(ctx.save_changes().await?.deleted, 1);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "what `{Self}` leads to cannot be replaced as a whole",
    label = "no `has_many` of `{E}`",
    note = "give a `has_many` relation of the entity, of one step (not `via`); for one to one use `sever` and `add`"
)]
pub trait Children<E: Entity>: Copy + Send {
    /// What it leads to.
    type Child: Entity;

    #[doc(hidden)]
    fn replace(
        self,
        ctx: &mut Context<'_>,
        parent: Tracked<E>,
        children: Vec<Self::Child>,
    ) -> impl Future<Output = Result<Vec<Tracked<Self::Child>>>> + Send;
}

/// What is to be set of a tracked entity.
type Setting<T> = (Tracked<T>, Vec<(usize, Value)>);

/// An entity that was given.
enum Given<T: Entity> {
    /// It is to be inserted.
    New(T),
    /// It is tracked, and gets the values.
    Known(Setting<T>),
}

impl Context<'_> {
    /// Makes these the ones that a to-many relation leads to, and no others, such as the lines of an order as a form
    /// sends them. What is there is read first, as by [`load_related`](Context::load_related); nothing is written before
    /// the next save. The handles are those of what was given, in its order.
    ///
    /// * One whose key is that of a row, or of an entity tracked here, is that one, wherever it belonged before: it gets
    ///   the values as by [`set_values`](Context::set_values), so that only columns that differ are written; a version that
    ///   is set is checked. A time of `created_at` or `updated_at` that is unset stays as it is there.
    /// * Another one is added. A key that no row has is taken if the application or the context gives such keys.
    /// * One that is missing is [severed](Context::sever): its reference becomes NULL, or it is removed. Of many to many
    ///   it stays, and the join entity is removed; missing join entities are added as by [`link`](Context::link).
    /// * What a filter of the entity hides is not missing: it stays as it is.
    ///
    /// Children that were added or moved here and are not saved yet are there, and those that were removed are not.
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
    ///     item: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Invoice, Line)>().await?;
    /// # let mut ctx = db.context();
    /// # let invoice = ctx.add(Invoice { id: 0 });
    /// let line = |id, item: &str| Line { id, invoice_id: 0, item: item.into() };
    /// ctx.replace_related(invoice, Invoice::LINES, [line(0, "tea"), line(0, "cake")]).await?;
    /// assert_eq!(ctx.save_changes().await?.inserted, 3);
    ///
    /// // The first is changed, the second is gone, and there is a new one.
    /// let lines = ctx.replace_related(invoice, Invoice::LINES, [line(1, "jam"), line(0, "pan")]).await?;
    /// let saved = ctx.save_changes().await?;
    /// assert_eq!((saved.inserted, saved.updated, saved.deleted), (1, 1, 1));
    /// assert_eq!(ctx.related(invoice, Invoice::LINES)?, lines);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Nothing is changed here then, though what was read is tracked. Kind `NotFound` if the handle is stale, or no row has
    /// an integer key that the database gives; `AlreadyTracked` if two of them have the same key; `Value` for what cannot be
    /// stored, or the temporary key of another context; `Refused` for a relation without a reference, or a version
    /// while a save is not answered; those of `link`, and those of reading.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it changes nothing.
    pub fn replace_related<E: Entity, V: Children<E>>(
        &mut self,
        parent: Tracked<E>,
        relation: V,
        children: impl IntoIterator<Item = V::Child>,
    ) -> impl Future<Output = Result<Vec<Tracked<V::Child>>>> + Send {
        let children: Vec<_> = children.into_iter().collect();
        async move {
            self.settle_abandoned().await?;
            relation.replace(self, parent, children).await
        }
    }

    /// Finds out which of these are tracked, or rows.
    async fn recognise<T: Entity>(&mut self, children: Vec<T>) -> Result<Vec<Given<T>>> {
        let row = |child: &T| -> Result<Vec<Value>> {
            let columns = 0..T::TABLE.columns.len();
            columns.map(|column| encode_column(child, column)).collect()
        };
        let rows: Vec<Vec<Value>> = children.iter().map(row).collect::<Result<_>>()?;
        let table = T::TABLE;
        let keys: Vec<Option<Vec<Value>>> = (children.iter().zip(&rows))
            .map(|(child, row)| {
                let is_set = !child.key().is_unset();
                is_set.then(|| table.key.iter().map(|at| row[*at].clone()).collect())
            })
            .collect();
        let mut seen = HashSet::new();
        for key in keys.iter().flatten() {
            if !seen.insert(Identities::within(table, table.key, key)) {
                return Err(Error::new(
                    ErrorKind::AlreadyTracked,
                    "two of the entities that are given have the same key",
                )
                .with_table(table.name));
            }
        }
        let unknown = children.iter().zip(&keys).filter_map(|(child, key)| {
            let key = key.as_ref().filter(|key| !key.iter().any(is_temporary))?;
            (self.tracker.lookup::<T>(&child.key()).is_none()).then(|| key.clone())
        });
        let unknown: Vec<_> = unknown.collect();
        let columns: Vec<_> = table
            .key_columns()
            .map(|key| Term::Column(key.name))
            .collect();
        for keys in unknown.chunks(most_keys(columns.len())) {
            let query = Query::<T>::new().without_filters();
            query.equal_to_any(&columns, keys).load(self).await?;
        }
        let given = children.into_iter().zip(rows).zip(keys);
        given
            .map(|((child, row), key)| self.given(child, row, key.as_deref()))
            .collect()
    }

    fn given<T: Entity>(
        &self,
        child: T,
        row: Vec<Value>,
        key: Option<&[Value]>,
    ) -> Result<Given<T>> {
        let Some(key) = key else {
            return Ok(Given::New(child));
        };
        let table = T::TABLE;
        match self.tracker.lookup::<T>(&child.key()) {
            Some(Some(known)) => {
                let values = row.into_iter().enumerate();
                let values = values.filter(|(column, value)| sets::<T>(*column, value));
                Ok(Given::Known((known, values.collect())))
            }
            None if table.writer_key().is_some() && key.iter().any(is_temporary) => {
                Err(Error::new(
                    ErrorKind::Value,
                    "holds a temporary key that is none of this context: leave the key unset to add the entity",
                )
                .with_table(table.name))
            }
            None if table.writer_key().is_some() => Err(Error::new(
                ErrorKind::NotFound,
                "no row has its key (Error::key): leave it unset to add the entity",
            )
            .with_table(table.name)
            .with_key(key.to_vec())),
            // One that was removed here and comes back is a new row.
            None | Some(None) => Ok(Given::New(child)),
        }
    }

    /// Whether a tracked entity is one that the relation's query would have read, if no filter had hidden it.
    fn is_hidden<T: Entity>(
        &self,
        handle: Tracked<T>,
        read: &HashSet<Tracked<T>>,
        columns: &[usize],
    ) -> bool {
        let entry = self.entry(handle);
        let moved = || {
            let modified = entry.modified_columns();
            (columns.iter()).any(|at| modified.contains(&T::TABLE.columns[*at].name))
        };
        entry.state() != EntityState::Added && !read.contains(&handle) && !moved()
    }

    /// Sets all of these, or none; returns what was there before.
    fn set_all<T: Entity>(&mut self, settings: Vec<Setting<T>>) -> Result<Vec<Setting<T>>> {
        for (handle, values) in &settings {
            self.tracker.check_given(*handle, values)?;
        }
        let mut before = Vec::with_capacity(settings.len());
        for (handle, values) in settings {
            let was = self.get(handle).map(|entity| {
                let columns = values.iter().map(|(column, _)| *column);
                columns
                    .map(|column| Ok((column, encode_column(entity, column)?)))
                    .collect::<Result<Vec<_>>>()
            });
            let set = was
                .transpose()
                .and_then(|was| self.tracker.set_given(handle, values).map(|()| was));
            match set {
                Ok(was) => before.extend(was.map(|was| (handle, was))),
                Err(error) => {
                    self.unset_all(before);
                    return Err(error);
                }
            }
        }
        Ok(before)
    }

    fn unset_all<T: Entity>(&mut self, before: Vec<Setting<T>>) {
        for (handle, values) in before.into_iter().rev() {
            // They were there, so they fit.
            if let Err(error) = self.tracker.set_given(handle, values) {
                tracing::debug!(error = %error.in_log(), "while taking back what was set");
            }
        }
    }

    fn key_of<E: Entity>(&self, parent: Tracked<E>, step: &Step) -> Result<Vec<Value>> {
        self.values(parent, &step.from_columns)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "the handle is not of a tracked entity")
                .with_table(E::TABLE.name)
        })
    }

    /// Relates an entity to all of these; undone if it cannot be.
    fn link_all<E: Entity, T: Entity, J: Entity>(
        &mut self,
        from: Tracked<E>,
        relation: Relation<E, Vec<T>, J>,
        all: &[Tracked<T>],
    ) -> Result<()> {
        let mut added = Vec::new();
        for to in all {
            let known = self.tracker.len();
            match self.link(from, relation, *to) {
                Ok(join) if self.tracker.len() > known => added.push(join),
                Ok(_) => {}
                Err(error) => {
                    for join in added {
                        self.remove(join);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Whether a column of a tracked entity becomes what a given one has there.
fn sets<T: Entity>(column: usize, value: &Value) -> bool {
    let table = T::TABLE;
    // What was not loaded where the child comes from is not to be changed.
    if table.is_key(column) || table.is_given(column) || *value == Value::Unread {
        return false;
    }
    if table.version == Some(column) {
        return matches!(value, Value::Integer(version) if *version > 0);
    }
    let is_time = table.created_at == Some(column) || table.updated_at == Some(column);
    !(is_time && table.columns[column].is_unset_time(value))
}

/// What is to be set, and which are tracked.
fn settings<T: Entity>(given: &[Given<T>]) -> (Vec<Setting<T>>, HashSet<Tracked<T>>) {
    let known = given.iter().filter_map(|given| match given {
        Given::Known(setting) => Some(setting.clone()),
        Given::New(_) => None,
    });
    let settings: Vec<_> = known.collect();
    let kept = settings.iter().map(|(handle, _)| *handle).collect();
    (settings, kept)
}

impl<E: Entity, T: Entity> Children<E> for Relation<E, Vec<T>> {
    type Child = T;

    async fn replace(
        self,
        ctx: &mut Context<'_>,
        parent: Tracked<E>,
        mut children: Vec<T>,
    ) -> Result<Vec<Tracked<T>>> {
        let [step] = only(self.steps()?)?;
        let reference = self.referring()?;
        let key = ctx.key_of(parent, &step)?;
        for child in &mut children {
            for (column, value) in step.to_columns.iter().zip(&key) {
                child.assign(*column, value.as_ref()).map_err(|error| {
                    Error::value(T::TABLE.name, T::TABLE.columns[*column].name, &error)
                })?;
            }
        }
        let given = ctx.recognise(children).await?;
        let mut read = HashSet::new();
        // What is not saved has no rows that refer to it.
        if !key.iter().any(is_temporary) {
            let query = Query::<T>::new().equal_to_any(&step.links(), &[key]);
            read.extend(query.load(ctx).await?);
        }
        let (mut settings, kept) = settings(&given);
        let present = ctx.next::<E, T>(&[parent], &step)?.into_iter().flatten();
        let missing = present.filter(|child| {
            let hidden =
                !T::TABLE.filters.is_empty() && ctx.is_hidden(*child, &read, &step.to_columns);
            !kept.contains(child) && !hidden
        });
        let missing: Vec<_> = missing.collect();
        let frees = T::TABLE.columns[reference].nullable;
        if frees {
            let free = |child: &Tracked<T>| (*child, vec![(reference, Value::Null)]);
            settings.extend(missing.iter().map(free));
        }
        ctx.set_all(settings)?;
        if !frees {
            for child in missing {
                ctx.remove(child);
            }
        }
        let handles = given.into_iter().map(|given| match given {
            Given::New(child) => ctx.add(child),
            Given::Known((handle, _)) => handle,
        });
        Ok(handles.collect())
    }
}

#[diagnostic::do_not_recommend]
impl<E: Entity, T: Entity, J: Entity> Children<E> for Relation<E, Vec<T>, J> {
    type Child = T;

    async fn replace(
        self,
        ctx: &mut Context<'_>,
        parent: Tracked<E>,
        children: Vec<T>,
    ) -> Result<Vec<Tracked<T>>> {
        let [first, second] = only(self.steps()?)?;
        let key = ctx.key_of(parent, &first)?;
        let given = ctx.recognise(children).await?;
        let mut read = HashSet::new();
        if !key.iter().any(is_temporary) {
            let query = self.joined()?.equal_to_any(&first.links(), &[key]);
            read.extend(query.load(ctx).await?.into_iter().map(|(join, _)| join));
        }
        let (settings, kept) = settings(&given);
        let joins = ctx.next::<E, J>(&[parent], &first)?;
        let joins: Vec<_> = joins.into_iter().flatten().collect();
        let beyond = ctx.next::<J, T>(&joins, &second)?;
        let filtered = !T::TABLE.filters.is_empty() || !J::TABLE.filters.is_empty();
        let beyond: HashMap<_, _> = joins.into_iter().zip(beyond).collect();
        let mut missing: Vec<_> = (beyond.into_iter())
            .filter(|(join, to)| {
                let hidden = filtered && ctx.is_hidden(*join, &read, &first.to_columns);
                !to.is_empty() && !to.iter().any(|to| kept.contains(to)) && !hidden
            })
            .map(|(join, _)| join)
            .collect();
        missing.sort_by_key(|join| join.place.index);
        let before = ctx.set_all(settings)?;
        let mut added = Vec::new();
        let handles = given.into_iter().map(|given| match given {
            Given::New(child) => {
                let child = ctx.add(child);
                added.push(child);
                child
            }
            Given::Known((handle, _)) => handle,
        });
        let handles: Vec<_> = handles.collect();
        if let Err(error) = ctx.link_all(parent, self, &handles) {
            for child in added {
                ctx.remove(child);
            }
            ctx.unset_all(before);
            return Err(error);
        }
        for join in missing {
            ctx.remove(join);
        }
        Ok(handles)
    }
}
