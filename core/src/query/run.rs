//! The ends of a query: what runs it, and what comes of it.

use std::{
    future::{self, Future},
    sync::Arc,
};

use futures_util::{FutureExt as _, stream};

use crate::{
    entity::{ColumnDef, Entity},
    error::{Error, ErrorKind, Result},
    query::{Query, find::decode_row, table_sql::TableSql},
    sql::{Cost, Executor, Read, Rows, Select, Statement},
    value::{ColumnType, Row},
};

/// The most rows that are read as a matter of course on the task that asks for them.
const SMALL_LIMIT: u64 = 100;

/// # Running it
///
/// Each of these fails with kind [`ErrorKind::Value`] if a value of a condition could not be stored in its column,
/// with [`ErrorKind::Decode`] if a stored row does not fit the entity, and with whatever keeps the executor from
/// reading.
impl<E: Entity> Query<E> {
    /// Reads all rows.
    ///
    /// # Errors
    ///
    /// When the query is invalid, cannot run, or a row does not fit the entity.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    pub fn all<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Vec<E>>> + Send {
        read(executor, self.into_read(), Ok)
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
    pub fn first<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<E>>> + Send {
        read(executor, self.at_most(1).into_read(), |rows| {
            Ok(rows.into_iter().next())
        })
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
    pub fn one<'c>(self, executor: impl Executor<'c>) -> impl Future<Output = Result<E>> + Send {
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
    pub fn optional<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<E>>> + Send {
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
    pub fn count<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<u64>> + Send {
        let prepared = self.into_select().map(|select| Read {
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
    pub fn exists<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<bool>> + Send {
        let prepared = self.into_select().map(|select| Read {
            statement: select.into_exists(),
            cost: Cost::Small,
            entity: None,
            decode: decode_count,
        });
        read(executor, prepared, |rows| Ok(rows.contains(&1)))
    }

    /// Reads the rows as they are asked for, without keeping them all in memory. An invalid query is a stream of
    /// one error.
    pub fn stream<'c>(self, executor: impl Executor<'c>) -> Rows<'c, E> {
        match self.into_read() {
            Ok(read) => executor.stream(read),
            Err(error) => Box::pin(stream::once(future::ready(Err(error)))),
        }
    }

    /// The statement that [`Query::all`] would run; displaying it shows its text.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Value`] if a value of a condition could not be stored in its column.
    pub fn sql(&self) -> Result<Statement> {
        Ok(self.clone().into_select()?.into_rows())
    }

    /// The statement, what it may cost, and how its rows become entities: what an executor takes.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Value`] if a value of a condition could not be stored in its column.
    pub fn into_read(self) -> Result<Read<E>> {
        let select = self.into_select()?;
        Ok(Read {
            cost: cost::<E>(&select),
            statement: select.into_rows(),
            entity: None,
            decode: decode_row::<E>,
        })
    }

    /// Reads at most one row, and makes something of it.
    fn only<'c, R: Send>(
        self,
        executor: impl Executor<'c>,
        finish: impl FnOnce(Option<E>) -> Result<R> + Send,
    ) -> impl Future<Output = Result<R>> + Send {
        let prepared = self.at_most(2).into_read();
        let text = match &prepared {
            Ok(read) => Arc::clone(&read.statement.text),
            Err(_) => Arc::default(),
        };
        read(executor, prepared, move |rows| {
            only(rows).and_then(finish).map_err(|error| {
                error
                    .with_table(E::TABLE.name)
                    .with_statement(text.to_string())
            })
        })
    }

    fn at_most(mut self, rows: u64) -> Self {
        self.limit = Some(self.limit.map_or(rows, |limit| limit.min(rows)));
        self
    }

    fn into_select(self) -> Result<Select> {
        Ok(Select {
            columns: TableSql::of(E::TABLE).columns.clone(),
            table: E::TABLE.name,
            conditions: self.conditions?,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
        })
    }
}

fn cost<E: Entity>(select: &Select) -> Cost {
    let pinned = |key: &ColumnDef| select.conditions.iter().any(|part| part.pins(key.name));
    let few = select.limit.is_some_and(|limit| limit <= SMALL_LIMIT)
        || E::TABLE.key_columns().all(pinned);
    if few {
        TableSql::of(E::TABLE).row_cost
    } else {
        Cost::Any
    }
}

/// Runs a read that may not have come about, and makes something of its rows.
///
/// Combinators instead of an `async` block: in a block that is generic over [`Executor`], the compiler forgets for
/// which lifetime it is one, and the future could not be spawned (rust-lang/rust#100013).
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

fn decode_count(row: &dyn Row) -> Result<u64> {
    i64::decode(row.value(0))
        .ok()
        .and_then(|count| u64::try_from(count).ok())
        .ok_or_else(|| Error::new(ErrorKind::Decode, "count(*) gave no number of rows"))
}
