//! A database in memory on which tests run what was rendered.

use std::{future::Future, sync::Mutex};

use futures_util::stream;
use rusqlite::{
    Connection, params_from_iter,
    types::{ToSqlOutput, ValueRef as SqliteRef},
};

use crate::{
    error::{Error, ErrorKind, Result},
    sql::{Cost, Executor, Read, ReadTogether, Reads, Rows, Statement},
    value::{Row, Value, ValueRef},
};

/// One connection, and what was read on it.
#[derive(Debug)]
pub(crate) struct Memory {
    connection: Mutex<Connection>,
    reads: Mutex<Vec<(String, Cost)>>,
}

struct Values(Vec<Value>);

impl Row for Values {
    fn width(&self) -> usize {
        self.0.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        self.0[..].value(index)
    }
}

impl Memory {
    pub(crate) fn with_schema(sql: &str) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(sql).unwrap();
        Self {
            connection: Mutex::new(connection),
            reads: Mutex::default(),
        }
    }

    pub(crate) fn run(&self, statement: &Statement) -> rusqlite::Result<Vec<Vec<Value>>> {
        let connection = self.connection.lock().unwrap();
        let mut prepared = connection.prepare(&statement.text)?;
        assert_eq!(prepared.parameter_count(), statement.args.len());
        let width = prepared.column_count();
        let args = statement.args.iter().map(|arg| match arg {
            Value::Null | Value::Unread => ToSqlOutput::Borrowed(SqliteRef::Null),
            Value::Integer(integer) => ToSqlOutput::from(*integer),
            Value::Real(real) => ToSqlOutput::from(*real),
            Value::Text(text) => ToSqlOutput::from(text.as_str()),
            Value::Blob(bytes) => ToSqlOutput::from(bytes.as_slice()),
        });
        let rows = prepared.query_map(params_from_iter(args), |row| {
            (0..width)
                .map(|index| row.get_ref(index).map(owned))
                .collect()
        })?;
        rows.collect()
    }

    pub(crate) fn insert(&self, sql: &str, args: Vec<Value>) {
        let rows = self.run(&Statement {
            text: sql.into(),
            args,
        });
        assert_eq!(rows, Ok(Vec::new()));
    }

    /// The texts and costs of all reads so far.
    pub(crate) fn reads(&self) -> Vec<(String, Cost)> {
        self.reads.lock().unwrap().clone()
    }

    fn items<T>(&self, read: &Read<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        self.each(&read.statement, read.cost, &mut |row| {
            items.push((read.decode)(row)?);
            Ok(())
        })?;
        Ok(items)
    }

    fn each(
        &self,
        statement: &Statement,
        cost: Cost,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        (self.reads.lock().unwrap()).push((statement.to_string(), cost));
        let rows = self.run(statement).map_err(|error| {
            Error::new(ErrorKind::Statement, error.to_string())
                .with_statement(statement.to_string())
        })?;
        rows.into_iter().try_for_each(|row| each(&Values(row)))
    }
}

/// Several reads; nobody else has the connection.
struct Together<'a>(&'a Memory, Cost);

impl Reads for Together<'_> {
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.0.each(statement, self.1, each)
    }
}

fn owned(value: SqliteRef<'_>) -> Value {
    match value {
        SqliteRef::Null => Value::Null,
        SqliteRef::Integer(integer) => Value::Integer(integer),
        SqliteRef::Real(real) => Value::Real(real),
        SqliteRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).unwrap()),
        SqliteRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

impl<'c> Executor<'c> for &'c Memory {
    fn read<T: Send + 'static>(self, read: Read<T>) -> impl Future<Output = Result<Vec<T>>> + Send {
        std::future::ready(self.items(&read))
    }

    fn read_together<T: Send + 'static>(
        self,
        reads: ReadTogether<T>,
    ) -> impl Future<Output = Result<T>> + Send {
        std::future::ready((reads.work)(&mut Together(self, reads.cost)))
    }

    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        match self.items(&read) {
            Ok(items) => Box::pin(stream::iter(items.into_iter().map(Ok))),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }
}
