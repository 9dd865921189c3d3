//! A raw query in a session that runs beside others: checked, its arguments read, run by sqlx, and recorded.
//!
//! sqlx keeps the values of arguments to itself, so a copy of them is sent through `SELECT ?1, ...`, which answers with
//! what SQLite was given.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use rusqlite::{Batch, Connection, fallible_iterator::FallibleIterator};
use sqlx::{
    Column as _, Either, Row as _, Sqlite, SqliteConnection, TypeInfo as _, ValueRef as _,
    sqlite::{SqliteArguments, SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo},
};
use sqlx_core::{
    arguments::Arguments,
    decode::Decode,
    describe::Describe,
    executor::{Execute, Executor},
    sql_str::{AssertSqlSafe, SqlSafeStr, SqlStr},
    value::Value as _,
};

use crate::{
    engine::{
        exchange::Raw,
        hooks::Authorizer,
        narrator::RawTelling,
        recording::{Event, Query},
        seen::{Effect, End, Observer},
        session::private::{Log, Private},
        sessions::Checked,
        transaction::{explain, refuse_nul, to_sqlx},
    },
    error::{Error, ErrorKind},
    value::{Value, ValueRef},
};

type Step = Result<Either<SqliteQueryResult, SqliteRow>, sqlx::Error>;

/// A query that was checked, and what its record needs.
struct Begun<'e> {
    raw: Raw<'e>,
    log: &'e mut Log,
    sql: SqlStr,
    arguments: Option<SqliteArguments>,
    record: Record,
}

/// The record of a query under way.
struct Record {
    telling: RawTelling,
    checked: Checked,
    args: Vec<Value>,
    observer: Observer,
    began: Instant,
}

