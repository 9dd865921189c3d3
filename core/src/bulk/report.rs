//! What a bulk operation tells: while it runs, when it has ended, and when it failed.

use std::{error, fmt, ops::Range, time::Duration};

use crate::{
    bulk::BadLine,
    error::{Error, ErrorKind},
};

/// How far a bulk operation is, told after each transaction.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
/// let insert = db.bulk_insert().on_progress(|progress| {
///     println!("{} of {:?} rows, {:.0} a second", progress.rows, progress.total, progress.rows_per_second);
///     std::ops::ControlFlow::Continue(())
/// });
/// insert.run(items(2_500)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BulkProgress {
    /// The rows of the source that are done: those that were skipped at its beginning, written or passed over.
    pub rows: u64,
    /// How many rows were inserted, updated or deleted.
    pub written: u64,
    /// How many rows the source has in all, where that is known: from the iterator, or [`expect_rows`](super::Bulk::expect_rows).
    pub total: Option<u64>,
    /// Since the beginning.
    pub elapsed: Duration,
    /// Rows that were done, of each second since the beginning.
    pub rows_per_second: f64,
    /// For how long it will go on at this rate, where the total is known.
    pub remaining: Option<Duration>,
}

/// A row of the source that was passed over.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Format, Import};
///
/// # #[derive(Debug, Entity, serde::Deserialize)]
/// # struct Item { #[entity(id)] id: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// let import = Import::new("{\"id\": 1}\n\n{\"id\": 1}\n".as_bytes(), Format::Ndjson);
/// let report = db.bulk_insert::<Item>().skip_conflicts().run_import::<Item>(import).await?;
/// let passed = report.first_passed_over[0];
/// assert_eq!((passed.row, passed.line), (1, Some(3)));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassedOver {
    /// The row, counted from 0.
    pub row: u64,
    /// The line of an [`Import`](super::Import) in which it begins, counted from 1.
    pub line: Option<u64>,
}

/// What a bulk operation has done.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
/// let report = db.bulk_insert_optimized(items(2_500)).await?;
/// assert!(report.is_complete);
/// assert_eq!((report.rows, report.written, report.transactions), (2_500, 2_500, 3));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BulkReport {
    /// The rows of the source that are done, those among them that were [skipped at its
    /// beginning](super::Bulk::skip_rows): where to go on.
    pub rows: u64,
    /// How many rows were inserted, updated or deleted. Of a view, how many its triggers were given: SQLite does not tell
    /// what they did.
    pub written: u64,
    /// How many others were passed over: conflicts that are skipped, rows that were not to be changed or are not there.
    pub passed_over: u64,
    /// The first hundred of these.
    pub first_passed_over: Vec<PassedOver>,
    /// How many lines of an [`Import`](super::Import) could not be read and were left out.
    pub bad_lines: u64,
    /// The first of them: a hundred, unless [told otherwise](super::Import::keep_bad_lines).
    pub first_bad_lines: Vec<BadLine>,
    /// The transactions that were committed.
    pub transactions: u64,
    /// From the beginning to the end.
    pub elapsed: Duration,
    /// Whether it came to the end of the source; else it was stopped.
    pub is_complete: bool,
}

impl BulkReport {
    /// Rows that were written or passed over, of each second.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
    /// let report = db.bulk_insert_optimized(items(2_500)).await?;
    /// println!("{} rows, {:.0} a second", report.written, report.rows_per_second());
    /// # Ok(()) }
    /// ```
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a rate is not exact anyway")]
    pub fn rows_per_second(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 {
            (self.written + self.passed_over) as f64 / seconds
        } else {
            0.0
        }
    }
}

/// Why a bulk operation ended early, at which row, and what it had done. What is committed stays; nothing of the
/// transaction in which it failed does. Of the kind [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) alone nobody knows: look whether
/// [the rows](Self::rows) are there before going on.
///
/// It becomes an [`Error`] of the same kind where `?` asks for one, which tells the same.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// let items = |names: &'static [&str]| names.iter().map(|name| Item { id: 0, name: (*name).into() });
/// let names = &["tea", "cake", "tea", "jam"];
/// let failed = db.bulk_insert().chunk_rows(2).run(items(names)).await.unwrap_err();
/// assert_eq!((failed.kind(), failed.row()), (ErrorKind::Unique, Some(2)));
/// assert_eq!(failed.report().rows, 2);
///
/// // Mended, it goes on behind what is committed.
/// let names = &["tea", "cake", "pie", "jam"];
/// db.bulk_insert().skip_rows(failed.report().rows).run(items(names)).await?;
/// assert_eq!(Item::query().count(&db).await?, 4);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BulkError {
    // A box, so that results stay small.
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    error: Error,
    /// The rows among which it is, counted from 0.
    rows: Range<u64>,
    /// The lines in which they begin, counted from 1; none where there are no lines.
    lines: Range<u64>,
    report: BulkReport,
}

