//! How bulk operations run.

use std::{
    collections::VecDeque,
    future::poll_fn,
    ops::{ControlFlow, Range},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use tracing::{Instrument as _, Span};

use crate::{
    bulk::{
        Bulk, BulkError, BulkOperation, BulkProgress, BulkReport, PassedOver,
        operation::Prepared,
        source::{Row, Source},
    },
    engine::{BulkWriter, Hold},
    error::{Error, ErrorKind, Result},
    observe::span,
    sql::{Chunk, Receipt, Refusal},
    value::Value,
};

/// How many rows a transaction has unless told otherwise.
pub(in crate::bulk) const CHUNK_ROWS: usize = 1_000;
/// After so many rows that came without a wait others get a turn, also where none of them is written.
const ROWS_IN_A_TURN: usize = CHUNK_ROWS;
/// A chunk with this many bytes of text and blobs is written, however few its rows.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Of how many rows that are passed over it is told which they are.
const KEPT_PASSED_OVER: usize = 100;

/// Runs a bulk operation with the rows of a source.
pub(in crate::bulk) async fn run<O: BulkOperation>(
    mut bulk: Bulk<'_, O>,
    source: &mut impl Source<O::Item>,
) -> Result<BulkReport, BulkError> {
    let began = Instant::now();
    let mut report = BulkReport {
        rows: bulk.skip_rows,
        ..BulkReport::default()
    };
    let none = |error| BulkError::new(error, 0..0, 0..0, report.clone());
    let prepared = bulk.operation.prepare().map_err(none)?;
    bulk.engine.refuse_nested().map_err(none)?;
    // Before it has the writer: there is nothing to write yet.
    let skipped = skip(bulk.skip_rows, source).await;
    report.elapsed = began.elapsed();
    match skipped {
        Ok(rows) if rows == bulk.skip_rows => {}
        Ok(rows) => {
            report.rows = rows;
            report.is_complete = true;
            return Ok(report);
        }
        Err((error, place)) => {
            report.rows = place.row;
            let (rows, lines) = among(&[place]);
            return Err(BulkError::new(error, rows, lines, report));
        }
    }
    let none = |error| BulkError::new(error, 0..0, 0..0, report.clone());
    let span = span::bulk(bulk.engine.namespace(), prepared.table.name);
    let writer = bulk.engine.bulk(bulk.hold, bulk.at);
    let writer = writer.instrument(span.clone()).await.map_err(none)?;
    let mut run = Run {
        bulk,
        prepared,
        writer,
        values: Vec::new(),
        bytes: 0,
        taken: Taken::default(),
        on_their_way: VecDeque::new(),
        written: report.clone(),
        report,
        in_this_turn: 0,
        began,
        span: span.clone(),
        has_ended: false,
    };
    let ended = run.drive(source).instrument(span).await;
    run.has_ended = true;
    run.tell_end(ended.as_ref().map_err(BulkError::kind));
    ended
}

/// What happens next.
enum Next<T> {
    /// The source gave a row, or has ended.
    Row(Option<Result<Row<T>>>),
    /// A chunk was answered.
    Answer(Result<Receipt, Refusal>),
}

/// Rows of the source that are one chunk, or were passed over before it.
#[derive(Debug, Default)]
struct Taken {
    /// How many.
    rows: u64,
    /// Those that the chunk writes.
    places: Vec<Place>,
}

/// Where in the source a row is.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: u64,
    line: u64,
}

/// A bulk operation that runs.
struct Run<'p, O> {
    bulk: Bulk<'p, O>,
    prepared: Prepared,
    writer: BulkWriter,
    values: Vec<Value>,
    bytes: usize,
    /// The rows of the chunk that is being filled.
    taken: Taken,
    /// Those of the chunks that are on their way.
    on_their_way: VecDeque<Taken>,
    /// What is committed.
    report: BulkReport,
    /// What is written.
    written: BulkReport,
    /// Rows that came since the task last waited.
    in_this_turn: usize,
    began: Instant,
    span: Span,
    has_ended: bool,
}

impl<O> Drop for Run<'_, O> {
    fn drop(&mut self) {
        if !self.has_ended {
            let BulkReport { rows, written, .. } = self.report;
            let table = self.prepared.table.name;
            tracing::warn!(
                table,
                rows,
                written,
                "a bulk operation was dropped before its end: what is committed stays"
            );
        }
    }
}

impl<'p, O: BulkOperation> Run<'p, O> {
    /// Notes on the span how it ended.
    fn tell_end(&self, ended: Result<&BulkReport, ErrorKind>) {
        self.span.record("anabranch.rows", self.report.rows);
        self.span.record("anabranch.written", self.report.written);
        if let Err(kind) = ended {
            span::set_error(&self.span, kind);
        }
    }

