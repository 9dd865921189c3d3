//! Applying one batch inside of an open transaction: keys, statements, checks.

use std::cell::OnceCell;

use rusqlite::{CachedStatement, Connection};

use crate::{
    engine::{
        connection::{Bound, PresentRow, execute},
        ffi::has_deferred_violations,
        hooks::Watch,
        key::next_key,
        narrator::Narrator,
        rowid::gives_keys,
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
    sql::{Arg, Batch, Cost, Expect, Mismatch, Receipt, Refusal, Statement, Step},
    value::{Row, Value},
};

/// Who gives the keys that a batch asks for.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum Keys<'a> {
    /// The writer, from what is in the tables.
    Writer(&'a Watch),
    /// The allocator gave them, to a session.
    Given(&'a [i64]),
}

/// More statements, or more bytes, than this do not run on a task.
const MOST_INLINE_STEPS: usize = 64;
const MOST_INLINE_BYTES: usize = 64 * 1024;

/// Whether applying a batch takes too long for a task, or may.
pub(in crate::engine) fn is_long(batch: &Batch) -> bool {
    let bytes = |arg: &Arg| match arg {
        Arg::Value(Value::Text(text)) => text.len(),
        Arg::Value(Value::Blob(bytes)) => bytes.len(),
        _ => 0,
    };
    // Of any number of rows there may be millions.
    let is_unbounded = |step: &Step| {
        let cost = match step.expect {
            Expect::Any { cost, .. } => cost,
            _ => Cost::Small,
        };
        cost == Cost::Any
    };
    batch.steps.len() > MOST_INLINE_STEPS
        || batch.steps.iter().any(is_unbounded)
        || batch
            .steps
            .iter()
            .flat_map(|step| &step.args)
            .map(bytes)
            .sum::<usize>()
            > MOST_INLINE_BYTES
}

/// Applies a batch. On an error the caller undoes it: with its savepoint, or the transaction.
pub(in crate::engine) fn apply(
    narrator: Narrator<'_>,
    connection: &Connection,
    keys: Keys<'_>,
    batch: &Batch,
) -> Result<Receipt, Refusal> {
    // Where raw SQL of the same transaction has them deferred they stay so: switched off, SQLite would forget what it
    // has yet to look at.
    let defers = batch.defer_foreign_keys && !are_deferred(connection)?;
    if defers {
        execute(connection, "PRAGMA defer_foreign_keys = ON")?;
    }
    let applied = run(narrator, connection, keys, batch);
    // State of the connection, not of the savepoint: it would reach into the next unit.
    if defers && !connection.is_autocommit() {
        let reset = execute(connection, "PRAGMA defer_foreign_keys = OFF");
        return applied.and_then(|receipt| reset.map(|()| receipt).map_err(Refusal::Whole));
    }
    applied
}

/// Whether foreign keys are looked at only at the end of the transaction.
pub(in crate::engine) fn are_deferred(connection: &Connection) -> Result<bool> {
    connection
        .prepare_cached("PRAGMA defer_foreign_keys")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(from_rusqlite)
}

fn run(
    narrator: Narrator<'_>,
    connection: &Connection,
    keys: Keys<'_>,
    batch: &Batch,
) -> Result<Receipt, Refusal> {
    if let Some((table, column)) = batch.unkeyed {
        is_keyed(connection, table, column)?;
    }
    let keys = keys.of(connection, batch)?;
    // Raw SQL of the same transaction may have left something to be mended by its end.
    let was_broken = has_deferred_violations(connection);
    let done = run_steps(narrator, connection, batch, &keys)?;
    // RELEASE would succeed, and COMMIT fail for the whole group.
    if !was_broken && has_deferred_violations(connection) {
        return Err(Refusal::Whole(Error::new(
            ErrorKind::ForeignKey,
            "at the end of the save a reference points at no row",
        )));
    }
    Ok(Receipt { keys, ..done })
}

/// SQLite gives a key to rows without one.
fn is_keyed(connection: &Connection, table: &'static str, column: &'static str) -> Result<()> {
    let named = |error: Error| error.with_table(table);
    if gives_keys(connection, table, column).map_err(|error| named(from_rusqlite(error)))? {
        return Ok(());
    }
    Err(named(Error::new(
        ErrorKind::Model,
        "the key of the table is no INTEGER PRIMARY KEY, so SQLite would give NULL to rows without one: name the column of the key too, and select a key for each row",
    ))
    .with_column(column))
}

impl Keys<'_> {
    fn of(self, connection: &Connection, batch: &Batch) -> Result<Vec<i64>> {
        match self {
            Keys::Writer(watch) => {
                if !batch.keys.is_empty() {
                    watch.forget_unheard_keys();
                }
                let keys = batch.keys.iter();
                keys.map(|key| next_key(connection, watch, *key)).collect()
            }
            Keys::Given(keys) => Ok(keys.to_vec()),
        }
    }
}

/// Runs all steps, and gives the rows that they returned, and how many they changed where that is asked for.
fn run_steps(
    narrator: Narrator<'_>,
    connection: &Connection,
    batch: &Batch,
    keys: &[i64],
) -> Result<Receipt, Refusal> {
    let mut mismatches = Vec::new();
    let mut done = Receipt::default();
    for (index, step) in batch.steps.iter().enumerate() {
        // Once the batch is lost, the other checked steps still tell which of their rows are lost as well.
        if !mismatches.is_empty() && matches!(step.expect, Expect::Inserted { .. }) {
            continue;
        }
        let before = connection.total_changes();
        let ran = run_step(narrator, connection, step, keys, |row| {
            done.computed.push((index, row))
        });
        match (ran, &step.expect) {
            (Ok(_), Expect::Any { .. }) => {
                // After one that only reads SQLite still tells of the one before it.
                let has_changed = connection.total_changes() != before;
                let changed = if has_changed { connection.changes() } else { 0 };
                done.changed.push((index, changed));
            }
            (Ok(1), _) => {}
            (Ok(_), Expect::Inserted { table }) => {
                was_inserted(connection, table)
                    .map_err(|error| Refusal::Step { step: index, error })?;
            }
            (
                Ok(_),
                Expect::OneRow {
                    table,
                    probe,
                    version,
                },
            ) => {
                let missed = missed(connection, table, probe, *version)
                    .map_err(|error| Refusal::Step { step: index, error })?;
                mismatches.extend(missed.map(|found| Mismatch { step: index, found }));
            }
            (Ok(_), Expect::Gone { probe }) => {
                let found = find(connection, probe)
                    .map_err(|error| Refusal::Step { step: index, error })?;
                if found.is_some() {
                    mismatches.push(Mismatch { step: index, found });
                }
            }
            (Err(_), _) if !mismatches.is_empty() && !connection.is_autocommit() => {}
            (Err(error), expect) => {
                let error = named(error, expect);
                return Err(Refusal::Step { step: index, error });
            }
        }
    }
    if mismatches.is_empty() {
        Ok(done)
    } else {
        Err(Refusal::Mismatches(mismatches))
    }
}

/// Where SQLite names no table, the one that was to be written. For entities the context names it.
pub(in crate::engine) fn named(error: Error, expect: &Expect) -> Error {
    match expect {
        Expect::Any {
            table: Some(table), ..
        } if error.table().is_none() => error.with_table(*table),
        _ => error,
    }
}

/// The rows of a lost batch as they are once it is undone: they were looked at inside of it, after a delete of its own
/// may have changed them by a reference or a trigger. One that went with such a delete stays gone: it would go again.
pub(in crate::engine) fn as_undone(
    connection: &Connection,
    batch: &Batch,
    refusal: Refusal,
) -> Refusal {
    let Refusal::Mismatches(mut mismatches) = refusal else {
        return refusal;
    };
    for mismatch in &mut mismatches {
        if let (Some(_), Expect::OneRow { probe, .. } | Expect::Gone { probe }) =
            (&mismatch.found, &batch.steps[mismatch.step].expect)
            && let Ok(found) = find(connection, probe)
        {
            mismatch.found = found;
        }
    }
    Refusal::Mismatches(mismatches)
}

/// SQLite inserted no row and gave no error: the triggers of a view may do anything with it, but a table should have
/// it now.
pub(in crate::engine) fn was_inserted(connection: &Connection, table: &'static str) -> Result<()> {
    if is_view(connection, table)? {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Constraint,
        "the row was not inserted: a trigger (RAISE(IGNORE)) or a constraint (ON CONFLICT IGNORE) passed over it",
    )
    .with_table(table))
}

