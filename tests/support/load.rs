//! What the tests under load write: orders with lines, of which a half saved one shows.

use std::path::Path;

use anabranch::{context::Context, engine::Session, error::Result, prelude::*};
use rusqlite::Connection;

/// An order; `lines` says how many lines it has.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders")]
pub struct Order {
    /// Given by the writer.
    #[entity(id)]
    pub id: i64,
    /// Who saved it.
    pub task: i64,
    /// Which of that task's it is.
    #[entity(index)]
    pub serial: i64,
    /// How many lines it has.
    pub lines: i64,
    /// Kept by the library.
    #[entity(version)]
    pub version: i64,
    /// Stamped by the writer.
    #[entity(commit_seq)]
    pub seq: CommitSeq,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "lines")]
pub struct Line {
    /// Given by the writer.
    #[entity(id)]
    pub id: i64,
    /// Whose line it is.
    #[entity(references = Order, index)]
    pub order_id: i64,
    /// Which line of the order it is.
    pub position: i64,
}

/// Adds an order with its lines to a context.
pub fn add_order(ctx: &mut Context<'_>, task: i64, serial: i64, lines: i64) -> Tracked<Order> {
    let order = ctx.add(Order {
        id: 0,
        task,
        serial,
        lines,
        version: 0,
        seq: CommitSeq(0),
    });
    for position in 0..lines {
        let order_id = ctx[order].id;
        ctx.add(Line {
            id: 0,
            order_id,
            position,
        });
    }
    order
}

/// The token with which an order is saved, where it is saved with one.
#[must_use]
pub fn token(task: i64, serial: i64) -> SaveToken {
    SaveToken::from_text(&format!("order {task} {serial}")).expect("a short text")
}

/// Adds one line to an order that is there, and counts it.
pub fn add_line(ctx: &mut Context<'_>, order: Tracked<Order>) {
    let (order_id, position) = (ctx[order].id, ctx[order].lines);
    ctx[order].lines += 1;
    ctx.add(Line {
        id: 0,
        order_id,
        position,
    });
}

/// Saves an order in an exclusive transaction, in several steps and by three ways in; returns its key.
///
/// # Errors
///
/// Those of the writer.
pub async fn write_order(db: &Database, task: i64, serial: i64) -> Result<i64> {
    db.write(async |tx| {
        let mut ctx = tx.context();
        let order = add_order(&mut ctx, task, serial, 1);
        ctx.save_changes_with(&token(task, serial)).await?;
        let id = ctx[order].id;
        drop(ctx);
        sqlx::query("INSERT INTO lines (order_id, position) VALUES (?, 1)")
            .bind(id)
            .execute(&mut *tx)
            .await?;
        sqlx::query("UPDATE orders SET lines = 2 WHERE id = ?")
            .bind(id)
            .execute(&mut *tx)
            .await?;
        tx.savepoint(async |tx| {
            let mut ctx = tx.context();
            let order = ctx.find::<Order>(id).await?;
            add_line(&mut ctx, order.ok_or_else(|| missing(id))?);
            ctx.save_changes().await.map(drop)
        })
        .await?;
        Ok(id)
    })
    .await
}

/// Saves an order with a token, and two more lines, in a session that may be committed then; returns its key.
///
/// # Errors
///
/// Those of the statements.
pub async fn write_in_session(s: &mut Session, task: i64, serial: i64) -> Result<i64> {
    let mut ctx = s.context();
    let order = add_order(&mut ctx, task, serial, 1);
    ctx.save_changes_with(&token(task, serial)).await?;
    let id = ctx[order].id;
    drop(ctx);
    add_lines_in_session(s, id).await?;
    Ok(id)
}

/// Adds a second line to an order by raw queries, and a third in a savepoint after one that is undone.
///
/// # Errors
///
/// Those of the statements.
pub async fn add_lines_in_session(s: &mut Session, id: i64) -> Result<()> {
    sqlx::query("INSERT INTO lines VALUES (next_id('lines'), ?, 1)")
        .bind(id)
        .execute(&mut *s)
        .await?;
    sqlx::query("UPDATE orders SET lines = 2 WHERE id = ?")
        .bind(id)
        .execute(&mut *s)
        .await?;
    let undone = s.savepoint(async |s| {
        sqlx::query("DELETE FROM lines WHERE order_id = ?")
            .bind(id)
            .execute(&mut *s)
            .await?;
        Err::<(), _>(Error::application("it is undone"))
    });
    match undone.await {
        Err(error) if error.kind() == ErrorKind::Application => {}
        other => return other,
    }
    s.savepoint(async |s| {
        let mut ctx = s.context();
        let order = ctx.find::<Order>(id).await?;
        add_line(&mut ctx, order.ok_or_else(|| missing(id))?);
        ctx.save_changes().await.map(drop)
    })
    .await
}

fn missing(id: i64) -> Error {
    Error::application(format!("order {id} is missing"))
}

/// Orders of this task, or of one beyond it, were written in sessions that were given up: they must never be found.
pub const GIVEN_UP: i64 = 1_000;

/// How many lines an order has that was written in a session.
pub const SESSION_LINES: i64 = 3;

/// An order as plain SQLite finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub id: i64,
    /// Who saved it.
    pub task: i64,
    /// Which of that task's it is.
    pub serial: i64,
    /// How many lines it has.
    pub lines: i64,
    /// Its commit number.
    pub seq: i64,
}

/// Opens a file without the library, as the `sqlite3` shell would.
///
/// # Errors
///
/// Those of SQLite.
pub fn plainly(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    Ok(connection)
}

/// All orders, in the order of their keys, after checking that the file is sound and no order is half saved.
///
/// # Panics
///
/// When it is not sound, or one is.
#[must_use]
pub fn check_file(connection: &Connection) -> Vec<Found> {
    read_checked(connection).expect("plain SQLite reads the file")
}

fn read_checked(connection: &Connection) -> rusqlite::Result<Vec<Found>> {
    let text = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    assert_eq!(text("PRAGMA integrity_check")?, "ok");
    let violations = connection
        .prepare("PRAGMA foreign_key_check")?
        .query_map([], |_| Ok(()))?
        .count();
    assert_eq!(violations, 0, "references that point at no row");
    let mut halves = connection.prepare(
        "SELECT id FROM orders
         WHERE lines <> (SELECT count(*) FROM lines WHERE order_id = orders.id)
            OR lines <> (SELECT count(DISTINCT position) FROM lines WHERE order_id = orders.id)",
    )?;
    let halves = halves
        .query_map([], |row| row.get::<_, i64>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    assert!(halves.is_empty(), "half saved: {halves:?}");
    let mut twice = connection
        .prepare("SELECT task, serial FROM orders GROUP BY task, serial HAVING count(*) > 1")?;
    let twice = twice
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    assert!(twice.is_empty(), "saved twice: {twice:?}");
    connection
        .prepare("SELECT id, task, serial, lines, seq FROM orders ORDER BY id")?
        .query_map([], |row| {
            Ok(Found {
                id: row.get(0)?,
                task: row.get(1)?,
                serial: row.get(2)?,
                lines: row.get(3)?,
                seq: row.get(4)?,
            })
        })?
        .collect()
}