    /// Writes what the source gives.
    async fn drive(&mut self, source: &mut impl Source<O::Item>) -> Result<BulkReport, BulkError> {
        let mut number = self.bulk.skip_rows;
        // What ends it before the source does.
        let mut failed = None;
        loop {
            let row = match self.next(source).await {
                Next::Row(Some(row)) => row,
                Next::Row(None) => break,
                Next::Answer(answer) => {
                    if self.answered(answer)?.is_break() {
                        return self.stop().await;
                    }
                    continue;
                }
            };
            let place = Place {
                row: number,
                line: source.line(),
            };
            if let Err(error) = self.take(row, place, source) {
                failed = Some((error, place));
                break;
            }
            number += 1;
            self.taken.rows += 1;
            if self.is_full() && self.hand_over().await?.is_break() {
                return self.stop().await;
            }
        }
        // What came before is written, also where the source failed.
        let is_stopped = self.hand_over().await?.is_break();
        let mut report = if is_stopped || (failed.is_some() && self.is_atomic()) {
            self.stop().await?
        } else {
            self.finish().await?
        };
        match failed {
            None => Ok(report),
            Some((error, place)) => {
                report.is_complete = false;
                let (rows, lines) = among(&[place]);
                Err(BulkError::new(error, rows, lines, report))
            }
        }
    }

