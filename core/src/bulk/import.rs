//! Files and streams of lines, whose rows a bulk operation takes.

use std::{fmt, fs::File, io::Read, path::Path};

use futures_core::Stream;
use serde::de::DeserializeOwned;

#[cfg(feature = "csv")]
use crate::bulk::Csv;
use crate::{
    bulk::{
        Bulk, BulkError, BulkOperation, BulkReport,
        bad_line::Rejects,
        feed::{Reading, Streaming},
        lines::Lines,
    },
    error::{ApplicationError, Error, ErrorKind, Result},
};

/// How long a line may be unless told otherwise.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// How many bad lines a report has unless told otherwise.
const KEPT_BAD_LINES: usize = 100;

/// What the lines of an [`Import`] are.
///
/// ```
/// use anabranch::bulk::{Format, Import};
///
/// let lines = "{\"name\": \"tea\"}\n{\"name\": \"cake\"}\n";
/// let import = Import::new(lines.as_bytes(), Format::Ndjson);
/// # let _ = import;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Format {
    /// Records of CSV. Needs the feature `csv`.
    #[cfg(feature = "csv")]
    Csv(Csv),
    /// A JSON value in each line, mostly an object; also called JSON lines.
    Ndjson,
}

#[cfg(feature = "csv")]
impl From<Csv> for Format {
    fn from(csv: Csv) -> Self {
        Self::Csv(csv)
    }
}

/// Lines, and what to do about those that cannot be read.
///
/// Rows are made by serde, of any type that becomes what the operation takes by `From` or `TryFrom`: an entity that derives
/// `Deserialize`, or a struct beside it that has the names and types of the file. It is read as it is written, in memory
/// that does not grow with it.
///
/// # Bad lines
///
/// A line is bad where it is not CSV or JSON or not UTF-8, has too many fields or too few, lacks a column, has a value
/// of another type, is longer than [`longest_line`](Self::longest_line), where `TryFrom` fails, and where a value cannot be stored (a text with NUL, a NaN). The first
/// one ends the import: the error has the line and the column, rows before it are written. Or all are left out:
/// [`skip_bad_lines`](Self::skip_bad_lines), [`reject_to`](Self::reject_to).
///
/// What the database refuses is no bad line but an error, which tells the line too ([`BulkError::line`]); rows that are
/// there already can be passed over ([`skip_conflicts`](Bulk::skip_conflicts)).
///
/// # Rows and lines
///
/// Each record is a row, a bad one too; the header and empty lines are none. So a report's
/// [`rows`](BulkReport::rows) count what was read of the file, and [`skip_rows`](Bulk::skip_rows) goes on from there. A quoted field
/// may have several lines: the record is in the line where it begins.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Csv, Import};
///
/// #[derive(Debug, Entity)]
/// struct Airport {
///     #[entity(id)]
///     id: i64,
///     code: String,
///     altitude: Option<f64>,
/// }
///
/// /// A line of the file: other names, nothing of keys, feet.
/// #[derive(serde::Deserialize)]
/// struct Line {
///     faa: String,
///     alt: Option<f64>,
/// }
///
/// impl From<Line> for Airport {
///     fn from(line: Line) -> Self {
///         Self { id: 0, code: line.faa, altitude: line.alt.map(|feet| feet * 0.3048) }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Airport>().await?;
/// let file = "faa,name,alt\nJFK,\"New York,\nJohn F. Kennedy\",13\nLGA,La Guardia,low\n";
/// let import = || Import::new(file.as_bytes(), Csv::new());
/// let failed = db.bulk_insert::<Airport>().run_import::<Line>(import()).await.unwrap_err();
/// assert_eq!((failed.kind(), failed.line()), (ErrorKind::BadLine, Some(4)));
/// assert_eq!((failed.error().column(), failed.report().written), (Some("alt"), 1));
///
/// let rest = db.bulk_insert::<Airport>().skip_rows(failed.report().rows);
/// let report = rest.run_import::<Line>(import().skip_bad_lines()).await?;
/// assert_eq!((report.rows, report.written, report.bad_lines), (2, 0, 1));
/// # Ok(()) }
/// ```
#[must_use = "an import does nothing until a bulk operation runs it"]
pub struct Import<R> {
    source: R,
    pub(in crate::bulk) options: ImportOptions,
}

/// How lines are read.
#[derive(Debug)]
pub(in crate::bulk) struct ImportOptions {
    pub(in crate::bulk) format: Format,
    pub(in crate::bulk) longest_line: usize,
    pub(in crate::bulk) max_rows: u64,
    pub(in crate::bulk) max_bytes: u64,
    /// How many bytes there are, where that is known before they are read.
    pub(in crate::bulk) bytes: u64,
    pub(in crate::bulk) skips_bad_lines: bool,
    pub(in crate::bulk) max_bad_lines: u64,
    pub(in crate::bulk) kept_bad_lines: usize,
    pub(in crate::bulk) rejects: Option<Rejects>,
}

