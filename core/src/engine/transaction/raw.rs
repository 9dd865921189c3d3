//! `&mut *tx` as sqlx's `Executor`: any SQL of the application, in this transaction.

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::{future::BoxFuture, stream::BoxStream};
use futures_util::{StreamExt, TryStreamExt, stream};
use sqlx::{
    Either, Sqlite,
    error::{BoxDynError, DatabaseError, ErrorKind as SqlxErrorKind},
    sqlite::{SqliteArguments, SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo},
};
use sqlx_core::{
    describe::Describe,
    executor::{Execute, Executor},
    sql_str::SqlStr,
};

use crate::{
    engine::{exchange::Raw, hooks::Authorizer, narrator::RawTelling, transaction::Transaction},
    error::{Error, ErrorKind},
};

type Step = Result<Either<SqliteQueryResult, SqliteRow>, sqlx::Error>;

impl Transaction {
    /// Makes sure that the transaction is open, and lends what a raw query needs.
    async fn raw(&mut self) -> Result<Raw<'_>, sqlx::Error> {
        self.exchange.raw().await.map_err(to_sqlx)
    }

    /// A query begins.
    fn telling(&self, text: &str) -> RawTelling {
        let (label, span) = self.exchange.told();
        RawTelling::new(self.exchange.core().voice(label), span, text)
    }
}

impl<'c> Executor<'c> for &'c mut Transaction {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Step>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        let begun = async move {
            let query = Sound::new(query)?;
            let telling = self.telling(query.sql.as_str());
            let raw = self.raw().await?;
            Ok::<_, sqlx::Error>(Steps {
                telling,
                steps: raw.connection.fetch_many(query),
                unfinished: raw.unfinished,
                failed: raw.failed,
                authorizer: raw.authorizer,
            })
        };
        stream::once(begun).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<SqliteRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        Box::pin(async move {
            let query = Sound::new(query)?;
            let mut telling = self.telling(query.sql.as_str());
            let raw = self.raw().await?;
            let row = raw
                .connection
                .fetch_optional(query)
                .await
                .inspect_err(|error| telling.failed(error))
                .map_err(|error| failed(error, raw.failed, &raw.authorizer))?;
            if row.is_some() {
                telling.row();
            }
            *raw.unfinished = false;
            Ok(row)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &[SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        let parameters = parameters.to_vec();
        Box::pin(async move {
            refuse_nul(sql.as_str()).map_err(to_sqlx)?;
            let raw = self.raw().await?;
            let statement = raw
                .connection
                .prepare_with(sql, &parameters)
                .await
                .map_err(|error| failed(error, raw.failed, &raw.authorizer))?;
            *raw.unfinished = false;
            Ok(statement)
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Sqlite>, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            refuse_nul(sql.as_str()).map_err(to_sqlx)?;
            let raw = self.raw().await?;
            let described = raw
                .connection
                .describe(sql)
                .await
                .map_err(|error| failed(error, raw.failed, &raw.authorizer))?;
            *raw.unfinished = false;
            Ok(described)
        })
    }
}

/// A query whose text sqlx's worker comes to the end of.
struct Sound {
    sql: SqlStr,
    arguments: Option<SqliteArguments>,
    persistent: bool,
}

impl Sound {
    fn new<'q>(mut query: impl Execute<'q, Sqlite>) -> Result<Self, sqlx::Error> {
        let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?;
        let persistent = query.persistent();
        let sql = query.sql();
        refuse_nul(sql.as_str()).map_err(to_sqlx)?;
        Ok(Self {
            sql,
            arguments,
            persistent,
        })
    }
}

impl Execute<'_, Sqlite> for Sound {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&SqliteStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<SqliteArguments>, BoxDynError> {
        Ok(self.arguments.take())
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}

/// SQLite takes a NUL for the end of a text; sqlx would go on asking it for what follows, for ever.
pub(in crate::engine) fn refuse_nul(sql: &str) -> Result<(), Error> {
    if sql.contains('\0') {
        return Err(Error::new(
            ErrorKind::Refused,
            "a text of SQL with a NUL character in it does not run: bind values as arguments",
        ));
    }
    Ok(())
}

/// The steps of a raw query; remembers whether it came to its end.
struct Steps<'e> {
    telling: RawTelling,
    steps: BoxStream<'e, Step>,
    unfinished: &'e mut bool,
    /// A step failed: the stream ends all the same, and what it left of the transaction is to be asked.
    failed: &'e mut bool,
    authorizer: Arc<Authorizer>,
}

impl stream::Stream for Steps<'_> {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Step>> {
        let step = std::task::ready!(self.steps.poll_next_unpin(context));
        match &step {
            None if !*self.failed => *self.unfinished = false,
            Some(Err(error)) => {
                self.telling.failed(error);
                *self.failed = true;
            }
            Some(Ok(Either::Right(_))) => self.telling.row(),
            _ => {}
        }
        Poll::Ready(step.map(|step| step.map_err(|error| explain(error, &self.authorizer))))
    }
}

/// The error of a query that is over with it.
fn failed(error: sqlx::Error, failed: &mut bool, authorizer: &Authorizer) -> sqlx::Error {
    *failed = true;
    explain(error, authorizer)
}

/// Says why a statement was denied, where SQLite only says "not authorized".
pub(in crate::engine) fn explain(error: sqlx::Error, authorizer: &Authorizer) -> sqlx::Error {
    match authorizer.take_denied() {
        Some(reason) => sqlx::Error::Database(Box::new(Denied(reason))),
        None => error,
    }
}

/// An error of ours on its way through sqlx; `?` makes it the same again.
pub(in crate::engine) fn to_sqlx(error: Error) -> sqlx::Error {
    sqlx::Error::Configuration(Box::new(error))
}

/// A statement that the library refuses.
#[derive(Debug)]
struct Denied(&'static str);

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Denied {}

impl DatabaseError for Denied {
    fn message(&self) -> &str {
        self.0
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(libsqlite3_sys::SQLITE_AUTH.to_string().into())
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> SqlxErrorKind {
        SqlxErrorKind::Other
    }
}
