//! What happens inside of a session: each kind of statement, each kind of trouble, and what others do meanwhile.

mod beside;
mod closures;
mod constraints;
mod definitions;
mod drops;
mod keys;
mod life;
mod own_values;
mod reads_together;
mod refused;
mod rows;
mod savepoints;
mod set_writes;
mod streams;
mod told;
mod validation;

use anabranch::{engine::SessionGuard, prelude::*};
use anabranch_tests::Mode;
use sqlx::SqliteExecutor;

type Result<T = ()> = anabranch::error::Result<T>;

/// The modes in which it matters where statements run.
const MODES: [Mode; 2] = [Mode::Inline, Mode::Threaded];

const LEVELS: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

/// A database in which these statements were run.
async fn with(mode: Mode, statements: &[&'static str]) -> Database {
    let db = mode.temporary().await;
    for sql in statements {
        anabranch_tests::execute(&db, sql).await;
    }
    db
}

/// A session that runs beside others.
async fn session(db: &Database) -> SessionGuard {
    session_of(db, Isolation::Serializable).await
}

async fn session_of(db: &Database, isolation: Isolation) -> SessionGuard {
    let session = db.begin_concurrent(isolation).await.unwrap();
    assert!(!session.is_exclusive(), "sessions run side by side");
    session
}

/// Runs a raw statement; how many rows it changed.
async fn run(executor: impl SqliteExecutor<'_>, sql: &'static str) -> Result<u64> {
    Ok(sqlx::query(sql).execute(executor).await?.rows_affected())
}

/// Reads one number by a raw statement.
async fn number(executor: impl SqliteExecutor<'_>, sql: &'static str) -> Result<i64> {
    Ok(sqlx::query_scalar(sql).fetch_one(executor).await?)
}

/// Reads one text by a raw statement.
async fn text(executor: impl SqliteExecutor<'_>, sql: &'static str) -> Result<String> {
    Ok(sqlx::query_scalar(sql).fetch_one(executor).await?)
}

/// Commits in another task, whatever the present one is in.
async fn elsewhere(db: &Database, sql: &'static str) {
    let db = db.clone();
    let task = tokio::spawn(async move { anabranch_tests::execute(&db, sql).await });
    task.await.unwrap();
}

/// What plain SQLite finds in the file, beside the library.
fn found(db: &Database, sql: &str) -> rusqlite::types::Value {
    anabranch_tests::outsider(db.path())
        .query_row(sql, [], |row| row.get(0))
        .unwrap()
}

fn found_number(db: &Database, sql: &str) -> i64 {
    match found(db, sql) {
        rusqlite::types::Value::Integer(number) => number,
        other => panic!("{sql}: {other:?}"),
    }
}

fn found_text(db: &Database, sql: &str) -> String {
    match found(db, sql) {
        rusqlite::types::Value::Text(text) => text,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Ends a session that has to conflict.
async fn conflict(session: SessionGuard) -> Error {
    let error = session.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.is_conflict());
    error
}

/// A session that can only be rolled back refuses what comes, and its commit, and harms nobody.
async fn is_only_rolled_back(db: &Database, mut session: SessionGuard) {
    let error = run(&mut *session, "CREATE TABLE too_late (a)").await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TransactionEnded);
    let error = session.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{error}");
    anabranch_tests::execute(db, "CREATE TABLE IF NOT EXISTS by_others (a)").await;
}
