//! The builder of bulk operations.

use std::{convert::Infallible, fmt, ops::ControlFlow, panic::Location, pin::pin};

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};

use crate::{
    bulk::{
        BulkError, BulkOperation, BulkProgress, BulkReport, Inserting, Updating,
        run::{CHUNK_ROWS, run},
        source::{Rows, Source},
    },
    engine::{Engine, Hold},
    entity::{Column, Entity},
    error::{ApplicationError, Result},
};

/// A bulk operation that is being described; one of its ends, such as [`run`](Bulk::run), does it.
///
/// See [the module](crate::bulk) for what all have in common.
#[must_use = "a bulk operation does nothing until it is run"]
pub struct Bulk<'p, O> {
    pub(in crate::bulk) engine: Engine,
    pub(in crate::bulk) at: &'static Location<'static>,
    pub(in crate::bulk) operation: O,
    pub(in crate::bulk) chunk_rows: usize,
    pub(in crate::bulk) hold: Hold,
    pub(in crate::bulk) skip_rows: u64,
    pub(in crate::bulk) total: Option<u64>,
    pub(in crate::bulk) progress: Option<Progress<'p>>,
}

type Progress<'p> = Box<dyn FnMut(BulkProgress) -> ControlFlow<()> + Send + 'p>;

impl<'p, O: BulkOperation> Bulk<'p, O> {
    pub(crate) fn new(engine: Engine, at: &'static Location<'static>, operation: O) -> Self {
        Self {
            engine,
            at,
            operation,
            chunk_rows: CHUNK_ROWS,
            hold: Hold::Chunk,
            skip_rows: 0,
            total: None,
            progress: None,
        }
    }

    /// How many rows a transaction has: 1,000 unless told otherwise, and at least one. More do not make it much faster,
    /// and keep others waiting for longer. Rows with large values end a chunk early, at eight megabytes.
    pub fn chunk_rows(mut self, rows: usize) -> Self {
        self.chunk_rows = rows.max(1);
        self
    }

    /// Keeps the writer from the first row that is not [skipped](Self::skip_rows) to the last: nobody else of this process
    /// writes meanwhile. Chunks are transactions of their own all the same. Who waits for the writer for longer than
    /// [`queue_timeout`](crate::database::DatabaseBuilder::queue_timeout) meanwhile gets an error. A source that writes to the
    /// same database itself gets one at once, of the kind [`Nested`](crate::error::ErrorKind::Nested); if it has another task do so, that
    /// task waits for the timeout.
    pub const fn exclusive(mut self) -> Self {
        if matches!(self.hold, Hold::Chunk) {
            self.hold = Hold::Slot;
        }
        self
    }

    /// Writes all rows in one transaction, or none; nobody else of this process writes meanwhile. The log grows by all that
    /// is written, and progress tells of rows that are not committed yet.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let items = (0..5_000).map(|n| Item { id: 0, name: (n % 4_000).to_string() });
    /// let failed = db.bulk_insert().atomic().run(items).await.unwrap_err();
    /// assert_eq!((failed.row(), failed.report().written), (Some(4_000), 0));
    /// assert_eq!(Item::query().count(&db).await?, 0);
    /// # Ok(()) }
    /// ```
    pub const fn atomic(mut self) -> Self {
        self.hold = Hold::Transaction;
        self
    }

    /// Leaves out this many rows at the beginning of the source: those that a [report](BulkReport::rows) says are done.
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
    /// let report = db.bulk_insert().skip_rows(200).run(items(250)).await?;
    /// assert_eq!((report.rows, report.written), (250, 50));
    /// # Ok(()) }
    /// ```
    pub const fn skip_rows(mut self, rows: u64) -> Self {
        self.skip_rows = rows;
        self
    }

    /// How many rows the source has, for the estimate of the time that remains. Iterators that know it need not be told.
    pub const fn expect_rows(mut self, rows: u64) -> Self {
        self.total = Some(rows);
        self
    }

    /// Calls this after each transaction, on the calling task. `ControlFlow::Break` stops the operation: the chunk that is
    /// being written meanwhile is finished, one that waits for the writer is not begun, and the report says how far it came. Of [`atomic`](Self::atomic) ones nothing stays.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use std::ops::ControlFlow;
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let items = (0..100_000).map(|n| Item { id: 0, name: n.to_string() });
    /// let report = db
    ///     .bulk_insert()
    ///     .on_progress(|progress| {
    ///         println!("{} of {:?}, {:?} to go", progress.rows, progress.total, progress.remaining);
    ///         if progress.rows >= 5_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    ///     })
    ///     .run(items)
    ///     .await?;
    /// assert!(!report.is_complete);
    /// assert_eq!(Item::query().count(&db).await?, report.written);
    /// # Ok(()) }
    /// ```
    pub fn on_progress(
        mut self,
        progress: impl FnMut(BulkProgress) -> ControlFlow<()> + Send + 'p,
    ) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Runs it with the rows of an iterator.
    ///
    /// # Errors
    ///
    /// A [`BulkError`] with the row: `Value` for what cannot be stored, the kinds of constraints, `Constraint` also where a
    /// trigger (`RAISE(IGNORE)`) keeps a row as it is, `Conflict` for an update whose row is gone or has another version; and
    /// what writing can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it stops: what was committed stays, the chunk that is being written is committed or not, and one
    /// that still waits for the writer is not written.
    pub async fn run(
        self,
        rows: impl IntoIterator<Item = O::Item, IntoIter: Send>,
    ) -> Result<BulkReport, BulkError> {
        self.run_try(rows.into_iter().map(Ok::<_, Infallible>))
            .await
    }

