//! Changing many rows at once, without reading them first.

use std::{fmt, future::Future};

use chrono::Utc;
use futures_util::{FutureExt as _, future};

use crate::{
    entity::{Column, Entity},
    error::{Error, Result},
    query::{
        Operand, Query, Selection,
        case::checked,
        condition::Invalid,
        outer,
        run::{cost_of, decode_whole},
    },
    sql::{
        self, Arg, Batch, Cost, Predicate, Select, Statement, Term, WITHIN, Write, WriteExecutor,
        Written,
    },
    value::{ColumnType, TEMPORARY_KEYS, Value, ValueError},
};

/// An UPDATE of the rows that a query finds; made by [`Query::update`].
#[must_use = "an update does nothing until it is executed"]
pub struct Update<E, S = ()> {
    query: Query<E>,
    set: Vec<(usize, Result<Term, Invalid>)>,
    /// Whether there may be nothing to set.
    may_be_empty: bool,
    returning: S,
}

/// A DELETE of the rows that a query finds; made by [`Query::delete`].
#[must_use = "a delete does nothing until it is executed"]
pub struct Delete<E, S = ()> {
    query: Query<E>,
    returning: S,
}

/// # Changing what it finds
///
/// These write at once: no context knows of them, and entities that are tracked stay as they were read. A `version` is
/// counted up, so that saving such an entity is a conflict and not a lost update; `updated_at` gets the time. With a
/// limit or an offset those rows are changed that the query would read, which takes a key of one column.
impl<E: Entity> Query<E> {
    /// Updates the rows: [`set`](Update::set) says which columns, [`execute`](Update::execute) does it.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64, sold: bool }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Item { id: 0, name: "tea".into(), price: 3, sold: false });
    /// # ctx.save_changes().await?;
    /// let rows = Item::query()
    ///     .filter(Item::SOLD.eq(false))
    ///     .update()
    ///     .set(Item::PRICE, Item::PRICE * 2)
    ///     .execute(&db)
    ///     .await?;
    /// assert_eq!(rows, 1);
    /// let prices = Item::query()
    ///     .update()
    ///     .set(Item::NAME, Item::NAME.upper())
    ///     .returning((Item::NAME, Item::PRICE))
    ///     .all(&db)
    ///     .await?;
    /// assert_eq!(prices, [("TEA".to_owned(), 6)]);
    /// # Ok(()) }
    /// ```
    pub const fn update(self) -> Update<E> {
        Update {
            query: self,
            set: Vec::new(),
            may_be_empty: false,
            returning: (),
        }
    }

    /// Deletes the rows: [`execute`](Delete::execute) does it.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Visit { #[entity(id)] id: i64, page: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Visit>().await?;
    /// let oldest = Visit::query().order_by(Visit::ID.asc()).limit(1_000);
    /// let deleted: u64 = oldest.delete().execute(&db).await?;
    /// # assert_eq!(deleted, 0);
    /// # Ok(()) }
    /// ```
    pub const fn delete(self) -> Delete<E> {
        Delete {
            query: self,
            returning: (),
        }
    }

    /// The conditions by which the rows are found.
    fn into_conditions(self) -> Result<Vec<Predicate>, Invalid> {
        let (select, _) = self.into_rows()?;
        let source = select.source.as_ref();
        if source.is_some_and(|source| !source.is_of(E::TABLE.name)) {
            return Err(Invalid::Refused(
                "rows that SQL or another query makes cannot be changed: take a query over the table",
            ));
        }
        if select.distinct || !select.group.is_empty() || !select.having.is_empty() {
            return Err(Invalid::Refused(
                "rows are changed one by one: `distinct`, `group_by` and `having` are not taken",
            ));
        }
        for condition in &select.conditions {
            outer::check(condition.around(E::TABLE.name))?;
        }
        if select.limit.is_none() && select.offset == 0 && select.source.is_none() {
            return Ok(select.conditions);
        }
        let mut key = E::TABLE.key_columns();
        let (Some(column), None) = (key.next(), key.next()) else {
            return Err(Invalid::Refused(
                "a limit of changes is by the key, which has to be of one column",
            ));
        };
        let key = Term::Column(column.name);
        Ok(vec![Predicate::InSelect {
            term: key.clone(),
            select: Box::new(Select {
                columns: key,
                ..select
            }),
        }])
    }
}

