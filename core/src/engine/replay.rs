//! Doing on the present database what a session did, and comparing what it saw.
//!
//! The writer runs the session's statements in their order, with the arguments, keys, random numbers and times that they
//! had, inside of the group's transaction. If everything that the session could see is the same, the session *is* the
//! serial execution at this point of the commit order: whatever its client decided, it would decide again.
//!
//! What need not be run: a statement that only reads, if none of its tables has changed since the session began, by
//! another commit, by an earlier unit of the group, or by a statement of the session itself that met changed tables.
//! Under [`Isolation::Snapshot`] none that only reads is run; instead, a row that the session wrote must not have been
//! written since. After a commit of another process, of which only that it was is known, everything is run.

use std::{
    cell::OnceCell,
    time::{Duration, Instant},
};

use rusqlite::{CachedStatement, Connection};

use crate::{
    engine::{
        access::{Accesses, StatementAccess},
        apply::{Keys, are_deferred, as_undone, named},
        connection::{Bound, PresentRow, execute},
        core::Core,
        ffi::{has_deferred_violations, set_last_insert_rowid},
        history::{Changes, Rows},
        hooks::Mark,
        isolation::Isolation,
        recording::{Applied, AppliedOutcome, Event, Given, Query, Recording},
        save_record,
        seen::{Effect, End, Observer, Seen, failure},
        slot::Label,
        sqlite_error::{from_code, from_rusqlite, kind},
        unit::{apply_once, in_savepoint, number},
    },
    error::{Error, ErrorKind, Result},
    sql::{Expect, Receipt, Refusal},
    value::Value,
};

/// A replay under way.
pub(in crate::engine) struct Replay<'a> {
    core: &'a Core,
    connection: &'a Connection,
    accesses: &'a mut Accesses,
    recording: &'a Recording,
    /// What others changed since the session began, and what of the session's own rests on that.
    changed: Changes,
    /// What others changed, by itself.
    others: Changes,
    /// What the replay changes.
    mine: Changes,
    /// Whether it is noted which rows that are.
    notes_rows: bool,
    /// What savepoints that are open are undone to.
    marks: Vec<Mark>,
    until: Instant,
}

impl<'a> Replay<'a> {
    /// `group` is what earlier units of the open transaction changed.
    pub(in crate::engine) fn new(
        core: &'a Core,
        connection: &'a Connection,
        accesses: &'a mut Accesses,
        recording: &'a Recording,
        group: &Changes,
    ) -> Self {
        let mut changed = recording.since.changes(core.vfs.head().foreign());
        changed.add(group);
        Self {
            core,
            connection,
            accesses,
            recording,
            others: changed.clone(),
            changed,
            mine: Changes::default(),
            // Asked once: rows that nobody listened to are not those that nobody changed.
            notes_rows: recording.isolation == Isolation::Snapshot || core.history.wants_rows(),
            marks: Vec::new(),
            until: Instant::now() + core.options.sessions.commit_hold,
        }
    }

    /// Whether it is noted which rows it changes.
    pub(in crate::engine) const fn notes_rows(&self) -> bool {
        self.notes_rows
    }

    /// Runs it. What it changed is told apart from the receipt.
    pub(in crate::engine) fn run(mut self) -> Result<(Receipt, Changes), Refusal> {
        let run = self.core.hold.begin_until(self.until);
        if self.notes_rows {
            self.core.watch.note_rows();
        }
        set_last_insert_rowid(self.connection, 0);
        let replayed = self.events().and_then(|()| self.finish());
        self.leave();
        if self.mine == Changes::Unknown {
            // What was found of statements while a definition was changed may be undone with it, by a savepoint or as a
            // whole, and the schema's version is as before then.
            self.accesses.forget();
        }
        self.core.vfs.clock().free();
        self.core.draws.free();
        drop(run);
        let rows = self.core.watch.take_rows();
        let in_time = Instant::now() < self.until;
        let commit_seq = replayed.map_err(|error| {
            if error.kind() == ErrorKind::Interrupted && !in_time {
                return held_too_long(self.core.options.sessions.commit_hold);
            }
            error
        })?;
        self.mine.add_noted(rows);
        self.compare_rows()?;
        let receipt = Receipt {
            commit_seq,
            ..Receipt::default()
        };
        Ok((receipt, self.mine))
    }