    /// Runs it with the rows of an iterator that may fail, such as a reader of lines. Rows before the failure are written,
    /// unless it is [`atomic`](Self::atomic).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); an error of the iterator has the kind `Application`, and is its source.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let items = "3 5 x 7".split(' ').map(|price| price.parse().map(|price| Item { id: 0, price }));
    /// let failed = db.bulk_insert().run_try(items).await.unwrap_err();
    /// assert_eq!((failed.kind(), failed.row()), (ErrorKind::Application, Some(2)));
    /// assert_eq!(failed.report().written, 2);
    /// # Ok(()) }
    /// ```
    pub async fn run_try<X: Into<ApplicationError>>(
        mut self,
        rows: impl IntoIterator<Item = Result<O::Item, X>, IntoIter: Send>,
    ) -> Result<BulkReport, BulkError> {
        let rows = rows.into_iter();
        if let (least, Some(most)) = rows.size_hint()
            && least == most
        {
            self.total.get_or_insert(most as u64);
        }
        self.run_try_stream(stream::iter(rows)).await
    }

    /// Runs it with the rows of a stream.
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
    /// let (send, receive) = tokio::sync::mpsc::channel(10);
    /// tokio::spawn(async move {
    ///     for item in items(250) {
    ///         send.send(item).await.unwrap(); // as they come
    ///     }
    /// });
    /// let received = futures_util::stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)));
    /// assert_eq!(db.bulk_insert().run_stream(received).await?.written, 250);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_stream(
        self,
        rows: impl Stream<Item = O::Item> + Send,
    ) -> Result<BulkReport, BulkError> {
        self.run_try_stream(rows.map(Ok::<_, Infallible>)).await
    }

    /// Runs it with the rows of a stream that may fail. Rows before the failure are written, unless it is
    /// [`atomic`](Self::atomic).
    ///
    /// # Errors
    ///
    /// As [`run_try`](Self::run_try).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_try_stream<X: Into<ApplicationError>>(
        self,
        rows: impl Stream<Item = Result<O::Item, X>> + Send,
    ) -> Result<BulkReport, BulkError> {
        self.run_source(Rows(pin!(rows))).await
    }

    /// Runs it with the rows of a source.
    pub(in crate::bulk) async fn run_source(
        self,
        mut source: impl Source<O::Item>,
    ) -> Result<BulkReport, BulkError> {
        let ended = run(self, &mut source).await;
        source.complete(ended)
    }
}

impl<E: Entity> Bulk<'_, Inserting<E>> {
    /// Passes over rows for which another one with the same key, or the same unique values, is there, and those that a
    /// trigger passes over (`RAISE(IGNORE)`). Other constraints stay errors. The report has their
    /// [number](BulkReport::passed_over) and the [first of them](BulkReport::first_passed_over).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Word { #[entity(id)] id: i64, #[entity(unique)] text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Word>().await?;
    /// let words = "tea cake tea".split(' ').map(|text| Word { id: 0, text: text.into() });
    /// let report = db.bulk_insert().skip_conflicts().run(words).await?;
    /// assert_eq!((report.written, report.passed_over), (2, 1));
    /// assert_eq!(report.first_passed_over[0].row, 2);
    /// # Ok(()) }
    /// ```
    pub fn skip_conflicts(mut self) -> Self {
        self.operation.skip_conflicts();
        self
    }
}

impl<E: Entity> Bulk<'_, Updating<E>> {
    /// Sets this column; called again, another one too. Without it all are set but the key, `created_at`, and what the
    /// library or the database keeps.
    pub fn set<T>(mut self, column: Column<E, T>) -> Self {
        self.operation.set(column);
        self
    }

    /// Passes over entities whose rows are gone, or have another version. A row that is there and that a trigger keeps as it
    /// is (`RAISE(IGNORE)`) stays an error. The report tells of them as of [conflicts that are
    /// skipped](Bulk::skip_conflicts).
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
    /// db.bulk_insert_optimized(items(1)).await?;
    /// let named = [1, 2].map(|id| Item { id, name: "tea".into() });
    /// let report = db.bulk_update().skip_missing().run(named).await?;
    /// assert_eq!((report.written, report.passed_over), (1, 1));
    /// # Ok(()) }
    /// ```
    pub fn skip_missing(mut self) -> Self {
        self.operation.skip_missing();
        self
    }
}

impl<O: fmt::Debug> fmt::Debug for Bulk<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk")
            .field("operation", &self.operation)
            .field("chunk_rows", &self.chunk_rows)
            .field("hold", &self.hold)
            .field("skip_rows", &self.skip_rows)
            .finish_non_exhaustive()
    }
}
