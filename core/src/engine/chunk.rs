//! Applying a chunk of a bulk operation inside of an open transaction.

use std::cell::RefCell;

use rusqlite::{CachedStatement, Connection};

use crate::{
    engine::{
        apply::{is_view, not_changed, was_inserted},
        connection::{Bound, execute},
        ffi::has_deferred_violations,
        hooks::Watch,
        key::next_keys,
        narrator::Narrator,
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
    sql::{Chunk, NewKey, Receipt, Refusal, Unchanged},
    value::Value,
};

/// Runs the statement of a chunk for its rows, and tells how many were changed. On an error the caller undoes it; the
/// step that it names is the row.
pub(in crate::engine) fn apply_chunk(
    narrator: Narrator<'_>,
    connection: &Connection,
    watch: &Watch,
    chunk: &Chunk,
    is_alone: bool,
) -> Result<Receipt, Refusal> {
    if chunk.key.is_some() {
        watch.forget_unheard_keys();
    }
    // Raw SQL of the same transaction may have left something to be mended by its end.
    let was_broken = has_deferred_violations(connection);
    let rows = Rows {
        connection,
        watch,
        chunk,
        is_view: is_view(connection, chunk.table)?,
        passed_over: RefCell::default(),
    };
    let telling = narrator.begin_batch(&chunk.text, chunk.rows());
    let written = rows.write();
    let error = written.as_ref().err().and_then(Refusal::error);
    telling.end_with(
        written.as_ref().map_or(0, |rows| *rows),
        error.map(Error::kind),
    );
    let changed = written?;
    // What comes after it may mend it; else COMMIT fails.
    if is_alone && !was_broken && has_deferred_violations(connection) {
        return Err(Refusal::Whole(
            Error::new(
                ErrorKind::ForeignKey,
                "at the end of these rows a reference points at no row",
            )
            .with_table(chunk.table),
        ));
    }
    Ok(Receipt {
        changed: vec![(0, changed)],
        passed_over: rows.passed_over.into_inner(),
        ..Receipt::default()
    })
}

/// The rows of a chunk on their way to SQLite.
struct Rows<'a> {
    connection: &'a Connection,
    watch: &'a Watch,
    chunk: &'a Chunk,
    is_view: bool,
    /// Those of which nothing was changed.
    passed_over: RefCell<Vec<usize>>,
}