/// SQLite changed no row and gave no error: what is there instead, or `None` if that is as it should be.
#[allow(
    clippy::option_option,
    reason = "three answers; the caller takes them apart at once"
)]
fn missed(
    connection: &Connection,
    table: &'static str,
    probe: &Statement,
    version: Option<(usize, i64)>,
) -> Result<Option<Option<Vec<Value>>>> {
    // Of what the triggers of a view do SQLite does not tell.
    if is_view(connection, table)? {
        return Ok(None);
    }
    let found = find(connection, probe)?;
    let is_expected = |row: &Vec<Value>| {
        version.is_none_or(|(column, version)| row[column] == Value::Integer(version))
    };
    if found.as_ref().is_some_and(is_expected) {
        return Err(not_changed(table));
    }
    Ok(Some(found))
}

/// SQLite changed no row and gave no error, and the row is there as it should be.
pub(in crate::engine) fn not_changed(table: &'static str) -> Error {
    Error::new(
        ErrorKind::Constraint,
        "the row is there and was not changed: a trigger (RAISE(IGNORE)) or a constraint (ON CONFLICT IGNORE) passed over it",
    )
    .with_table(table)
}

pub(in crate::engine) fn is_view(connection: &Connection, table: &str) -> Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ?1 COLLATE NOCASE)",
        )
        .and_then(|mut statement| statement.query_row([table], |row| row.get(0)))
        .map_err(from_rusqlite)
}