    fn events(&mut self) -> Result<()> {
        for event in &self.recording.events {
            if Instant::now() > self.until {
                return Err(held_too_long(self.core.options.sessions.commit_hold));
            }
            match event {
                Event::Query(query) => self.query(query)?,
                Event::Batch(applied) => self.batch(applied)?,
                Event::Savepoint(depth) => {
                    self.marks.push(self.core.watch.mark());
                    self.ours(&format!("SAVEPOINT anabranch_{depth}"))?;
                }
                Event::Release(depth) => {
                    self.marks.pop();
                    self.ours(&format!("RELEASE anabranch_{depth}"))?;
                }
                Event::Undo(depth) => {
                    self.ours(&format!(
                        "ROLLBACK TO anabranch_{depth}; RELEASE anabranch_{depth}"
                    ))?;
                    // Savepoints inside of it that were dropped half-way are undone with it.
                    self.marks.truncate(*depth as usize + 1);
                    if let Some(mark) = self.marks.pop() {
                        self.core.watch.rewind(&mark);
                    }
                }
            }
            // The same code can mean that a statement failed, or that it took the whole transaction along.
            if self.connection.is_autocommit() {
                return Err(conflict(
                    "a statement of the session would end the whole transaction by now: begin a new session and do the work again",
                ));
            }
        }
        Ok(())
    }

    /// State of the connection that would reach into the next unit.
    fn leave(&self) {
        let are_deferred = || are_deferred(self.connection).unwrap_or(false);
        if !self.connection.is_autocommit()
            && are_deferred()
            && let Err(error) = execute(self.connection, "PRAGMA defer_foreign_keys = OFF")
        {
            tracing::warn!(error = %error.in_log(), "foreign keys stay deferred until the end of the transaction");
        }
    }

    fn ours(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(from_rusqlite)
    }

    fn query(&mut self, query: &Query) -> Result<()> {
        let access = self.accesses.of(self.connection, &query.text);
        if query.reads_only && self.is_settled(access.as_deref()) {
            return Ok(());
        }
        self.core.counters.replayed.add(1);
        self.give(&query.given);
        let noted = self.core.watch.noted();
        // It was allowed in the session; the writer's connection is the last that may do what was not.
        let seen = self.accesses.judged(|| run(self.connection, query));
        if !query.reads_only {
            // One that SQLite does not take did nothing.
            let is_taken = access.is_some() || !matches!(seen.end, End::Failed(_));
            if is_taken {
                self.note_writes(access.as_deref());
            }
            // All rows of a table were deleted at once, of which SQLite does not tell.
            let is_untold = self.core.watch.noted() == noted;
            let has_changed = seen.effect.is_some_and(|effect| effect.changes != Some(0));
            if is_untold && has_changed {
                for written in access.iter().flat_map(|access| &access.writes) {
                    self.mine.add_rows(&written.table, &Rows::All);
                }
            }
        }
        let counts_rows = access.as_deref().is_none_or(StatementAccess::counts_rows);
        if seen.agrees(&query.seen, counts_rows) {
            return Ok(());
        }
        if let End::Failed(code) = seen.end
            && code & 0xff == libsqlite3_sys::SQLITE_INTERRUPT
        {
            return Err(
                Error::new(ErrorKind::Interrupted, "the replay was stopped").with_code(code)
            );
        }
        if let End::Failed(code) = seen.end
            && is_of_the_machine(kind(code))
        {
            let error = from_code(code, "the replay failed");
            return Err(error.with_statement(query.text.to_string()));
        }
        Err(self.conflict(query, access.as_deref()))
    }

    /// Whether a statement that only reads need not be run.
    fn is_settled(&self, access: Option<&StatementAccess>) -> bool {
        let compares_rows =
            self.recording.isolation == Isolation::Snapshot && self.others != Changes::Unknown;
        access.is_some_and(|access| {
            // A pragma may set something that later statements rest on.
            if compares_rows && !access.is_pragma {
                return true;
            }
            access.is_repeatable && !access.reads.iter().any(|table| self.changed.concern(table))
        })
    }