impl Private {
    /// Runs a query; its steps are recorded as they are seen.
    pub(super) fn steps<'e, 'q: 'e, E>(&'e mut self, query: E) -> BoxStream<'e, Step>
    where
        E: 'q + Execute<'q, Sqlite>,
    {
        let begun = async move {
            let begun = self.begin_query(query).await?;
            let Begun {
                raw,
                log,
                sql,
                arguments,
                record,
            } = begun;
            Ok::<_, sqlx::Error>(Steps {
                steps: raw.connection.fetch_many((sql, arguments)),
                unfinished: raw.unfinished,
                failed: raw.failed,
                authorizer: raw.authorizer,
                log,
                record: Some(record),
                result: None,
            })
        };
        stream::once(begun)
            .flat_map(|begun| match begun {
                Ok(steps) => steps.left_stream(),
                Err(error) => stream::iter([Err(error)]).right_stream(),
            })
            .boxed()
    }

    /// Runs a query for its first row.
    pub(super) async fn first<'q, E>(&mut self, query: E) -> Result<Option<SqliteRow>, sqlx::Error>
    where
        E: 'q + Execute<'q, Sqlite>,
    {
        let Begun {
            raw,
            log,
            sql,
            arguments,
            mut record,
        } = self.begin_query(query).await?;
        let row = raw.connection.fetch_optional((sql, arguments)).await;
        let end = match &row {
            Ok(Some(row)) => {
                record.see(row)?;
                End::Partly
            }
            Ok(None) => End::Done,
            Err(_) if !record.checked.is_taken && raw.authorizer.has_denied() => {
                log.refused_raw();
                return row.map_err(|error| explain(error, &raw.authorizer));
            }
            Err(error) => match record.failed(error) {
                Some(end) => end,
                None => return row.map_err(|error| explain(error, &raw.authorizer)),
            },
        };
        *raw.unfinished = row.is_err();
        *raw.failed = row.is_err();
        log.end(record, end, None)?;
        row.map_err(|error| explain(error, &raw.authorizer))
    }

    /// What sqlx finds out of a text. The schema is as it is in the snapshot; no row is seen.
    pub(super) async fn prepare(
        &mut self,
        sql: SqlStr,
        parameters: &[SqliteTypeInfo],
    ) -> Result<SqliteStatement, sqlx::Error> {
        refuse_nul(sql.as_str()).map_err(to_sqlx)?;
        let raw = self.exchange.raw().await.map_err(to_sqlx)?;
        let prepared = raw.connection.prepare_with(sql, parameters).await;
        *raw.unfinished = prepared.is_err();
        *raw.failed = prepared.is_err();
        prepared.map_err(|error| explain(error, &raw.authorizer))
    }

    /// The same, in sqlx's other form.
    pub(super) async fn describe(&mut self, sql: SqlStr) -> Result<Describe<Sqlite>, sqlx::Error> {
        refuse_nul(sql.as_str()).map_err(to_sqlx)?;
        let raw = self.exchange.raw().await.map_err(to_sqlx)?;
        let described = raw.connection.describe(sql).await;
        *raw.unfinished = described.is_err();
        *raw.failed = described.is_err();
        described.map_err(|error| explain(error, &raw.authorizer))
    }

    /// Checks a query and reads its arguments.
    async fn begin_query<'q, E>(&mut self, mut query: E) -> Result<Begun<'_>, sqlx::Error>
    where
        E: 'q + Execute<'q, Sqlite>,
    {
        self.go_on().await.map_err(to_sqlx)?;
        let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?;
        let sql = query.sql();
        let checked = self.checked(sql.as_str()).await.map_err(to_sqlx)?;
        let (label, span) = self.exchange.told();
        let voice = self.exchange.core().voice(label);
        let telling = RawTelling::new(voice, span, sql.as_str());
        let raw = self.exchange.raw().await.map_err(to_sqlx)?;
        let args = match &arguments {
            Some(arguments) if !checked.parameters.is_empty() => {
                read_arguments(raw.connection, arguments, &checked.parameters).await?
            }
            _ => Vec::new(),
        };
        self.log.begin_raw();
        Ok(Begun {
            raw,
            log: &mut self.log,
            sql,
            arguments,
            record: Record {
                telling,
                checked,
                args,
                observer: Observer::new(),
                began: Instant::now(),
            },
        })
    }

    /// Looks at a text: it is one statement, and it writes or does not.
    async fn checked(&mut self, sql: &str) -> Result<Checked, Error> {
        if let Some(known) = self.exchange.held()?.checked(sql) {
            return Ok(known);
        }
        let text: Arc<str> = sql.into();
        let work = move |connection: &Connection| check(connection, &text);
        let checked = self.exchange.with(work).await??;
        if let Some(known) = &checked.known {
            self.exchange.held()?.remember(known);
        }
        Ok(checked.checked)
    }
}

/// What a look at a text found.
struct Found {
    checked: Checked,
    /// The same, unless SQLite did not take the text; the next time it may.
    known: Option<Checked>,
}

fn check(connection: &Connection, text: &Arc<str>) -> Result<Found, Error> {
    refuse_nul(text)?;
    // The authorizer is not asked about it.
    let word = text.trim_start().get(..6).unwrap_or_default();
    if word.eq_ignore_ascii_case("vacuum") {
        return Err(Error::new(
            ErrorKind::Refused,
            "VACUUM does not run inside of a transaction: use vacuum() of the database",
        ));
    }
    let mut statements = Batch::new(connection, text);
    let checked = match statements.next() {
        Ok(Some(statement)) => Checked {
            text: Arc::clone(text),
            is_taken: true,
            reads_only: statement.readonly() && begins_like_a_read(text),
            parameters: (1..=statement.parameter_count())
                .scan(0, |asked, index| {
                    Some(argument(statement.parameter_name(index), asked))
                })
                .collect(),
        },
        // Nothing to run, or nothing that SQLite takes: running it says so.
        Ok(None) | Err(_) => {
            return Ok(Found {
                checked: Checked {
                    text: Arc::clone(text),
                    is_taken: false,
                    reads_only: true,
                    parameters: Arc::default(),
                },
                known: None,
            });
        }
    };
    // An error is a second statement, too.
    if !matches!(statements.next(), Ok(None)) {
        return Err(Error::new(
            ErrorKind::Refused,
            "a text of several statements does not run in a session: send one statement at a time",
        )
        .with_statement(text.to_string()));
    }
    Ok(Found {
        known: Some(checked.clone()),
        checked,
    })
}