/// Runs a step, hands out the rows that it returns, and tells how many it changed or returned.
fn run_step(
    narrator: Narrator<'_>,
    connection: &Connection,
    step: &Step,
    keys: &[i64],
    returned: impl FnMut(Vec<Value>),
) -> Result<usize> {
    let telling = narrator.begin(&step.text);
    let ran = if step.returns {
        run_returning(connection, step, keys, returned)
    } else {
        run_changing(connection, step, keys)
    };
    let rows = ran.as_ref().map_or(0, |rows| *rows as u64);
    telling.end_with(rows, ran.as_ref().err().map(Error::kind));
    ran.map_err(|error| error.with_statement(step.text.to_string()))
}

/// Runs a step and returns how many rows it changed.
fn run_changing(connection: &Connection, step: &Step, keys: &[i64]) -> Result<usize> {
    let mut statement = connection
        .prepare_cached(&step.text)
        .map_err(from_rusqlite)?;
    bind_args(&mut statement, &step.args, keys)?;
    statement.raw_execute().map_err(from_rusqlite)
}

/// Runs a step that returns the rows it changed; none is handed out if it fails.
fn run_returning(
    connection: &Connection,
    step: &Step,
    keys: &[i64],
    returned: impl FnMut(Vec<Value>),
) -> Result<usize> {
    let mut statement = connection
        .prepare_cached(&step.text)
        .map_err(from_rusqlite)?;
    bind_args(&mut statement, &step.args, keys)?;
    let columns = column_names(&statement);
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(from_rusqlite)? {
        found.push(values(row, &columns)?);
    }
    let count = found.len();
    found.into_iter().for_each(returned);
    Ok(count)
}

fn bind_args(statement: &mut CachedStatement<'_>, args: &[Arg], keys: &[i64]) -> Result<()> {
    let (given, expected) = (args.len(), statement.parameter_count());
    if given != expected {
        return Err(from_rusqlite(rusqlite::Error::InvalidParameterCount(
            given, expected,
        )));
    }
    for (index, arg) in args.iter().enumerate() {
        match arg {
            Arg::Value(value) => statement.raw_bind_parameter(index + 1, Bound(value)),
            Arg::Key(position) => statement.raw_bind_parameter(index + 1, keys[*position]),
        }
        .map_err(from_rusqlite)?;
    }
    Ok(())
}