    /// A statement of the session wrote: what it wrote is as in the session only if what it met is.
    fn note_writes(&mut self, access: Option<&StatementAccess>) {
        self.mine.add_writes(access, self.notes_rows);
        if self.mine == Changes::Unknown {
            self.accesses.forget();
            self.changed = Changes::Unknown;
            return;
        }
        let Some(access) = access else { return };
        let meets_changes = access.rests_on_more
            || access.reads.iter().any(|table| self.changed.concern(table))
            || (access.writes.iter()).any(|written| self.changed.concern(&written.table));
        if meets_changes {
            for written in &access.writes {
                self.changed.add_rows(&written.table, &Rows::All);
            }
        }
    }

    fn batch(&mut self, applied: &Applied) -> Result<()> {
        self.core
            .counters
            .replayed
            .add(applied.batch.steps.len() as u64);
        for step in &applied.batch.steps {
            let access = self.accesses.of(self.connection, &step.text);
            self.note_writes(access.as_deref());
        }
        if applied.batch.token.is_some() {
            self.mine.add_rows(save_record::NAME, &Rows::All);
        }
        self.give(&applied.given);
        let narrator = self.core.narrator(Label::new("a merge"), true);
        let answer = in_savepoint(self.connection, &self.core.watch, || {
            let retention = self.core.options.save_token_retention;
            let keys = if applied.keys.len() < applied.batch.keys.len() {
                // There were none to be had in the session, for want of the table, say. Are there now?
                Keys::Writer(&self.core.watch)
            } else {
                Keys::Given(&applied.keys)
            };
            apply_once(narrator, self.connection, keys, &applied.batch, retention)
        })
        .map_err(|refusal| as_undone(self.connection, &applied.batch, refusal));
        let rowid = self.connection.last_insert_rowid();
        if AppliedOutcome::of(&answer) == applied.outcome && rowid == applied.rowid {
            return Ok(());
        }
        let error = match answer {
            Err(Refusal::Step { step, error }) => {
                if error.kind() == ErrorKind::Interrupted || is_of_the_machine(error.kind()) {
                    return Err(error);
                }
                return Err(step_conflict(applied, step));
            }
            Err(Refusal::Mismatches(mismatches)) => {
                let step = mismatches.first().map_or(0, |mismatch| mismatch.step);
                return Err(step_conflict(applied, step));
            }
            Err(Refusal::Whole(error)) => error,
            Ok(receipt) => told_conflict(applied, &receipt),
        };
        if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Interrupted)
            || is_of_the_machine(error.kind())
        {
            return Err(error);
        }
        Err(conflict("a save of the session would be refused by now").with_source(error))
    }

    /// What differs from run to run is given as it was.
    fn give(&self, given: &Given) {
        self.core.vfs.clock().replay(given.time);
        self.core.draws.replay(&given.draws);
    }

    /// Under `Snapshot`, the first who writes a row wins.
    fn compare_rows(&self) -> Result<()> {
        if self.recording.isolation != Isolation::Snapshot || self.others == Changes::Unknown {
            return Ok(());
        }
        let mut mine = self.mine.clone();
        for (table, rows) in &self.recording.rows {
            mine.add_rows(table, &Rows::These(rows.iter().copied().collect()));
        }
        match mine.clash(&self.others) {
            None => Ok(()),
            Some((table, rowid)) => {
                let mut error = conflict(
                    "a row that the session wrote was written by another commit meanwhile: begin a new session and do the work again",
                );
                if let Some(table) = table {
                    error = error.with_table(table.into_string());
                }
                if let Some(rowid) = rowid {
                    error = error.with_key(vec![Value::Integer(rowid)]);
                }
                Err(error)
            }
        }
    }

    /// What belongs to the end of a transaction.
    fn finish(&self) -> Result<Option<i64>> {
        if has_deferred_violations(self.connection) {
            return Err(conflict(
                "a row that the session refers to is not there any more, or rows refer by now to one that it deleted",
            ));
        }
        number(self.connection, &self.core.watch, &self.recording.tokens)
    }

    fn conflict(&self, query: &Query, access: Option<&StatementAccess>) -> Error {
        let what = if query.reads_only {
            "what the session read was changed by another commit: begin a new session and do the work again"
        } else {
            "a statement of the session would have another result by now: begin a new session and do the work again"
        };
        let mut error = conflict(what).with_statement(query.text.to_string());
        let tables = access.into_iter().flat_map(|access| {
            let writes = access.writes.iter().map(|written| &*written.table);
            writes.chain(access.reads.iter().map(|table| &**table))
        });
        let changed = |table: &&str| self.changed.concern(table);
        if let Some(table) = tables.clone().find(changed).or(tables.clone().next()) {
            error = error.with_table(table.to_string());
        }
        if let Some(table) = query.entity {
            error = error.with_table(table).with_key(query.args.clone());
        }
        error
    }
}

