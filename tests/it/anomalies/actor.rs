//! The ways to run a step: raw SQL, entities, and another program.

use anabranch::prelude::*;
use rusqlite::params_from_iter;
use sqlx::{Row, Sqlite, SqliteExecutor, query::Query, sqlite::SqliteArguments};

use crate::anomalies::{
    catalogue::Op,
    oracle::{Seen, Table},
};

type Result<T> = anabranch::error::Result<T>;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "items")]
pub(crate) struct Item {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) value: i64,
}

/// How a session does what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access {
    Raw,
    Typed,
}

/// Who plays a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cast {
    /// A session, step by step.
    Session(Access),
    /// `db.write`, all at once when it commits.
    Write,
    /// A context of the database and its `save_changes`, likewise.
    Save,
    /// Another program, likewise.
    Process,
}

/// A step as SQL. What reads has two columns.
fn sql(op: Op) -> (&'static str, Vec<i64>) {
    match op {
        Op::Read(id) => ("SELECT id, value FROM items WHERE id = ?", vec![id]),
        Op::ReadAll => ("SELECT id, value FROM items ORDER BY id", vec![]),
        Op::ReadValue(value) => (
            "SELECT id, value FROM items WHERE value = ? ORDER BY id",
            vec![value],
        ),
        Op::ReadFrom(least) => (
            "SELECT id, value FROM items WHERE value >= ? ORDER BY id",
            vec![least],
        ),
        Op::Count => ("SELECT count(*), 0 FROM items", vec![]),
        Op::Set(id, value) => ("UPDATE items SET value = ? WHERE id = ?", vec![value, id]),
        Op::Add(id, more) => (
            "UPDATE items SET value = value + ? WHERE id = ?",
            vec![more, id],
        ),
        Op::AddAll(more) => ("UPDATE items SET value = value + ?", vec![more]),
        Op::Replace(from, to) => ("UPDATE items SET value = ? WHERE value = ?", vec![to, from]),
        Op::Delete(value) => ("DELETE FROM items WHERE value = ?", vec![value]),
        Op::Insert(id, value) => (
            "INSERT INTO items (id, value) VALUES (?, ?)",
            vec![id, value],
        ),
        Op::Commit | Op::Rollback => unreachable!("no statement"),
    }
}

/// Runs a step as raw SQL.
pub(crate) async fn raw<'c>(executor: impl SqliteExecutor<'c>, op: Op) -> Result<Seen> {
    let (text, args) = sql(op);
    let mut query: Query<'_, Sqlite, SqliteArguments> = sqlx::query(text);
    for arg in args {
        query = query.bind(arg);
    }
    if !text.starts_with("SELECT") {
        let done = query.execute(executor).await?;
        return Ok(Seen::Changed(done.rows_affected()));
    }
    let rows = query.fetch_all(executor).await?;
    Ok(Seen::Rows(
        rows.iter().map(|row| (row.get(0), row.get(1))).collect(),
    ))
}

/// Runs a step on entities, without the save.
pub(crate) async fn typed(db: &Database, ctx: &mut Context<'_>, op: Op) -> Result<Seen> {
    let query = Item::query().order_by([Item::ID.asc()]);
    let found = match op {
        Op::Read(id) | Op::Set(id, _) | Op::Add(id, _) => {
            ctx.find::<Item>(id).await?.into_iter().collect()
        }
        Op::ReadAll | Op::AddAll(_) => query.load(ctx).await?,
        Op::ReadValue(value) | Op::Replace(value, _) | Op::Delete(value) => {
            query.filter(Item::VALUE.eq(value)).load(ctx).await?
        }
        Op::ReadFrom(least) => query.filter(Item::VALUE.ge(least)).load(ctx).await?,
        Op::Count => {
            let count = match ctx.session() {
                Some(session) => query.count(session).await?,
                None => query.count(db).await?,
            };
            return Ok(Seen::Rows(vec![(i64::try_from(count).unwrap(), 0)]));
        }
        Op::Insert(id, value) => {
            ctx.add(Item { id, value });
            return Ok(Seen::Changed(1));
        }
        Op::Commit | Op::Rollback => unreachable!("no statement"),
    };
    let count = found.len() as u64;
    for handle in &found {
        match op {
            Op::Set(_, to) | Op::Replace(_, to) => ctx[*handle].value = to,
            Op::Add(_, more) | Op::AddAll(more) => ctx[*handle].value += more,
            Op::Delete(_) => assert!(ctx.remove(*handle)),
            _ => {
                let rows = found.iter().map(|row| (ctx[*row].id, ctx[*row].value));
                return Ok(Seen::Rows(rows.collect()));
            }
        }
    }
    Ok(match op {
        Op::Read(_) | Op::ReadAll | Op::ReadValue(_) | Op::ReadFrom(_) => Seen::Rows(Vec::new()),
        _ => Seen::Changed(count),
    })
}

/// Runs a step in another program.
pub(crate) fn outside(connection: &rusqlite::Connection, op: Op) -> rusqlite::Result<Seen> {
    let (text, args) = sql(op);
    let mut statement = connection.prepare(text)?;
    if !text.starts_with("SELECT") {
        return Ok(Seen::Changed(
            statement.execute(params_from_iter(args))? as u64
        ));
    }
    let rows = statement.query_map(params_from_iter(args), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Seen::Rows(rows.collect::<rusqlite::Result<_>>()?))
}

/// All rows as they are.
pub(crate) fn table(connection: &rusqlite::Connection) -> Table {
    match outside(connection, Op::ReadAll).unwrap() {
        Seen::Rows(rows) => rows.into_iter().collect(),
        Seen::Changed(_) => unreachable!("it reads"),
    }
}