/// The row that a probe finds.
fn find(connection: &Connection, probe: &Statement) -> Result<Option<Vec<Value>>> {
    let mut statement = connection
        .prepare_cached(&probe.text)
        .map_err(from_rusqlite)?;
    crate::engine::connection::bind(&mut statement, probe.args.iter())?;
    let columns = column_names(&statement);
    let mut rows = statement.raw_query();
    match rows.next().map_err(from_rusqlite)? {
        Some(row) => values(row, &columns).map(Some),
        None => Ok(None),
    }
}

fn column_names(statement: &CachedStatement<'_>) -> Vec<String> {
    (statement.column_names().into_iter())
        .map(str::to_owned)
        .collect()
}

/// All values of a row.
fn values(row: &rusqlite::Row<'_>, columns: &[String]) -> Result<Vec<Value>> {
    let places = &OnceCell::new();
    let row = PresentRow { row, places };
    (columns.iter().enumerate())
        .map(|(index, column)| {
            (row.value(index).to_value()).map_err(|error| {
                Error::new(ErrorKind::Decode, error.to_string()).with_column(column.clone())
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusqlite::Connection;

    use crate::{
        engine::{
            apply::{Keys, apply, is_long},
            hooks::Watch,
            narrator::Narrator,
            slot::Label,
        },
        error::ErrorKind,
        observe::Counters,
        sql::{Arg, Batch, Cost, Expect, Refusal, Step},
        value::Value,
    };

    fn batch(cost: Cost, texts: &[&str]) -> Batch {
        let steps = texts.iter().map(|text| Step {
            text: (*text).into(),
            args: vec![Arg::Value(Value::Integer(1))],
            expect: Expect::Any {
                table: Some("t"),
                cost,
            },
            returns: text.contains("RETURNING") || text.starts_with("SELECT"),
        });
        Batch {
            steps: steps.collect(),
            ..Batch::default()
        }
    }

    fn narrator(counters: &Counters) -> Narrator<'_> {
        Narrator::new(counters, Duration::MAX, Label::new("a test"), true)
    }

    fn connection() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (a CHECK (a < 9)); INSERT INTO t VALUES (1), (2), (3)")
            .unwrap();
        connection
    }

    #[test]
    fn what_may_change_many_rows_does_not_run_on_a_task() {
        assert!(is_long(&batch(Cost::Any, &["UPDATE t SET a = ?1"])));
        assert!(!is_long(&batch(Cost::Small, &["UPDATE t SET a = ?1"])));
    }

    #[test]
    fn each_step_tells_what_it_changed_and_one_that_reads_nothing() {
        let texts = [
            "UPDATE t SET a = a + ?1",
            "SELECT a FROM t WHERE a > ?1",
            "UPDATE t SET a = 0 WHERE a > 100 * ?1",
            "DELETE FROM t WHERE a > ?1 + 2 RETURNING a",
        ];
        let receipt = apply(
            narrator(&Counters::default()),
            &connection(),
            Keys::Writer(&Watch::default()),
            &batch(Cost::Any, &texts),
        )
        .unwrap();
        assert_eq!(receipt.changed, [(0, 3), (1, 0), (2, 0), (3, 1)]);
        let computed = [(1, 2), (1, 3), (1, 4), (3, 4)];
        let computed = computed.map(|(step, a)| (step, vec![Value::Integer(a)]));
        assert_eq!(receipt.computed, computed);
    }

    #[test]
    fn an_error_names_the_table_that_sqlite_does_not() {
        let fails = batch(Cost::Any, &["UPDATE t SET a = 9 * ?1"]);
        let refusal = apply(
            narrator(&Counters::default()),
            &connection(),
            Keys::Writer(&Watch::default()),
            &fails,
        );
        let Err(Refusal::Step { step: 0, error }) = refusal else {
            panic!("{refusal:?}");
        };
        assert_eq!((error.kind(), error.table()), (ErrorKind::Check, Some("t")));
        assert_eq!(error.statement(), Some("UPDATE t SET a = 9 * ?1"));
    }
}