impl<E: Entity, S> Update<E, S> {
    /// The column becomes the value, or what an expression gives of the row as it was. Set twice, the last counts. What
    /// relations lead to is looked up row by row: in a table that refers to itself it may have been changed already.
    ///
    /// What is computed for a field of a small integer type has to be one of its integers, else the update fails with
    /// kind [`ErrorKind::Statement`](crate::error::ErrorKind::Statement), and nothing is written.
    pub fn set<T: ColumnType>(mut self, column: Column<E, T>, value: impl Operand<E, T>) -> Self {
        let term = set_to(value);
        self.set.retain(|(other, _)| *other != column.index());
        self.set.push((column.index(), term));
        self
    }

    /// The same, if there is a value: for forms of which some fields are empty. If all are, no row is changed.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::Update;
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
    /// fn form(name: Option<&str>, price: Option<i64>) -> Update<Item> {
    ///     Item::query().filter(Item::ID.eq(1)).update().set_if(Item::NAME, name).set_if(Item::PRICE, price)
    /// }
    /// assert_eq!(form(None, Some(4)).execute(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    pub fn set_if<T: ColumnType>(
        mut self,
        column: Column<E, T>,
        value: Option<impl Operand<E, T>>,
    ) -> Self {
        self.may_be_empty = true;
        match value {
            Some(value) => self.set(column, value),
            None => self,
        }
    }

    /// Whether there is nothing to do.
    const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.may_be_empty
    }

    fn into_tree(self, returning: Option<Term>) -> Result<sql::Update, Invalid> {
        let table = E::TABLE;
        let mut set = Vec::with_capacity(self.set.len() + 2);
        for (column, term) in self.set {
            let definition = &table.columns[column];
            let is_kept = table.version == Some(column) || table.commit_seq == Some(column);
            if is_kept || definition.generated.is_some() {
                return Err(Invalid::Model {
                    table: table.name,
                    message: format!(
                        "the column `{}` is kept by the library or the database, and cannot be set",
                        definition.name
                    ),
                });
            }
            let term = term?;
            if term.aggregates() {
                return Err(Invalid::Refused(
                    "a column cannot be set to an aggregate of the rows: take a query `as_value`",
                ));
            }
            if term.looks_around() {
                return Err(Invalid::Refused(
                    "a column cannot be set to what is computed `over` other rows: take a query `as_value`",
                ));
            }
            if let Term::Value(Value::Integer(key)) = term
                && TEMPORARY_KEYS.contains(&key)
                && table.key_source(column).is_some()
            {
                return Err(Invalid::Operand {
                    table: table.name,
                    column: definition.name,
                    error: ValueError::new("a temporary key: save the entity that it is of first"),
                });
            }
            set.push((column, term));
        }
        if set.is_empty() {
            return Err(Invalid::Refused("an update sets one column at least"));
        }
        set.extend(kept::<E>(&set)?);
        for (_, term) in &set {
            outer::check(term.around(table.name))?;
        }
        let set = set.into_iter();
        Ok(sql::Update {
            table: table.name,
            set: set
                .map(|(column, term)| (table.columns[column].name, term))
                .collect(),
            conditions: self.query.into_conditions()?,
            returning,
        })
    }
}

impl<E: Entity> Update<E> {
    /// Tells of each row that it changed, as it is then; but for `commit_seq`, which is stamped at the end of the
    /// transaction.
    pub fn returning<S: Selection<E>>(self, selection: S) -> Update<E, S> {
        Update {
            query: self.query,
            set: self.set,
            may_be_empty: self.may_be_empty,
            returning: selection,
        }
    }

    /// Updates the rows, and says how many there were: by the database in a transaction of its own, committed when this
    /// returns.
    ///
    /// # Errors
    ///
    /// When the query, or what is set, is invalid; those of constraints; and those that writing has.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn execute<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<u64>> + Send {
        if self.is_empty() {
            return future::ready(Ok(0)).right_future();
        }
        let tree = self.into_tree(None);
        write(executor, tree.map(updating::<E>))
            .map(|written| Ok(written?.changed()))
            .left_future()
    }
}

