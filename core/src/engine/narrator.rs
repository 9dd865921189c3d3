//! What is told of each statement: a span, how long it took, and a warning if that was too long.
//!
//! Looking at the clock costs some tens of nanoseconds, of the four microseconds that a read by key takes. So what runs on a task
//! is not timed statement by statement: the clock is looked at there anyway, for each read and each commit, and those who look
//! tell it ([`Narrator::took`]).

use std::{
    cell::Cell,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tracing::Span;

use crate::{
    engine::{slot::Label, sqlite_error::kind_of_sqlx},
    error::ErrorKind,
    observe::{Counters, Operation, span},
};

/// Who runs statements.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Narrator<'a> {
    counters: &'a Counters,
    /// What takes longer is worth a warning.
    slow: Duration,
    label: Label,
    is_timed: bool,
}

/// The same, kept with a connection.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Voice {
    pub(in crate::engine) counters: Arc<Counters>,
    pub(in crate::engine) slow: Duration,
    pub(in crate::engine) label: Label,
}

/// A statement under way.
#[derive(Debug)]
pub(in crate::engine) struct Telling<'a> {
    narrator: Narrator<'a>,
    text: &'a str,
    span: Span,
    began: Option<Instant>,
    rows: Cell<u64>,
    /// How long it waited for who takes its rows.
    paused: Cell<Duration>,
}

/// A query of sqlx under way: told of when it is dropped.
#[derive(Debug)]
pub(in crate::engine) struct RawTelling {
    voice: Voice,
    text: String,
    span: Span,
    began: Instant,
    rows: u64,
    error: Option<ErrorKind>,
}

impl RawTelling {
    pub(in crate::engine) fn new(voice: Voice, within: &Span, text: &str) -> Self {
        let namespace = voice.counters.told.namespace();
        Self {
            span: within.in_scope(|| span::statement(namespace, text, None)),
            voice,
            text: text.to_owned(),
            began: Instant::now(),
            rows: 0,
            error: None,
        }
    }

    /// It gave a row.
    pub(in crate::engine) const fn row(&mut self) {
        self.rows += 1;
    }

    /// It failed.
    pub(in crate::engine) fn failed(&mut self, error: &sqlx::Error) {
        self.error = Some(kind_of_sqlx(error));
    }
}

impl Drop for RawTelling {
    fn drop(&mut self) {
        let narrator = self.voice.untimed();
        Telling {
            narrator,
            text: &self.text,
            span: self.span.clone(),
            began: Some(self.began),
            rows: Cell::new(self.rows),
            paused: Cell::new(Duration::ZERO),
        }
        .end(self.error);
    }
}

impl Voice {
    /// For statements that are timed one by one.
    pub(in crate::engine) fn timed(&self) -> Narrator<'_> {
        Narrator::new(&self.counters, self.slow, self.label, true)
    }

    /// For those of which somebody else looks at the clock.
    pub(in crate::engine) fn untimed(&self) -> Narrator<'_> {
        Narrator::new(&self.counters, self.slow, self.label, false)
    }
}

impl<'a> Narrator<'a> {
    pub(in crate::engine) const fn new(
        counters: &'a Counters,
        slow: Duration,
        label: Label,
        is_timed: bool,
    ) -> Self {
        Self {
            counters,
            slow,
            label,
            is_timed,
        }
    }

    /// A statement begins.
    pub(in crate::engine) fn begin(self, text: &'a str) -> Telling<'a> {
        self.telling(text, None)
    }

    /// One that runs for so many rows.
    pub(in crate::engine) fn begin_batch(self, text: &'a str, rows: usize) -> Telling<'a> {
        self.telling(text, Some(rows))
    }

    fn telling(self, text: &'a str, batch: Option<usize>) -> Telling<'a> {
        Telling {
            span: span::statement(self.counters.told.namespace(), text, batch),
            began: self.is_timed.then(Instant::now),
            narrator: self,
            text,
            rows: Cell::new(0),
            paused: Cell::new(Duration::ZERO),
        }
    }

    /// A statement took so long.
    pub(in crate::engine) fn took(
        self,
        text: &str,
        time: Duration,
        rows: Option<u64>,
        error: Option<ErrorKind>,
    ) {
        if cfg!(feature = "metrics") {
            let operation = Operation::of(text);
            match error {
                None => self.counters.told.operation(operation, time),
                Some(kind) => self.counters.told.failed_operation(operation, kind, time),
            }
        }
        if time > self.slow {
            self.warn(text, time, rows);
        }
    }

    #[cold]
    fn warn(self, text: &str, time: Duration, rows: Option<u64>) {
        self.counters.slow_statements.add(1);
        tracing::warn!(
            target: "anabranch",
            took = ?time,
            db.namespace = self.counters.told.namespace(),
            db.query.summary = span::summary_of(text),
            db.query.text = span::text_of(text),
            db.response.returned_rows = rows,
            by = %self.label,
            thread = thread::current().name(),
            "a statement was slow"
        );
    }

    /// A commit of so many units took so long, from its BEGIN.
    pub(in crate::engine) fn committed(self, units: usize, time: Duration) {
        self.counters.told.committed(time);
        if time > self.slow {
            tracing::warn!(
                target: "anabranch",
                took = ?time,
                db.namespace = self.counters.told.namespace(),
                units,
                thread = thread::current().name(),
                "a commit was slow"
            );
        }
    }
}

impl Telling<'_> {
    /// It gave a row.
    pub(in crate::engine) fn row(&self) {
        self.rows.set(self.rows.get() + 1);
    }

    /// Runs what is no part of it.
    pub(in crate::engine) fn paused<R>(&self, wait: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let done = wait();
        self.paused.set(self.paused.get() + began.elapsed());
        done
    }

    /// It is over.
    pub(in crate::engine) fn end(self, error: Option<ErrorKind>) {
        self.end_with(self.rows.get(), error);
    }

    /// The same, of one that changed so many rows.
    pub(in crate::engine) fn end_with(&self, rows: u64, error: Option<ErrorKind>) {
        if !self.span.is_disabled() {
            self.span.record("db.response.returned_rows", rows);
            if let Some(kind) = error {
                span::set_error(&self.span, kind);
            }
        }
        if let Some(began) = self.began {
            let time = began.elapsed().saturating_sub(self.paused.get());
            self.narrator.took(self.text, time, Some(rows), error);
        }
    }
}
