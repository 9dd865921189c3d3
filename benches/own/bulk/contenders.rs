//! Who imports, and how: in transactions of a thousand rows, all with the same options.

use std::{path::Path, time::Duration};

use anabranch::prelude::*;
use rusqlite::Connection;
use sqlx::{
    AssertSqlSafe, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use workload::Result;

use crate::bulk::rows::{Row, builder, insert};

/// How many rows a transaction has.
const CHUNK: usize = 1_000;
/// How many rows a statement has that inserts several; values beyond a thousand make it no faster.
const SEVERAL: usize = 50;
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const CACHE_KIB: u64 = 16 * 1024;

/// Who imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bulk) enum Who {
    Optimized,
    Exclusive,
    /// A context saves a thousand entities.
    Context,
    Sqlx,
    SqlxSeveral,
    Rusqlite,
    RusqliteSeveral,
}

impl Who {
    pub(in crate::bulk) const ALL: [Self; 7] = [
        Self::Optimized,
        Self::Exclusive,
        Self::Context,
        Self::Sqlx,
        Self::SqlxSeveral,
        Self::Rusqlite,
        Self::RusqliteSeveral,
    ];

    pub(in crate::bulk) const fn name(self) -> &'static str {
        match self {
            Self::Optimized => "anabranch",
            Self::Exclusive => "anabranch, exclusive",
            Self::Context => "anabranch, contexts",
            Self::Sqlx => "sqlx, row by row",
            Self::SqlxSeveral => "sqlx, 50 rows each",
            Self::Rusqlite => "rusqlite, row by row",
            Self::RusqliteSeveral => "rusqlite, 50 rows each",
        }
    }

    /// Imports the rows, and closes the file.
    pub(in crate::bulk) async fn import<R: Row>(
        self,
        path: &Path,
        rows: Vec<R>,
    ) -> Result<Duration> {
        match self {
            Self::Optimized | Self::Exclusive | Self::Context => self.by_library(path, rows).await,
            Self::Sqlx | Self::SqlxSeveral => self.by_sqlx(path, rows).await,
            Self::Rusqlite | Self::RusqliteSeveral => {
                let path = path.to_owned();
                tokio::task::spawn_blocking(move || self.by_rusqlite(&path, &rows)).await?
            }
        }
    }

    async fn by_library<R: Row>(self, path: &Path, mut rows: Vec<R>) -> Result<Duration> {
        let db = Database::builder(path)
            .busy_timeout(BUSY_TIMEOUT)
            .cache_size(Bytes::kib(CACHE_KIB))
            .open()
            .await?;
        let began = std::time::Instant::now();
        match self {
            Self::Optimized => drop(db.bulk_insert_optimized(rows).await?),
            Self::Exclusive => drop(db.bulk_insert().exclusive().run(rows).await?),
            _ => {
                while !rows.is_empty() {
                    let mut ctx = db.context();
                    for row in rows.drain(..CHUNK.min(rows.len())) {
                        ctx.add(row);
                    }
                    ctx.save_changes().await?;
                }
            }
        }
        let took = began.elapsed();
        db.close().await?;
        Ok(took)
    }

    async fn by_sqlx<R: Row>(self, path: &Path, mut rows: Vec<R>) -> Result<Duration> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("cache_size", format!("-{CACHE_KIB}"));
        let pool: SqlitePool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await?;
        let one = insert::<R>(1);
        let began = std::time::Instant::now();
        while !rows.is_empty() {
            let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
            let mut chunk = rows.drain(..CHUNK.min(rows.len())).peekable();
            while chunk.peek().is_some() {
                if self == Self::Sqlx {
                    for row in chunk.by_ref() {
                        row.bind(sqlx::query(AssertSqlSafe(&*one)))
                            .execute(&mut *tx)
                            .await?;
                    }
                } else {
                    let mut builder = builder::<R>();
                    builder.push_values(chunk.by_ref().take(SEVERAL), |mut values, row| {
                        row.push(&mut values);
                    });
                    builder.build().execute(&mut *tx).await?;
                }
            }
            drop(chunk);
            tx.commit().await?;
        }
        let took = began.elapsed();
        pool.close().await;
        Ok(took)
    }

    fn by_rusqlite<R: Row>(self, path: &Path, rows: &[R]) -> Result<Duration> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "cache_size", -i64::try_from(CACHE_KIB)?)?;
        let at_once = if self == Self::Rusqlite { 1 } else { SEVERAL };
        let sql = insert::<R>(at_once);
        let began = std::time::Instant::now();
        for chunk in rows.chunks(CHUNK) {
            let tx = connection.transaction()?;
            let mut statement = tx.prepare_cached(&sql)?;
            for rows in chunk.chunks(at_once) {
                let mut parameter = 0;
                for value in rows.iter().flat_map(R::values) {
                    parameter += 1;
                    statement.raw_bind_parameter(parameter, value)?;
                }
                statement.raw_execute()?;
            }
            drop(statement);
            tx.commit()?;
        }
        let took = began.elapsed();
        connection.close().map_err(|(_, error)| error)?;
        Ok(took)
    }
}