impl<E: Entity, S: Selection<E>> Update<E, S> {
    /// Updates the rows, and tells of each.
    ///
    /// # Errors
    ///
    /// As [`Update::execute`]; kind `Refused` for what one row does not tell of itself.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn all<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<Vec<S::Output>>> + Send {
        if self.is_empty() {
            return future::ready(Ok(Vec::new())).right_future();
        }
        let write_of = returned(&self.returning)
            .and_then(|returning| self.into_tree(Some(returning)))
            .map(updating::<E>);
        write(executor, write_of)
            .map(|written| told::<E, S>(&written?))
            .left_future()
    }
}

impl<E: Entity, S> Delete<E, S> {
    fn into_tree(self, returning: Option<Term>) -> Result<sql::Delete, Invalid> {
        Ok(sql::Delete {
            table: E::TABLE.name,
            conditions: self.query.into_conditions()?,
            returning,
        })
    }
}

impl<E: Entity> Delete<E> {
    /// Tells of each row that it deleted, as it was.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::Delete;
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
    /// let dear: Delete<Item> = Item::query().filter(Item::PRICE.gt(5)).delete();
    /// let names = dear.returning(Item::NAME).all(&db).await?;
    /// assert_eq!(names.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn returning<S: Selection<E>>(self, selection: S) -> Delete<E, S> {
        Delete {
            query: self.query,
            returning: selection,
        }
    }

    /// Deletes the rows, and says how many there were; those that cascades take along are not counted.
    ///
    /// # Errors
    ///
    /// When the query is invalid; those of constraints; and those that writing has.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn execute<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<u64>> + Send {
        let tree = self.into_tree(None);
        write(executor, tree.map(deleting::<E>)).map(|written| Ok(written?.changed()))
    }
}

impl<E: Entity, S: Selection<E>> Delete<E, S> {
    /// Deletes the rows, and tells of each.
    ///
    /// # Errors
    ///
    /// As [`Delete::execute`]; kind `Refused` for what one row does not tell of itself.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn all<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<Vec<S::Output>>> + Send {
        let write_of = returned(&self.returning)
            .and_then(|returning| self.into_tree(Some(returning)))
            .map(deleting::<E>);
        write(executor, write_of).map(|written| told::<E, S>(&written?))
    }
}

/// What a column becomes.
pub(in crate::query) fn set_to<E, T: ColumnType>(
    value: impl Operand<E, T>,
) -> Result<Term, Invalid> {
    let node = checked(value.node());
    node.shape.check()?;
    Ok(match node.term? {
        term @ (Term::Value(_) | Term::Column(_)) => term,
        term => within::<T>(term),
    })
}

/// What has to be one of the integers of the type, if that is one of integers.
pub(in crate::query) fn within<T: ColumnType>(term: Term) -> Term {
    match T::RANGE {
        None => term,
        Some((least, greatest)) => Term::Call {
            function: WITHIN,
            args: vec![term, Term::Number(least), Term::Number(greatest)],
        },
    }
}

/// What the library keeps of a row that is changed: its version, and when that was.
pub(in crate::query) fn kept<E: Entity>(
    set: &[(usize, Term)],
) -> Result<Vec<(usize, Term)>, Invalid> {
    let table = E::TABLE;
    let mut kept = Vec::new();
    if let Some(version) = table.version {
        let next = Term::Infix {
            left: Box::new(Term::Column(table.columns[version].name)),
            operator: " + ",
            right: Box::new(Term::Number(1)),
        };
        kept.push((version, next));
    }
    if let Some(column) = table.updated_at
        && !set.iter().any(|(other, _)| *other == column)
    {
        let now = Utc::now().encode().map_err(|error| Invalid::Operand {
            table: table.name,
            column: table.columns[column].name,
            error,
        })?;
        kept.push((column, Term::Value(now)));
    }
    Ok(kept)
}

