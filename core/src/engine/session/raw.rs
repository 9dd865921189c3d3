//! `&mut *s` as sqlx's `Executor`: any SQL of the application, in this session.

use futures_core::{future::BoxFuture, stream::BoxStream};
use sqlx::{
    Either, Sqlite,
    sqlite::{SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo},
};
use sqlx_core::{
    describe::Describe,
    executor::{Execute, Executor},
    sql_str::SqlStr,
};

use crate::engine::session::{Session, Way};

impl<'c> Executor<'c> for &'c mut Session {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<SqliteQueryResult, SqliteRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        match &mut self.way {
            Way::Private(private) => private.steps(query),
            Way::Exclusive(transaction) => Executor::fetch_many(&mut **transaction, query),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<SqliteRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        match &mut self.way {
            Way::Private(private) => Box::pin(private.first(query)),
            Way::Exclusive(transaction) => Executor::fetch_optional(&mut **transaction, query),
        }
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
            match &mut self.way {
                Way::Private(private) => private.prepare(sql, &parameters).await,
                Way::Exclusive(transaction) => transaction.prepare_with(sql, &parameters).await,
            }
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Sqlite>, sqlx::Error>>
    where
        'c: 'e,
    {
        match &mut self.way {
            Way::Private(private) => Box::pin(private.describe(sql)),
            Way::Exclusive(transaction) => Executor::describe(&mut **transaction, sql),
        }
    }
}