/// Whether the first word is one that only reads. `DROP TABLE IF EXISTS` of a table that is not there, for one, is
/// read-only to SQLite, and not any more once there is one.
fn begins_like_a_read(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let after = match rest.strip_prefix("--") {
            Some(comment) => comment.split_once('\n'),
            None => match rest.strip_prefix("/*") {
                Some(comment) => comment.split_once("*/"),
                None => break,
            },
        };
        rest = after.map_or("", |(_, after)| after).trim_start();
    }
    let word = rest
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .next();
    ["select", "values", "with", "explain", "pragma"]
        .iter()
        .any(|reads| word.is_some_and(|word| word.eq_ignore_ascii_case(reads)))
}

/// Which argument a parameter takes, as sqlx has it: `?` the next one, `?3` and `$3` the third.
fn argument(name: Option<&str>, asked: &mut usize) -> usize {
    match name {
        Some(name) => name[1..].parse().unwrap_or(0),
        None => {
            *asked += 1;
            *asked
        }
    }
}

/// More columns than this a result does not have, where SQLite is built as it is by default.
const MOST_COLUMNS: usize = 2000;

/// The values that the parameters are bound to.
async fn read_arguments(
    connection: &mut SqliteConnection,
    arguments: &SqliteArguments,
    parameters: &[usize],
) -> Result<Vec<Value>, sqlx::Error> {
    let count = arguments.len();
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut rows = Vec::with_capacity(count.div_ceil(MOST_COLUMNS));
    for first in (1..=count).step_by(MOST_COLUMNS) {
        let last = count.min(first + MOST_COLUMNS - 1);
        let echo = (first..=last).map(|index| format!("?{index}"));
        let echo = format!("SELECT {}", echo.collect::<Vec<_>>().join(", "));
        let echo = AssertSqlSafe(echo).into_sql_str();
        let row = connection
            .fetch_one((echo, Some(arguments.clone())))
            .await?;
        rows.push(row);
    }
    // What comes after a parameter without an argument is not bound either.
    let bound = parameters
        .iter()
        .take_while(|index| (1..=count).contains(*index));
    bound
        .map(|index| {
            owned(
                &rows[(index - 1) / MOST_COLUMNS],
                (index - 1) % MOST_COLUMNS,
            )
        })
        .collect()
}

fn owned(row: &SqliteRow, index: usize) -> Result<Value, sqlx::Error> {
    let value = with_value(row, index, |value| value.to_value())?;
    value.map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Shows a value of a row without leaving a trace on it: what was borrowed from a value of sqlx's restricts how it can
/// be read later.
fn with_value<T>(
    row: &SqliteRow,
    index: usize,
    look: impl FnOnce(ValueRef<'_>) -> T,
) -> Result<T, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(look(ValueRef::Null));
    }
    let copy = raw.to_owned();
    let kind = copy.type_info();
    let decoded = match kind.name() {
        "INTEGER" | "BOOLEAN" => <i64 as Decode<Sqlite>>::decode(copy.as_ref())
            .map(|value| look(ValueRef::Integer(value))),
        "REAL" => {
            <f64 as Decode<Sqlite>>::decode(copy.as_ref()).map(|value| look(ValueRef::Real(value)))
        }
        "TEXT" => <&[u8] as Decode<Sqlite>>::decode(copy.as_ref())
            .map(|value| look(ValueRef::Text(value))),
        _ => <&[u8] as Decode<Sqlite>>::decode(copy.as_ref())
            .map(|value| look(ValueRef::Blob(value))),
    };
    decoded.map_err(sqlx::Error::Decode)
}

impl Record {
    /// It failed; nothing if it was not SQLite that failed.
    fn failed(&mut self, error: &sqlx::Error) -> Option<End> {
        self.telling.failed(error);
        let failure = error.as_database_error()?;
        let code = failure.code()?.parse().ok()?;
        self.observer.message(failure.message());
        Some(End::Failed(code))
    }

    fn see(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        if self.observer.rows() == 0 {
            for column in row.columns() {
                self.observer.name(column.name());
            }
        }
        self.telling.row();
        self.observer.begin_row(row.len());
        for index in 0..row.len() {
            with_value(row, index, |value| self.observer.value(value))?;
        }
        Ok(())
    }
}