fn updating<E: Entity>(tree: sql::Update) -> Write {
    let cost = cost_of::<E>(&tree.conditions, None);
    let returns = tree.returning.is_some();
    one_step::<E>(cost, tree.into_statement(), returns)
}

fn deleting<E: Entity>(tree: sql::Delete) -> Write {
    let cost = cost_of::<E>(&tree.conditions, None);
    let returns = tree.returning.is_some();
    one_step::<E>(cost, tree.into_statement(), returns)
}

pub(in crate::query) fn one_step<E: Entity>(
    cost: Cost,
    statement: Statement,
    returns: bool,
) -> Write {
    one_step_of::<E>(Batch::default(), cost, statement, returns)
}

/// The same, in a batch that asks for more.
pub(in crate::query) fn one_step_of<E: Entity>(
    batch: Batch,
    cost: Cost,
    statement: Statement,
    returns: bool,
) -> Write {
    let mut write = Write::from_batch(batch);
    let args = statement.args.into_iter().map(Arg::Value).collect();
    write.push((E::TABLE.name, cost), statement.text, args, returns);
    write
}

pub(in crate::query) fn write<'c>(
    executor: impl WriteExecutor<'c>,
    write: Result<Write, Invalid>,
) -> impl Future<Output = Result<Written>> + Send {
    match write {
        Ok(write) => executor.write(write).left_future(),
        Err(invalid) => future::ready(Err(Error::from(invalid))).right_future(),
    }
}

/// What RETURNING selects: of the row alone.
pub(in crate::query) fn returned<E: Entity, S: Selection<E>>(
    selection: &S,
) -> Result<Term, Invalid> {
    let mut terms = Vec::new();
    selection.terms(&mut terms)?;
    let terms = Term::Several(terms);
    let is_of_others = terms.looks_elsewhere() || terms.aggregates() || terms.looks_around();
    if !S::FLAT || is_of_others {
        return Err(Invalid::Refused(
            "what is returned is of the changed row alone: neither relations nor aggregates are taken",
        ));
    }
    outer::check(terms.around(E::TABLE.name))?;
    Ok(terms)
}

pub(in crate::query) fn told<E: Entity, S: Selection<E>>(
    written: &Written,
) -> Result<Vec<S::Output>> {
    let rows = written.rows(0);
    rows.map(|row| decode_whole::<E, S>(&Values(row)))
        .collect::<Result<_>>()
        .map_err(|error| unreadable::<E>(&error))
}

/// What was written stays so, whatever comes of what it told.
pub(in crate::query) fn unreadable<E: Entity>(error: &Error) -> Error {
    Error::new(
        error.kind(),
        format!("the rows were written, but what they returned cannot be read: {error}"),
    )
    .with_table(E::TABLE.name)
}

/// A row that was read already.
pub(in crate::query) struct Values<'a>(pub(in crate::query) &'a [Value]);

impl crate::value::Row for Values<'_> {
    fn width(&self) -> usize {
        self.0.len()
    }

    fn value(&self, index: usize) -> crate::value::ValueRef<'_> {
        self.0.value(index)
    }
}

impl<E, S: Clone> Clone for Update<E, S> {
    fn clone(&self) -> Self {
        Self {
            query: self.query.clone(),
            set: self.set.clone(),
            may_be_empty: self.may_be_empty,
            returning: self.returning.clone(),
        }
    }
}

impl<E, S: Clone> Clone for Delete<E, S> {
    fn clone(&self) -> Self {
        Self {
            query: self.query.clone(),
            returning: self.returning.clone(),
        }
    }
}

impl<E: Entity, S: Clone> fmt::Debug for Update<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clone().into_tree(None) {
            Ok(tree) => write!(f, "Update({})", tree.into_statement()),
            Err(invalid) => write!(f, "Update({invalid:?})"),
        }
    }
}

impl<E: Entity, S: Clone> fmt::Debug for Delete<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clone().into_tree(None) {
            Ok(tree) => write!(f, "Delete({})", tree.into_statement()),
            Err(invalid) => write!(f, "Delete({invalid:?})"),
        }
    }
}