impl<R> Import<R> {
    /// An import of what a reader reads ([`run_import`](Bulk::run_import)), or a stream brings
    /// ([`run_import_stream`](Bulk::run_import_stream)). A reader needs no buffer of its own.
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
    /// let import = Import::new("{\"id\": 1, \"price\": 5}\n".as_bytes(), Format::Ndjson);
    /// assert_eq!(db.bulk_insert::<Item>().run_import::<Item>(import).await?.written, 1);
    /// # Ok(()) }
    /// ```
    pub fn new(source: R, format: impl Into<Format>) -> Self {
        Self {
            source,
            options: ImportOptions {
                format: format.into(),
                longest_line: LONGEST_LINE,
                max_rows: u64::MAX,
                max_bytes: u64::MAX,
                bytes: 0,
                skips_bad_lines: false,
                max_bad_lines: u64::MAX,
                kept_bad_lines: KEPT_BAD_LINES,
                rejects: None,
            },
        }
    }

    /// Leaves bad lines out, but for a column that the header lacks: then no line can be read. The report has their [number](BulkReport::bad_lines) and the [first of
    /// them](BulkReport::first_bad_lines).
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
    /// let import = Import::new("id,price\n1,5\n2,much\n3,more\n".as_bytes(), Csv::new());
    /// let report = db.bulk_insert::<Item>().run_import::<Item>(import.skip_bad_lines()).await?;
    /// assert_eq!((report.written, report.bad_lines), (1, 2));
    /// # Ok(()) }
    /// ```
    pub const fn skip_bad_lines(mut self) -> Self {
        self.options.skips_bad_lines = true;
        self
    }

    /// Leaves this many bad lines out; one more ends the import, as the first does otherwise.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # use anabranch::bulk::{Format, Import};
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let import = Import::new("{\"id\": 1}\n{}\n{\"id\": 3}\n{}\n".as_bytes(), Format::Ndjson);
    /// let failed = db.bulk_insert::<Item>().run_import::<Item>(import.max_bad_lines(1)).await.unwrap_err();
    /// assert_eq!((failed.line(), failed.report().written, failed.report().bad_lines), (Some(4), 2, 1));
    /// # Ok(()) }
    /// ```
    pub const fn max_bad_lines(mut self, lines: u64) -> Self {
        self.options.max_bad_lines = lines;
        self.skip_bad_lines()
    }

    /// How many bad lines the report has: a hundred unless told otherwise. All are counted.
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
    /// let import = Import::new("id,price\n1,5\n2,much\n3,more\n".as_bytes(), Csv::new());
    /// let import = import.skip_bad_lines().keep_bad_lines(1);
    /// let report = db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!((report.bad_lines, report.first_bad_lines.len()), (2, 1));
    /// # Ok(()) }
    /// ```
    pub const fn keep_bad_lines(mut self, lines: usize) -> Self {
        self.options.kept_bad_lines = lines;
        self
    }

    /// Leaves bad lines out, and appends them to a file as they are, below the header: mended, it can be imported itself.
    /// Beside it, in a file with `.reasons` behind its name, stands what is wrong with each. Both are on the disk before the import returns.
    ///
    /// Where an import is [resumed](Bulk::skip_rows), a bad line may be there twice; none is missing.
    ///
    /// # Errors
    ///
    /// `Io` if the files cannot be opened.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::bulk::{Csv, Import};
    ///
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("bad.csv");
    /// let import = Import::new("id,price\n1,5\n2,much\n".as_bytes(), Csv::new()).reject_to(&path)?;
    /// db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "id,price\n2,much\n");
    /// let reasons = std::fs::read_to_string(folder.path().join("bad.csv.reasons"))?;
    /// assert_eq!(reasons, "line 3, price: invalid digit found in string\n");
    /// # Ok(()) }
    /// ```
    pub fn reject_to(mut self, path: impl AsRef<Path>) -> Result<Self> {
        self.options.rejects = Some(Rejects::open(path.as_ref())?);
        Ok(self.skip_bad_lines())
    }

    /// How many bytes a line may have, a record with all its lines: 16 MB unless told otherwise. So a file without ends of
    /// lines, or with a quote that is never closed, does not fill the memory.
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
    /// let import = Import::new("id,price\n1,5\n".as_bytes(), Csv::new()).longest_line(5);
    /// let failed = db.bulk_insert::<Item>().run_import::<Item>(import).await.unwrap_err();
    /// assert_eq!((failed.kind(), failed.report().written), (ErrorKind::BadLine, 0));
    /// # Ok(()) }
    /// ```
    pub const fn longest_line(mut self, bytes: usize) -> Self {
        self.options.longest_line = bytes;
        self
    }

