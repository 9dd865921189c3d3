//! The ends of a query: what runs it, and what comes of it.

use std::future::{self, Future};

use futures_util::{FutureExt as _, stream};

use crate::{
    entity::{Column, ColumnDef, Entity},
    error::{Error, ErrorKind, Result},
    query::{
        Expr, Nullable, Number, Part, Query, Selection, Summed,
        condition::Invalid,
        filters::{self, Lifted},
        grouping, outer,
        table_sql::TableSql,
    },
    sql::{
        Comparison, Cost, Executor, Predicate, Read, ReadTogether, Reads, Rows, Select, Statement,
        Term,
    },
    value::{ColumnType, Row, Value},
};

/// The most rows that are read as a matter of course on the task that asks for them.
const SMALL_LIMIT: u64 = 100;

/// # Running it
///
/// Each of these fails with kind [`ErrorKind::Value`] if a value of a condition could not be stored in its column,
/// with [`ErrorKind::Decode`] if a stored row does not fit the entity, and with whatever keeps the executor from
/// reading.
///
/// ```
/// # use anabranch::prelude::*;
/// use futures_util::TryStreamExt as _;
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
/// let named = |name: &str| Item::query().filter(Item::NAME.eq(name));
/// assert_eq!(named("tea").one(&db).await?.price, 3);
/// assert!(named("gin").optional(&db).await?.is_none());
/// assert!(!named("gin").exists(&db).await?);
/// assert_eq!(named("gin").one(&db).await.unwrap_err().kind(), ErrorKind::NotFound);
/// let cheapest = Item::query().order_by(Item::PRICE.asc()).first(&db).await?;
/// assert_eq!(cheapest.map(|item| item.price), Some(3));
///
/// assert_eq!(Item::query().count(&db).await?, 3);
/// assert_eq!(Item::query().sum(Item::PRICE, &db).await?, Some(17));
/// assert_eq!(Item::query().min(Item::PRICE, &db).await?, Some(3));
/// assert_eq!(Item::query().max(Item::PRICE * 2, &db).await?, Some(14));
/// assert_eq!(Item::query().avg(Item::DISCOUNT, &db).await?, Some(4.5));
///
/// let mut items = Item::query().stream(&db);
/// let mut sum = 0;
/// while let Some(item) = items.try_next().await? {
///     sum += item.price;
/// }
/// assert_eq!(sum, 17);
/// assert!(Item::query().sql()?.to_string().starts_with("SELECT "));
/// # Ok(()) }
/// ```
impl<E: Entity, S: Selection<E>> Query<E, S> {
    /// Reads all rows.
    ///
    /// # Errors
    ///
    /// When the query is invalid, cannot run, or a row does not fit the entity.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn all<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Vec<S::Output>>> + Send {
        self.run(executor, Ok)
    }

    /// Reads the first row, in the order asked for, if there is any.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn first<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<S::Output>>> + Send {
        self.at_most(1)
            .run(executor, |rows| Ok(rows.into_iter().next()))
    }

    /// Reads the only row.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::NotFound`] if there is none, [`ErrorKind::MoreThanOne`] if there are more; else as
    /// [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn one<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<S::Output>> + Send {
        self.only(executor, |row| {
            row.ok_or_else(|| Error::new(ErrorKind::NotFound, "no row fulfils the conditions"))
        })
    }

    /// Reads the only row, if there is one.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::MoreThanOne`] if there are more; else as [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn optional<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<S::Output>>> + Send {
        self.only(executor, Ok)
    }

    /// Counts the rows: no more than `limit`, and without the first `offset`.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn count<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<u64>> + Send {
        let prepared = self.into_counted().map(|select| Read {
            statement: select.into_count(),
            cost: Cost::Any,
            entity: None,
            decode: decode_count,
        });
        read(executor, prepared, |rows| Ok(rows.into_iter().sum()))
    }

    /// Whether there is any row.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn exists<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<bool>> + Send {
        let prepared = self.into_counted().map(|select| Read {
            statement: select.into_exists(),
            cost: Cost::Small,
            entity: None,
            decode: decode_count,
        });
        read(executor, prepared, |rows| Ok(rows.contains(&1)))
    }

    /// The sum of an expression over all rows; `None` if it has no value in any.
    ///
    /// # Errors
    ///
    /// As [`Query::all`]; kind [`ErrorKind::Decode`] if the sum does not fit.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn sum<'c, T: Summed, P: Part>(
        self,
        expression: Column<E, T, P>,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<T::Sum>>> + Send
    where
        T::Sum: Send + 'static,
    {
        self.made_of_all(expression.sum(), executor)
    }

    /// The least value of an expression; `None` if it has no value in any row.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn min<'c, T: Nullable, P: Part>(
        self,
        expression: Column<E, T, P>,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<T::Nullable>> + Send
    where
        T::Nullable: Send + 'static,
    {
        self.made_of_all(expression.min(), executor)
    }

    /// The greatest value of an expression; `None` if it has no value in any row.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn max<'c, T: Nullable, P: Part>(
        self,
        expression: Column<E, T, P>,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<T::Nullable>> + Send
    where
        T::Nullable: Send + 'static,
    {
        self.made_of_all(expression.max(), executor)
    }

    /// The mean of an expression; `None` if it has no value in any row.
    ///
    /// # Errors
    ///
    /// As [`Query::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn avg<'c, T: Number, P: Part>(
        self,
        expression: Column<E, T, P>,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<f64>>> + Send {
        self.made_of_all(expression.avg(), executor)
    }

    /// One value of all rows. The order is of no matter; with a limit it would be, so that is not taken.
    #[track_caller]
    fn made_of_all<'c, T: ColumnType + Send + 'static>(
        mut self,
        aggregate: Expr<E, T>,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<T>> + Send {
        let is_part = self.limit.is_some() || self.offset > 0;
        if is_part || self.distinct || !self.group.is_empty() || !self.having.is_empty() {
            self.conditions = self.conditions.and(Err(Invalid::Refused(
                "an aggregate is of all rows of a table: `limit`, `offset`, `distinct` and `group_by` are not taken",
            )));
        }
        self.order.clear();
        self.select(aggregate).only_row(executor)
    }

    #[track_caller]
    fn only_row<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<S::Output>> + Send {
        self.run(executor, |rows| {
            (rows.into_iter().next())
                .ok_or_else(|| Error::new(ErrorKind::NotFound, "an aggregate gave no row"))
        })
    }

    /// Reads the rows as they are asked for, without keeping them all in memory. An invalid query is a stream of
    /// one error, and so is one that needs more than one statement: what to-many relations lead to is read for all rows
    /// at once.
    #[track_caller]
    pub fn stream<'c>(self, executor: impl Executor<'c>) -> Rows<'c, S::Output> {
        match self.into_read() {
            Ok(read) => executor.stream(read),
            Err(error) => Box::pin(stream::once(future::ready(Err(error)))),
        }
    }

    /// The statement that [`Query::all`] would run, of several the first; displaying it shows its text.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Value`] if a value of a condition could not be stored in its column.
    pub fn sql(&self) -> Result<Statement> {
        Ok(self.clone().into_select()?.0.into_rows())
    }

    /// What an executor takes, if one statement is enough.
    pub(in crate::query) fn into_read(self) -> Result<Read<S::Output>> {
        if !S::FLAT {
            return Err(Error::new(
                ErrorKind::Refused,
                "what to-many relations lead to is read for all rows at once: `all` does that",
            )
            .with_table(E::TABLE.name));
        }
        let (select, _) = self.into_select()?;
        Ok(Read {
            cost: cost::<E>(&select),
            statement: select.into_rows(),
            entity: None,
            decode: decode_whole::<E, S>,
        })
    }

    /// Runs the query, and makes something of its rows.
    #[track_caller]
    pub(crate) fn run<'c, R: Send + 'c>(
        self,
        executor: impl Executor<'c>,
        finish: impl FnOnce(Vec<S::Output>) -> Result<R> + Send,
    ) -> impl Future<Output = Result<R>> + Send {
        if S::FLAT {
            return read(executor, self.into_read(), finish).left_future();
        }
        let together = match self.into_reads() {
            Ok(reads) => executor.read_together(reads).left_future(),
            Err(error) => future::ready(Err(error)).right_future(),
        };
        together
            .map(|outputs| outputs.and_then(finish))
            .right_future()
    }

    fn into_reads(self) -> Result<ReadTogether<Vec<S::Output>>> {
        let (select, selection) = self.into_select()?;
        let cost = cost::<E>(&select);
        let statement = select.into_rows();
        let work = move |reads: &mut dyn Reads| {
            let mut partials = Vec::new();
            reads.rows(&statement, &mut |row| {
                partials.push(S::decode(row, 0)?);
                Ok(())
            })?;
            selection.finish(partials, reads)
        };
        Ok(ReadTogether {
            cost,
            work: Box::new(work),
        })
    }

    /// Only the rows that fulfil these conditions too.
    pub(in crate::query) fn fulfilling(mut self, more: Vec<Predicate>) -> Self {
        if let Ok(conditions) = &mut self.conditions {
            conditions.extend(more);
        }
        self
    }

    /// Only the rows that have these values in columns.
    pub(crate) fn equal(mut self, columns: &[usize], values: Vec<Value>) -> Self {
        if let Ok(conditions) = &mut self.conditions {
            let equal = columns.iter().zip(values);
            conditions.extend(equal.map(|(column, value)| Predicate::Compare {
                term: Term::Column(E::TABLE.columns[*column].name),
                comparison: Comparison::Equal,
                with: Term::Value(value),
            }));
        }
        self
    }

    /// Only the rows of which these are one of the keys.
    pub(crate) fn equal_to_any(mut self, columns: &[Term], keys: &[Vec<Value>]) -> Self {
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        if let Ok(conditions) = &mut self.conditions {
            conditions.push(Predicate::among(columns, &keys));
        }
        self
    }

    /// Reads at most one row, and makes something of it.
    #[track_caller]
    fn only<'c, R: Send + 'c>(
        self,
        executor: impl Executor<'c>,
        finish: impl FnOnce(Option<S::Output>) -> Result<R> + Send,
    ) -> impl Future<Output = Result<R>> + Send {
        // Rendered for the message alone, if there is need of one.
        let query = self.at_most(2);
        let same = query.clone();
        query.run(executor, move |rows| {
            only(rows).and_then(finish).map_err(|error| {
                let error = error.with_table(E::TABLE.name);
                match same.sql() {
                    Ok(statement) => error.with_statement(statement.text.to_string()),
                    Err(_) => error,
                }
            })
        })
    }

    pub(crate) fn at_most(mut self, rows: u64) -> Self {
        self.limit = Some(self.limit.map_or(rows, |limit| limit.min(rows)));
        self
    }

    /// The tree of the statement, without what is read of each row being kept.
    pub(in crate::query) fn into_inner_select(self) -> Result<Select, Invalid> {
        self.into_parts().map(|(select, _)| select)
    }

    fn into_select(self) -> Result<(Select, S::Prepared)> {
        let (select, selection) = self.into_parts()?;
        outer::check(select.around())?;
        Ok((select, selection))
    }

    pub(in crate::query) fn into_parts(self) -> Result<(Select, S::Prepared), Invalid> {
        let (select, selection) = self.into_rows()?;
        grouping::check::<E>(&select)?;
        Ok((select, selection))
    }

    /// The same where no more is asked than how many rows, or groups, there are.
    fn into_counted(self) -> Result<Select> {
        let (select, _) = self.into_rows()?;
        grouping::check_having::<E>(&select)?;
        outer::check(select.around())?;
        Ok(select)
    }

    pub(in crate::query) fn into_rows(self) -> Result<(Select, S::Prepared), Invalid> {
        let selection = self.selection.prepare()?;
        let mut terms = Vec::new();
        selection.terms(&mut terms)?;
        self.included.apply::<E>(&mut terms);
        let columns = match terms.len() {
            1 => terms.remove(0),
            _ => Term::Several(terms),
        };
        let mut conditions = self.conditions?;
        if !E::TABLE.filters.is_empty() || self.lifted != Lifted::None {
            filters::check(&self.lifted, &[E::TABLE])?;
            conditions.extend(filters::of::<E>(&self.lifted)?);
        }
        let select = Select {
            columns,
            distinct: self.distinct,
            table: E::TABLE.name,
            source: self.source,
            conditions,
            group: self.group,
            having: self.having,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
        };
        Ok((select, selection))
    }
}