impl Rows<'_> {
    fn write(&self) -> Result<u64, Refusal> {
        let all = self.chunk.rows();
        let (mut first, mut changed) = (0, 0);
        if let Some(several) = &self.chunk.several
            && all >= several.rows
            && !self.is_view
            && !self.takes_single_rows()?
        {
            let mut statement = self.prepare(&several.text, several.rows)?;
            while all - first >= several.rows {
                let end = first + several.rows;
                let before = self.connection.total_changes();
                changed += match self.run_several(&mut statement, first, several.rows) {
                    Ok(Some(rows)) if rows < several.rows => {
                        self.unchanged(first).map_err(Refusal::Whole)?;
                        rows as u64
                    }
                    Ok(Some(rows)) => rows as u64,
                    Ok(None) => self.one_by_one(first, end)?,
                    Err(error) if self.connection.is_autocommit() => {
                        return Err(Refusal::Whole(error));
                    }
                    // SQLite has undone all of the statement. One by one the rows show which it was.
                    Err(_) if self.connection.total_changes() == before => {
                        self.one_by_one(first, end)?
                    }
                    // But for ON CONFLICT FAIL, which leaves the rows before the one that failed.
                    Err(error) => {
                        let step = first + usize::try_from(self.connection.changes()).unwrap_or(0);
                        return Err(Refusal::Step { step, error });
                    }
                };
                first = end;
            }
        }
        changed += self.one_by_one(first, all)?;
        Ok(changed)
    }

    /// Whether the rows go one by one. A statement for several may fail at one of them, so SQLite keeps a copy of each page
    /// that it changes; with an index on 200,000 random texts it was slower by a quarter for that, without one almost twice
    /// as fast. And where rows refer to rows of the same table, references would be looked at only after several; triggers
    /// may take the keys of rows to come.
    fn takes_single_rows(&self) -> Result<bool> {
        self.connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM pragma_index_list(?1)) OR EXISTS (
                     SELECT 1 FROM pragma_foreign_key_list(?1) WHERE \"table\" = ?1 COLLATE NOCASE) OR EXISTS (
                     SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE)",
            )
            .and_then(|mut asked| asked.query_row([self.chunk.table], |row| row.get(0)))
            .map_err(|error| from_rusqlite(error).with_table(self.chunk.table))
    }

    fn one_by_one(&self, first: usize, end: usize) -> Result<u64, Refusal> {
        if first == end {
            return Ok(0);
        }
        let mut statement = self.prepare(&self.chunk.text, 1)?;
        let mut changed = 0;
        for row in first..end {
            let ran = if self.is_view {
                self.hand_over(&mut statement, row)
            } else {
                match self.run(&mut statement, row, 1) {
                    Ok(0) => self.unchanged(row).map(|()| {
                        self.pass_over(row);
                        0
                    }),
                    ran => ran,
                }
            };
            changed += ran.map_err(|error| Refusal::Step { step: row, error })? as u64;
        }
        Ok(changed)
    }

    /// The statement for so many rows.
    fn prepare(&self, text: &str, rows: usize) -> Result<CachedStatement<'_>> {
        let prepared = self.connection.prepare_cached(text);
        let mut statement = prepared.map_err(|error| self.named(from_rusqlite(error), text))?;
        let own = rows * self.chunk.width;
        let (given, expected) = (own + self.chunk.shared.len(), statement.parameter_count());
        if given != expected {
            let error = rusqlite::Error::InvalidParameterCount(given, expected);
            return Err(self.named(from_rusqlite(error), text));
        }
        bind(&mut statement, own, &self.chunk.shared)?;
        Ok(statement)
    }

    /// Whether it is to be told which rows are passed over.
    fn tells(&self) -> bool {
        self.passed_over.borrow().len() < self.chunk.tells
    }

    fn pass_over(&self, row: usize) {
        if self.tells() {
            self.passed_over.borrow_mut().push(row);
        }
    }

    /// Runs a statement for several rows. Where some were passed over, and it is to be told which, that is undone, and
    /// nothing is returned.
    fn run_several(
        &self,
        statement: &mut CachedStatement<'_>,
        row: usize,
        rows: usize,
    ) -> Result<Option<usize>> {
        if self.chunk.unchanged != Unchanged::Skipped || !self.tells() {
            return self.run(statement, row, rows).map(Some);
        }
        let mark = self.watch.mark();
        execute(self.connection, "SAVEPOINT anabranch_rows")?;
        let ran = self.run(statement, row, rows);
        if self.connection.is_autocommit() {
            return ran.map(Some);
        }
        let is_whole = ran.as_ref().is_ok_and(|changed| *changed == rows);
        if ran.is_ok() && !is_whole {
            self.watch.rewind(&mark);
            execute(self.connection, "ROLLBACK TO anabranch_rows")?;
        }
        execute(self.connection, "RELEASE anabranch_rows")?;
        ran.map(|changed| is_whole.then_some(changed))
    }

    /// Runs a statement for so many rows, and tells how many were changed.
    fn run(&self, statement: &mut CachedStatement<'_>, row: usize, rows: usize) -> Result<usize> {
        let chunk = self.chunk;
        let values = &chunk.values[row * chunk.width..(row + rows) * chunk.width];
        bind(statement, 0, values)
            .and_then(|()| self.bind_keys(statement, values))
            .and_then(|()| statement.raw_execute().map_err(from_rusqlite))
            .map_err(|error| self.named(error, &chunk.text))
    }

    /// The keys that the rows lack.
    fn bind_keys(&self, statement: &mut CachedStatement<'_>, values: &[Value]) -> Result<()> {
        let Some(key) = self.chunk.key else {
            return Ok(());
        };
        let missing = || {
            let keys = values.iter().enumerate();
            let keys = keys.skip(key.at).step_by(self.chunk.width);
            keys.filter(|(_, value)| value.is_null())
        };
        let count = i64::try_from(missing().count()).unwrap_or(i64::MAX);
        if count == 0 {
            return Ok(());
        }
        let asked = NewKey {
            table: self.chunk.table,
            column: key.column,
            above: key.above,
        };
        let first = next_keys(self.connection, self.watch, asked, count)?;
        for (given, (at, _)) in (first..=i64::MAX).zip(missing()) {
            (statement.raw_bind_parameter(at + 1, given)).map_err(from_rusqlite)?;
        }
        Ok(())
    }

    /// Hands a row to the triggers of a view. SQLite does not tell what they do, so it counts as changed; one that is not
    /// there they do not hear of.
    fn hand_over(&self, statement: &mut CachedStatement<'_>, row: usize) -> Result<usize> {
        if let Unchanged::Missing { key, probe, .. } = &self.chunk.unchanged
            && !self.is_there(row, *key, probe)?
        {
            return self.unchanged(row).map(|()| 0);
        }
        self.run(statement, row, 1).map(|_| 1)
    }

    /// What it means that nothing was changed for a row, or for one of several from there on.
    fn unchanged(&self, row: usize) -> Result<()> {
        let chunk = self.chunk;
        match &chunk.unchanged {
            Unchanged::Skipped => Ok(()),
            Unchanged::NotInserted => was_inserted(self.connection, chunk.table),
            Unchanged::Missing {
                entity,
                key,
                columns,
                probe,
                is_skipped,
            } => {
                if self.is_there(row, *key, probe)? {
                    return Err(not_changed(chunk.table));
                }
                if *is_skipped {
                    return Ok(());
                }
                let first = row * chunk.width + key;
                let key = chunk.values[first..first + columns].to_vec();
                Err(Error::missing(entity, chunk.table, key))
            }
        }
    }

    /// Whether there is a row with this one's key and version.
    fn is_there(&self, row: usize, key: usize, probe: &str) -> Result<bool> {
        let values = &self.chunk.values[row * self.chunk.width..][key..self.chunk.width];
        let ask = || {
            let mut asked = self
                .connection
                .prepare_cached(probe)
                .map_err(from_rusqlite)?;
            bind(&mut asked, 0, values)?;
            let mut rows = asked.raw_query();
            let row = rows.next().map_err(from_rusqlite)?;
            row.map_or(Ok(false), |row| row.get(0))
                .map_err(from_rusqlite)
        };
        ask().map_err(|error| self.named(error, probe))
    }

    fn named(&self, error: Error, text: &str) -> Error {
        let error = error.with_statement(text.to_owned());
        match error.table() {
            Some(_) => error,
            None => error.with_table(self.chunk.table),
        }
    }
}

fn bind(statement: &mut CachedStatement<'_>, first: usize, values: &[Value]) -> Result<()> {
    for (index, value) in values.iter().enumerate() {
        statement
            .raw_bind_parameter(first + index + 1, Bound(value))
            .map_err(from_rusqlite)?;
    }
    Ok(())
}