/// Runs a statement as a session did, and sees as much of it.
fn run(connection: &Connection, query: &Query) -> Seen {
    let mut observer = Observer::new();
    let end = match observe(connection, query, &mut observer) {
        Ok(end) => end,
        Err(error) => {
            let (code, message) = failure(&error).unwrap_or((libsqlite3_sys::SQLITE_ERROR, ""));
            observer.message(message);
            End::Failed(code)
        }
    };
    let effect = (!query.reads_only).then(|| Effect::of(connection, end));
    observer.end(end, effect)
}

fn observe(
    connection: &Connection,
    query: &Query,
    observer: &mut Observer,
) -> rusqlite::Result<End> {
    let mut statement = connection.prepare_cached(&query.text)?;
    bind(&mut statement, &query.args)?;
    let columns = statement.column_count();
    let names: Vec<String> = if query.is_raw {
        statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect()
    } else {
        Vec::new()
    };
    let mut rows = statement.raw_query();
    loop {
        if query.seen.end == End::Partly && observer.rows() == query.seen.rows {
            return Ok(End::Partly);
        }
        let Some(row) = rows.next()? else {
            return Ok(End::Done);
        };
        if observer.rows() == 0 {
            names.iter().for_each(|name| observer.name(name));
        }
        let places = &OnceCell::new();
        observer.row(&PresentRow { row, places }, columns);
    }
}

/// As many as there are: what is not bound is NULL, as in sqlx.
fn bind(statement: &mut CachedStatement<'_>, args: &[Value]) -> rusqlite::Result<()> {
    for (index, value) in args.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, Bound(value))?;
    }
    Ok(())
}

/// Whether the machine failed, and not what the session rests on: to run it again would not help.
const fn is_of_the_machine(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Full | ErrorKind::Io | ErrorKind::OutOfMemory | ErrorKind::Corrupt
    )
}

fn conflict(what: &'static str) -> Error {
    Error::new(ErrorKind::Conflict, what)
}

fn step_conflict(applied: &Applied, step: usize) -> Error {
    let error = conflict(
        "a row that the session saved is another by now: begin a new session and do the work again",
    );
    let Some(step) = applied.batch.steps.get(step) else {
        return error;
    };
    let error = error.with_statement(step.text.to_string());
    match &step.expect {
        Expect::OneRow { table, probe, .. } => {
            error.with_table(*table).with_key(probe.args.clone())
        }
        Expect::Inserted { table } => error.with_table(*table),
        Expect::Gone { probe } => error.with_key(probe.args.clone()),
        expect @ Expect::Any { .. } => named(error, expect),
    }
}

/// A batch of the session was applied, and would tell of something else than it did.
fn told_conflict(applied: &Applied, receipt: &Receipt) -> Error {
    let error = conflict(
        "what the session wrote would have another result by now: begin a new session and do the work again",
    );
    let AppliedOutcome::Applied(told) = &applied.outcome else {
        return error;
    };
    let differs = |step: &usize| {
        let changed = |receipt: &Receipt| {
            let mut changed = receipt.changed.iter();
            changed.find(|(of, _)| of == step).copied()
        };
        let rows = told.computed.iter().filter(|(of, _)| of == step);
        let rows_now = receipt.computed.iter().filter(|(of, _)| of == step);
        changed(told) != changed(receipt) || !rows.eq(rows_now)
    };
    let step = (0..applied.batch.steps.len()).find(differs);
    match step.map(|step| &applied.batch.steps[step]) {
        Some(step) => named(error, &step.expect).with_statement(step.text.to_string()),
        None => error,
    }
}

fn held_too_long(limit: Duration) -> Error {
    Error::new(
        ErrorKind::CommitTimeout,
        "the session's statements took longer than commit_hold to be validated, and were stopped: nothing was written",
    )
    .with_waited(limit)
}
