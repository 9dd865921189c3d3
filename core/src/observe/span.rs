//! Every span, with OpenTelemetry's names for databases; a bridge such as `tracing-opentelemetry` takes the name of a span from
//! `otel.name`.
//!
//! What a field says is made only where somebody wants the span. No values of rows, no arguments: of a text of SQL only
//! what is left without its literals.

use std::{fmt, path::Path, time::Duration};

use tracing::{Level, Span, field::Empty, level_filters::LevelFilter};

use crate::observe::summary::{self, Operation};

/// Whether nobody wants spans of this level. The macros alone would make the values of all fields while there is no subscriber:
/// sqlx turns on the feature `log` of tracing, which hands them to the crate of that name.
fn is_unwanted(level: Level) -> bool {
    level > LevelFilter::current()
}

/// A span with the names that most have: its level and name, its kind, the operation and what it is of, the database; and with
/// fields of its own.
macro_rules! named_span {
    ($level:ident $name:literal, $kind:literal, $operation:literal $target:expr, $namespace:expr, $($fields:tt)*) => {{
        if is_unwanted(Level::$level) {
            return Span::none();
        }
        tracing::span!(
            target: "anabranch",
            Level::$level,
            $name,
            otel.name = format!(concat!($operation, " {}"), $target),
            otel.kind = $kind,
            db.system.name = "sqlite",
            db.namespace = $namespace,
            db.operation.name = $operation,
            $($fields)*
            otel.status_code = Empty,
            "error.type" = Empty,
        )
    }};
}

/// A statement, or one that runs for a number of rows.
pub(crate) fn statement(namespace: &str, text: &str, batch: Option<usize>) -> Span {
    if is_unwanted(Level::TRACE) {
        return Span::none();
    }
    tracing::trace_span!(
        target: "anabranch",
        "anabranch.statement",
        otel.name = summary::summary(text),
        otel.kind = "client",
        db.system.name = "sqlite",
        db.namespace = namespace,
        db.operation.name = Operation::of(text).name(),
        db.collection.name = summary::table(text),
        db.query.summary = summary::summary(text),
        db.query.text = summary::without_literals(text),
        db.operation.batch.size = batch,
        db.response.returned_rows = Empty,
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}

/// A save, of so many statements.
pub(crate) fn save(namespace: &str, statements: usize) -> Span {
    named_span!(
        DEBUG "anabranch.save", "client", "SAVE" namespace, namespace,
        db.operation.batch.size = statements,
        anabranch.wait = Empty,
        anabranch.commit_seq = Empty,
    )
}

/// An exclusive transaction.
pub(crate) fn transaction(namespace: &str, label: impl fmt::Display) -> Span {
    named_span!(
        DEBUG "anabranch.transaction", "client", "TRANSACTION" namespace, namespace,
        anabranch.label = %label,
        anabranch.wait = Empty,
        anabranch.attempt = Empty,
        anabranch.outcome = Empty,
    )
}

/// A session beside others; one for each attempt.
pub(crate) fn session(
    namespace: &str,
    label: impl fmt::Display,
    isolation: impl fmt::Debug,
) -> Span {
    named_span!(
        DEBUG "anabranch.session", "client", "SESSION" namespace, namespace,
        anabranch.label = %label,
        anabranch.isolation = ?isolation,
        anabranch.wait = Empty,
        anabranch.attempt = Empty,
        anabranch.outcome = Empty,
    )
}

/// The validation of a session, by the writer.
pub(crate) fn merge(namespace: &str, statements: usize) -> Span {
    named_span!(
        DEBUG "anabranch.merge", "internal", "MERGE" namespace, namespace,
        db.operation.batch.size = statements,
    )
}

/// A bulk operation.
pub(crate) fn bulk(namespace: &str, table: &str) -> Span {
    named_span!(
        DEBUG "anabranch.bulk", "client", "BULK" table, namespace,
        db.collection.name = table,
        anabranch.rows = Empty,
        anabranch.written = Empty,
    )
}

/// A feed reads a batch.
pub(crate) fn feed(namespace: &str, table: &str, name: &str) -> Span {
    named_span!(
        DEBUG "anabranch.feed", "client", "FEED" table, namespace,
        db.collection.name = table,
        anabranch.feed.name = name,
        anabranch.commit_seq = Empty,
        anabranch.rows = Empty,
    )
}

/// The application deals with an event that a feed handed to it.
pub(crate) fn event(namespace: &str, table: &str, name: &str, seq: i64) -> Span {
    named_span!(
        DEBUG "anabranch.event", "consumer", "EVENT" table, namespace,
        db.collection.name = table,
        anabranch.feed.name = name,
        anabranch.commit_seq = seq,
        anabranch.attempt = Empty,
    )
}

/// A backup.
pub(crate) fn backup(namespace: &str) -> Span {
    named_span!(
        INFO "anabranch.backup", "client", "BACKUP" namespace, namespace,
        anabranch.pages = Empty,
    )
}

/// A change of tables.
pub(crate) fn migration(namespace: &str, statements: usize) -> Span {
    named_span!(
        INFO "anabranch.migration", "client", "MIGRATION" namespace, namespace,
        db.operation.batch.size = statements,
    )
}

/// A pass over the log.
pub(crate) fn checkpoint(file: Option<&str>, mode: impl fmt::Debug) -> Span {
    let name = file.map(Path::new).and_then(Path::file_name);
    let namespace = &*name.unwrap_or_default().to_string_lossy();
    named_span!(
        DEBUG "anabranch.checkpoint", "internal", "CHECKPOINT" namespace, namespace,
        anabranch.mode = ?mode,
    )
}

/// What a statement does, and with which table.
pub(crate) fn summary_of(text: &str) -> String {
    summary::summary(text)
}

/// Its text, without literals.
pub(crate) fn text_of(text: &str) -> String {
    summary::without_literals(text)
}

/// Notes on the span of a save, a transaction or a session for how long the writer was waited for.
pub(crate) fn set_wait(span: &Span, wait: Duration) {
    if !span.is_disabled() {
        span.record("anabranch.wait", wait.as_secs_f64());
    }
}

/// Notes on a span that what it stands for failed, with an error of this kind.
pub(crate) fn set_error(span: &Span, kind: impl fmt::Debug) {
    if !span.is_disabled() {
        span.record("error.type", tracing::field::debug(kind));
        span.record("otel.status_code", "ERROR");
    }
}