impl Log {
    /// A raw query has ended: what was seen of it is noted.
    fn end(&mut self, record: Record, end: End, effect: Option<Effect>) -> Result<(), sqlx::Error> {
        let Record {
            checked,
            args,
            observer,
            began,
            telling: _,
        } = record;
        let effect = effect.filter(|_| !checked.reads_only);
        if !checked.reads_only {
            self.recording.writes = true;
            if effect.is_none() {
                self.wants_effect();
            }
        }
        let seen = observer.end(end, effect);
        let query = Query {
            text: checked.text,
            args,
            given: self.instruments.given(),
            reads_only: checked.reads_only,
            is_raw: true,
            seen,
            entity: None,
        };
        let cost: Duration = began.elapsed();
        // How much memory the pages take is asked when the worker is idle.
        self.note(Event::Query(query), cost, 0).map_err(to_sqlx)
    }
}

/// The steps of a raw query, recorded as they are seen.
struct Steps<'e> {
    steps: BoxStream<'e, Step>,
    unfinished: &'e mut bool,
    failed: &'e mut bool,
    authorizer: Arc<Authorizer>,
    log: &'e mut Log,
    /// Taken out when it has ended.
    record: Option<Record>,
    /// How many rows it changed, and which rowid was inserted last.
    result: Option<(u64, i64)>,
}

impl Steps<'_> {
    /// Notes the step; what is seen of the query ends with an error, and with `None`.
    fn note(&mut self, step: Option<&Step>) -> Result<(), sqlx::Error> {
        let Some(mut record) = self.record.take() else {
            return Ok(());
        };
        let end = match step {
            Some(Ok(Either::Right(row))) => {
                record.see(row)?;
                self.record = Some(record);
                return Ok(());
            }
            Some(Ok(Either::Left(result))) => {
                self.result = Some((result.rows_affected(), result.last_insert_rowid()));
                self.record = Some(record);
                return Ok(());
            }
            Some(Err(_)) if !record.checked.is_taken && self.authorizer.has_denied() => {
                self.log.refused_raw();
                return Ok(());
            }
            Some(Err(error)) => match record.failed(error) {
                Some(end) => end,
                // Not SQLite's: whatever it is, the transaction is asked about it before anything else.
                None => return Ok(()),
            },
            None => {
                *self.unfinished = false;
                End::Done
            }
        };
        let effect = self.result.map(|(changes, rowid)| Effect {
            changes: Some(changes),
            rowid,
        });
        let effect = effect.filter(|_| end == End::Done);
        self.log.end(record, end, effect)
    }
}

impl stream::Stream for Steps<'_> {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Step>> {
        let step = std::task::ready!(self.steps.poll_next_unpin(context));
        *self.failed |= matches!(step, Some(Err(_)));
        if let Err(error) = self.note(step.as_ref()) {
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Ready(step.map(|step| step.map_err(|error| explain(error, &self.authorizer))))
    }
}

impl Drop for Steps<'_> {
    /// Of a query that only reads, what was seen so far counts. One that may write is not known to have done all of it:
    /// the session cannot be committed any more.
    fn drop(&mut self) {
        if let Some(record) = self.record.take()
            && record.checked.reads_only
            && let Err(error) = self.log.end(record, End::Partly, None)
        {
            tracing::debug!(error = %Error::from(error).in_log(), "after a query that was dropped half-way");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::session::recorded::begins_like_a_read;

    #[test]
    fn the_first_word_tells_what_may_write() {
        for reads in [
            "SELECT 1",
            " /* a */ -- b\n with x AS (SELECT 1) SELECT 1",
            "pragma table_info(t)",
        ] {
            assert!(begins_like_a_read(reads), "{reads}");
        }
        for writes in [
            "DROP TABLE IF EXISTS t",
            "-- SELECT\nDELETE FROM t",
            "/* SELECT",
            "",
            "selection",
        ] {
            assert!(!begins_like_a_read(writes), "{writes}");
        }
    }
}