    /// The next row of the source; while it makes one wait, what came of chunks.
    async fn next(&mut self, source: &mut impl Source<O::Item>) -> Next<O::Item> {
        poll_fn(|context| {
            if self.in_this_turn >= ROWS_IN_A_TURN {
                self.in_this_turn = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let asked = self.writer.asking(|| source.poll_row(false, context));
            if let Poll::Ready(row) = asked {
                self.in_this_turn += 1;
                return Poll::Ready(Next::Row(row));
            }
            self.in_this_turn = 0;
            match self.writer.poll_answer(context) {
                Poll::Ready(Some(answer)) => Poll::Ready(Next::Answer(answer)),
                // The thread is gone: the next chunk will tell.
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Adds a row to the chunk, unless the source goes on without it.
    fn take(
        &mut self,
        row: Result<Row<O::Item>>,
        place: Place,
        source: &mut impl Source<O::Item>,
    ) -> Result<()> {
        let Row::New(item) = row? else {
            return Ok(());
        };
        match self.push(item) {
            Ok(()) => {
                self.taken.places.push(place);
                Ok(())
            }
            Err(error) => source.refused(error),
        }
    }

    /// Adds a row to the chunk.
    fn push(&mut self, item: O::Item) -> Result<()> {
        let first = self.values.len();
        if first == 0 {
            let rows = self.bulk.chunk_rows.min(CHUNK_ROWS);
            self.values.reserve(rows * self.prepared.width);
        }
        let pushed = self.bulk.operation.push(item, &mut self.values);
        if pushed.is_err() {
            self.values.truncate(first);
        }
        self.bytes += self.values[first..].iter().map(bytes).sum::<usize>();
        pushed
    }

    fn is_atomic(&self) -> bool {
        self.bulk.hold == Hold::Transaction
    }

    fn is_full(&self) -> bool {
        self.values.len() / self.prepared.width >= self.bulk.chunk_rows || self.bytes >= CHUNK_BYTES
    }

    /// Hands the chunk over, and looks at what came of others: whether to stop.
    async fn hand_over(&mut self) -> Result<ControlFlow<()>, BulkError> {
        if self.values.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let Prepared {
            text,
            several,
            table,
            width,
            shared,
            unchanged,
        } = &self.prepared;
        let mut chunk = Chunk {
            text: Arc::clone(text),
            several: several.clone(),
            table: table.name,
            width: *width,
            values: std::mem::take(&mut self.values),
            shared: shared.clone(),
            key: None,
            unchanged: unchanged.clone(),
            tells: KEPT_PASSED_OVER - self.written.first_passed_over.len(),
        };
        self.bytes = 0;
        self.bulk.operation.complete(&mut chunk);
        let taken = std::mem::take(&mut self.taken);
        let was_taken = self.writer.send(chunk).await;
        if was_taken {
            self.on_their_way.push_back(taken);
        }
        while let Some(answer) = self.writer.try_answer() {
            if self.answered(answer)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if was_taken {
            Ok(ControlFlow::Continue(()))
        } else {
            Err(self.cut())
        }
    }

    /// The source has ended.
    async fn finish(&mut self) -> Result<BulkReport, BulkError> {
        self.writer.finish();
        self.wait().await?;
        if !self.on_their_way.is_empty() || self.report.rows != self.written.rows {
            return Err(self.cut());
        }
        // Behind the last row that is written.
        self.report.rows += self.taken.rows;
        self.report.bad_lines += self.taken.rows;
        self.report.is_complete = true;
        Ok(self.report.clone())
    }

    /// No more is wanted.
    async fn stop(&mut self) -> Result<BulkReport, BulkError> {
        self.writer.stop();
        self.wait().await?;
        Ok(self.report.clone())
    }

    /// Waits for what is on its way.
    async fn wait(&mut self) -> Result<(), BulkError> {
        while let Some(answer) = self.writer.answer().await {
            // It has ended: there is nothing to stop.
            let _ = self.answered(answer)?;
        }
        self.report.elapsed = self.began.elapsed();
        Ok(())
    }

    /// The thread is gone, without an answer.
    fn cut(&self) -> BulkError {
        let error = Error::new(
            ErrorKind::Poisoned,
            "the library failed while it wrote these rows",
        );
        BulkError::new(error, 0..0, 0..0, self.report.clone())
    }

    /// Notes the answer to the first chunk that is on its way.
    fn answered(&mut self, answer: Result<Receipt, Refusal>) -> Result<ControlFlow<()>, BulkError> {
        let chunk = self.on_their_way.pop_front();
        let is_commit = chunk.is_none();
        let Taken { rows, places } = chunk.unwrap_or_default();
        let elapsed = self.began.elapsed();
        self.report.elapsed = elapsed;
        let receipt = answer.map_err(|refusal| {
            let (error, refused) = refused(refusal, &places);
            let (rows, lines) = among(refused);
            BulkError::new(error, rows, lines, self.report.clone())
        })?;
        let written = receipt.changed.first().map_or(0, |(_, changed)| *changed);
        let given = places.len() as u64;
        let kept = &mut self.written.first_passed_over;
        let passed_over = (receipt.passed_over.iter()).filter_map(|row| places.get(*row));
        kept.extend(
            passed_over
                .take(KEPT_PASSED_OVER - kept.len())
                .map(|place| PassedOver {
                    row: place.row,
                    line: (place.line > 0).then_some(place.line),
                }),
        );
        self.written.rows += rows;
        self.written.written += written;
        self.written.passed_over += given.saturating_sub(written);
        self.written.bad_lines += rows - given;
        self.written.elapsed = elapsed;
        // A transaction for all is answered by itself, in the end.
        if !self.is_atomic() || is_commit {
            self.written.transactions += 1;
            self.report = self.written.clone();
        }
        if is_commit {
            return Ok(ControlFlow::Continue(()));
        }
        let now = progress(&self.written, self.bulk.skip_rows, self.bulk.total);
        Ok(match &mut self.bulk.progress {
            Some(progress) => progress(now),
            None => ControlFlow::Continue(()),
        })
    }
}

/// Lets so many rows go by, and tells how many there were; or which one failed.
async fn skip<T>(rows: u64, source: &mut impl Source<T>) -> Result<u64, (Error, Place)> {
    let mut in_this_turn = 0;
    for row in 0..rows {
        let next = poll_fn(|context| {
            if in_this_turn >= ROWS_IN_A_TURN {
                in_this_turn = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            in_this_turn += 1;
            source.poll_row(true, context)
        });
        match next.await {
            None => return Ok(row),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let line = source.line();
                return Err((error, Place { row, line }));
            }
        }
    }
    Ok(rows)
}

/// What was refused, and among which rows.
fn refused(refusal: Refusal, places: &[Place]) -> (Error, &[Place]) {
    match refusal {
        Refusal::Step { step, error } => (error, places.get(step..=step).unwrap_or_default()),
        // Or nobody knows whether they are committed.
        Refusal::Whole(error)
            if error.is_constraint() || error.kind() == ErrorKind::OutcomeUnknown =>
        {
            (error, places)
        }
        refusal => (refusal.into_error(), &[]),
    }
}

/// The rows from the first of these to the last, and their lines.
fn among(places: &[Place]) -> (Range<u64>, Range<u64>) {
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return (0..0, 0..0);
    };
    let lines = if first.line == 0 {
        0..0
    } else {
        first.line..last.line + 1
    };
    (first.row..last.row + 1, lines)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "rates and estimates are not exact anyway"
)]
fn progress(report: &BulkReport, skipped: u64, total: Option<u64>) -> BulkProgress {
    let done = report.rows - skipped;
    let seconds = report.elapsed.as_secs_f64();
    let rows_per_second = if seconds > 0.0 {
        done as f64 / seconds
    } else {
        0.0
    };
    let remaining = total.filter(|_| rows_per_second > 0.0).and_then(|total| {
        let rows = total.saturating_sub(report.rows) as f64;
        Duration::try_from_secs_f64(rows / rows_per_second).ok()
    });
    BulkProgress {
        rows: report.rows,
        written: report.written,
        total,
        elapsed: report.elapsed,
        rows_per_second,
        remaining,
    }
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}