impl BulkError {
    pub(in crate::bulk) fn new(
        error: Error,
        rows: Range<u64>,
        lines: Range<u64>,
        report: BulkReport,
    ) -> Self {
        Self {
            inner: Box::new(Inner {
                error,
                rows,
                lines,
                report,
            }),
        }
    }

    /// What went wrong.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = ["tea", "cake", "tea"].map(|name| Item { id: 0, name: name.into() });
    /// let failed = db.bulk_insert().run(items).await.unwrap_err();
    /// assert_eq!(failed.kind(), ErrorKind::Unique);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.error.kind()
    }

    /// The row of the source that failed, counted from 0; `None` if it is one of [several](Self::rows).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = ["tea", "cake", "tea"].map(|name| Item { id: 0, name: name.into() });
    /// let failed = db.bulk_insert().run(items).await.unwrap_err();
    /// assert_eq!(failed.row(), Some(2));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn row(&self) -> Option<u64> {
        (self.inner.rows.end - self.inner.rows.start == 1).then_some(self.inner.rows.start)
    }

    /// The rows of the source, counted from 0, among which the one is that failed: all of a transaction where SQLite found
    /// it only at its end; none where it is not about a row.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = ["tea", "cake", "tea"].map(|name| Item { id: 0, name: name.into() });
    /// let failed = db.bulk_insert().run(items).await.unwrap_err();
    /// assert_eq!(failed.rows(), 2..3);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn rows(&self) -> Range<u64> {
        self.inner.rows.clone()
    }

    /// The line of an [`Import`](super::Import) in which that row begins, counted from 1.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # use anabranch::bulk::{Csv, Format, Import};
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let import = Import::new("id,price\n1,5\n2,much\n".as_bytes(), Csv::new());
    /// let failed = db.bulk_insert::<Item>().run_import::<Item>(import).await.unwrap_err();
    /// assert_eq!((failed.row(), failed.line()), (Some(1), Some(3)));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        let lines = &self.inner.lines;
        (self.row().is_some() && !lines.is_empty()).then_some(lines.start)
    }

    /// What is committed.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = ["tea", "cake", "tea"].map(|name| Item { id: 0, name: name.into() });
    /// let failed = db.bulk_insert().run(items).await.unwrap_err();
    /// assert_eq!((failed.report().rows, failed.report().written), (0, 0)); // one transaction, undone
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn report(&self) -> &BulkReport {
        &self.inner.report
    }

    pub(in crate::bulk) fn report_mut(&mut self) -> &mut BulkReport {
        &mut self.inner.report
    }

    /// The error itself.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = ["tea", "cake", "tea"].map(|name| Item { id: 0, name: name.into() });
    /// let failed = db.bulk_insert().run(items).await.unwrap_err();
    /// assert_eq!(failed.error().table(), Some("item"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.inner.error
    }
}

impl Inner {
    /// Which row it is.
    fn place(&self) -> String {
        let Range { start, end } = self.rows;
        let lines = &self.lines;
        match (end - start, lines.is_empty()) {
            (0, _) => String::new(),
            (1, true) => format!("row {start}: "),
            (1, false) => format!("line {} (row {start}): ", lines.start),
            (_, true) => format!("rows {start} to {}: ", end - 1),
            (_, false) => format!(
                "lines {} to {} (rows {start} to {}): ",
                lines.start,
                lines.end - 1,
                end - 1
            ),
        }
    }

    /// What is done.
    fn done(&self) -> String {
        let BulkReport { rows, written, .. } = self.report;
        let rows = if rows == 1 {
            "1 row is".to_owned()
        } else {
            format!("{rows} rows are")
        };
        format!(" ({rows} done, {written} written)")
    }
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.inner;
        write!(f, "{}{}{}", inner.place(), inner.error, inner.done())
    }
}

impl error::Error for BulkError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.inner.error)
    }
}

/// The same error, which tells the row and what is done too; one of the application has this one as its source.
impl From<BulkError> for Error {
    fn from(failed: BulkError) -> Self {
        if failed.kind() == ErrorKind::Application {
            return Self::application(failed);
        }
        let (before, after) = (failed.inner.place(), failed.inner.done());
        failed.inner.error.between(&before, &after)
    }
}