    /// How many rows there may be. The first one beyond is an error of the kind `TooBig`; those before it are written.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # use anabranch::bulk::{Format, Import};
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let import = Import::new("{\"id\": 1}\n{\"id\": 2}\n".as_bytes(), Format::Ndjson).max_rows(1);
    /// let failed = db.bulk_insert::<Item>().run_import::<Item>(import).await.unwrap_err();
    /// assert_eq!((failed.kind(), failed.report().written), (ErrorKind::TooBig, 1));
    /// # Ok(()) }
    /// ```
    pub const fn max_rows(mut self, rows: u64) -> Self {
        self.options.max_rows = rows;
        self
    }

    /// How many bytes there may be: more are an error of the kind `TooBig`. What was read before is written, unless it is known
    /// in advance how many there are.
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
    /// let import = Import::new("id,price\n1,5\n".as_bytes(), Csv::new()).max_bytes(10);
    /// let failed = db.bulk_insert::<Item>().run_import::<Item>(import).await.unwrap_err();
    /// assert_eq!(failed.kind(), ErrorKind::TooBig);
    /// # Ok(()) }
    /// ```
    pub const fn max_bytes(mut self, bytes: u64) -> Self {
        self.options.max_bytes = bytes;
        self
    }
}

impl Import<File> {
    /// An import of a file.
    ///
    /// # Errors
    ///
    /// `CannotOpen` if the file cannot be opened.
    ///
    /// ```
    /// use anabranch::{bulk::{Format, Import}, error::ErrorKind};
    ///
    /// let error = Import::open("no/such/file.ndjson", Format::Ndjson).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::CannotOpen);
    /// ```
    pub fn open(path: impl AsRef<Path>, format: impl Into<Format>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            let text = format!("{} cannot be read: {error}", path.display());
            Error::new(ErrorKind::CannotOpen, text).with_source(error)
        })?;
        Ok(Self::new(file, format))
    }
}

impl<R> fmt::Debug for Import<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<O: BulkOperation> Bulk<'_, O> {
    /// Runs it with the rows of an import, which `Row` is read from by serde. Reads on the calling task, as an
    /// iterator would.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); `BadLine` for a [bad line](Import#bad-lines) and `Value` for a value that cannot be stored,
    /// unless they are left out; `TooBig` beyond a limit, `Io` where reading fails.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::bulk::{Format, Import};
    ///
    /// #[derive(Debug, Entity, serde::Deserialize)]
    /// struct Item {
    ///     #[entity(id)]
    ///     #[serde(default)]
    ///     id: i64,
    ///     name: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let lines = "{\"name\": \"tea\"}\n{\"name\": \"cake\"}\n";
    /// let import = Import::new(lines.as_bytes(), Format::Ndjson);
    /// let report = db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(report.written, 2);
    /// # Ok(()) }
    /// ```
    pub async fn run_import<Row>(
        self,
        import: Import<impl Read + Send>,
    ) -> Result<BulkReport, BulkError>
    where
        Row: DeserializeOwned + TryInto<O::Item, Error: Into<ApplicationError>>,
    {
        let feed = Reading::new(import.source);
        self.run_source(Lines::<_, Row>::new(feed, import.options))
            .await
    }

    /// Runs it with the rows of an import whose bytes come from a stream. Nothing more is taken from it than is written: it
    /// is never more than a few chunks ahead.
    ///
    /// # Errors
    ///
    /// As [`run_import`](Self::run_import); an error of the stream has the kind `Application`, and is its source. The line
    /// that it cut is not written.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # use anabranch::bulk::{Format, Import};
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let pieces = ["{\"id\": 1, \"na", "me\": \"tea\"}\n{\"id\": 2,", "\"name\": \"cake\"}"];
    /// let stream = futures_util::stream::iter(pieces.map(Ok::<_, std::io::Error>));
    /// let import = Import::new(stream, Format::Ndjson);
    /// let report = db.bulk_insert::<Item>().run_import_stream::<Item>(import).await?;
    /// assert_eq!(report.written, 2);
    /// # Ok(()) }
    /// ```
    pub async fn run_import_stream<Row>(
        self,
        import: Import<
            impl Stream<Item = Result<impl AsRef<[u8]> + Send, impl Into<ApplicationError>>> + Send,
        >,
    ) -> Result<BulkReport, BulkError>
    where
        Row: DeserializeOwned + TryInto<O::Item, Error: Into<ApplicationError>>,
    {
        let feed = Streaming::new(import.source);
        self.run_source(Lines::<_, Row>::new(feed, import.options))
            .await
    }
}