fn cost<E: Entity>(select: &Select) -> Cost {
    // Of rows that are made first, however few are read.
    if select.source.is_some() {
        return Cost::Any;
    }
    cost_of::<E>(&select.conditions, select.limit)
}

pub(in crate::query) fn cost_of<E: Entity>(conditions: &[Predicate], limit: Option<u64>) -> Cost {
    let pinned = |key: &ColumnDef| conditions.iter().any(|part| part.pins(key.name));
    // Of rows that are reached step by step all are, however few are read.
    let is_reached = |part: &Predicate| matches!(part, Predicate::Reached(_));
    if conditions.iter().any(is_reached) {
        return Cost::Any;
    }
    let few = limit.is_some_and(|limit| limit <= SMALL_LIMIT) || E::TABLE.key_columns().all(pinned);
    if few {
        TableSql::of(E::TABLE).row_cost
    } else {
        Cost::Any
    }
}

/// What comes of a row, as a [`Read`] takes it.
pub(in crate::query) fn decode_whole<E: Entity, S: Selection<E>>(
    row: &dyn Row,
) -> Result<S::Output> {
    S::finish_one(S::decode(row, 0)?)
}

/// Runs a read that may not have come about, and makes something of its rows.
///
/// Combinators instead of an `async` block: in a block that is generic over [`Executor`], the compiler forgets for
/// which lifetime it is one, and the future could not be spawned (rust-lang/rust#100013).
#[track_caller]
pub(in crate::query) fn read<'c, T: Send + 'static, R: Send>(
    executor: impl Executor<'c>,
    read: Result<Read<T>>,
    finish: impl FnOnce(Vec<T>) -> Result<R> + Send,
) -> impl Future<Output = Result<R>> + Send {
    match read {
        Ok(read) => executor
            .read(read)
            .map(|rows| rows.and_then(finish))
            .left_future(),
        Err(error) => future::ready(Err(error)).right_future(),
    }
}

fn only<E>(rows: Vec<E>) -> Result<Option<E>> {
    let mut rows = rows.into_iter();
    let first = rows.next();
    if rows.next().is_some() {
        return Err(Error::new(
            ErrorKind::MoreThanOne,
            "more than one row fulfils the conditions",
        ));
    }
    Ok(first)
}

pub(in crate::query) fn decode_count(row: &dyn Row) -> Result<u64> {
    i64::decode(row.value(0))
        .ok()
        .and_then(|count| u64::try_from(count).ok())
        .ok_or_else(|| Error::new(ErrorKind::Decode, "count(*) gave no number of rows"))
}
