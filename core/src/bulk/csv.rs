//! Records of CSV: where they end, and what is in them.

use csv::StringRecord;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use serde::de::DeserializeOwned;

use crate::{
    bulk::{bad_line::Fault, csv_fault, shape::is_struct},
    error::counted,
};

/// No table of SQLite has as many columns.
const MOST_FIELDS: usize = 65_536;

/// How a CSV file is written: separated by commas, quoted by `"` where needed, with the names of its columns on top,
/// unless told otherwise. Lines end with LF or CR LF, and empty ones are nothing.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Csv, Import};
///
/// # #[derive(Debug, Entity)]
/// # struct Plane { #[entity(id)] id: i64, tail: String, seats: Option<i64> }
/// # impl From<(String, Option<i64>)> for Plane {
/// #     fn from((tail, seats): (String, Option<i64>)) -> Self { Self { id: 0, tail, seats } }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Plane>().await?;
/// let csv = Csv::new().delimiter(b';').no_header().null("NA");
/// let import = Import::new("N10156;55\nN102UW;NA\n".as_bytes(), csv);
/// db.bulk_insert::<Plane>().run_import::<(String, Option<i64>)>(import).await?;
/// assert_eq!(Plane::query().filter(Plane::SEATS.is_null()).count(&db).await?, 1);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Csv {
    delimiter: u8,
    has_header: bool,
    trims: bool,
    null: Option<String>,
}

impl Default for Csv {
    fn default() -> Self {
        Self::new()
    }
}

impl Csv {
    /// With commas, and a header.
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
    /// let import = Import::new("id,price\n1,5\n".as_bytes(), Csv::new());
    /// let report = db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(report.written, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self {
            delimiter: b',',
            has_header: true,
            trims: false,
            null: None,
        }
    }

    /// What stands between the fields.
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
    /// let import = Import::new("id;price\n1;5\n".as_bytes(), Csv::new().delimiter(b';'));
    /// let report = db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(report.written, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// The first record is a row like any other: fields are taken in their order.
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
    /// let import = Import::new("1,5\n".as_bytes(), Csv::new().no_header());
    /// let report = db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(report.written, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn no_header(mut self) -> Self {
        self.has_header = false;
        self
    }

    /// Blanks at both ends of fields and of names in the header are cut off, inside of quotes too.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::bulk::{Csv, Import};
    ///
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let import = Import::new("id, name\n1, tea\n".as_bytes(), Csv::new().trim());
    /// db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(Item::find(&db, 1).await?.unwrap().name, "tea");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn trim(mut self) -> Self {
        self.trims = true;
        self
    }

    /// Fields with this text are read as empty ones, which are `None` for an `Option`.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # use anabranch::bulk::{Csv, Format, Import};
    /// # #[derive(Debug, Entity, serde::Deserialize)]
    /// # struct Item { #[entity(id)] id: i64, price: Option<i64> }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let import = Import::new("id,price\n1,NA\n".as_bytes(), Csv::new().null("NA"));
    /// db.bulk_insert::<Item>().run_import::<Item>(import).await?;
    /// assert_eq!(Item::query().one(&db).await?.price, None);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn null(mut self, text: impl Into<String>) -> Self {
        self.null = Some(text.into());
        self
    }
}

/// The records of a CSV file.
pub(in crate::bulk) struct CsvRecords {
    csv: Csv,
    reader: Reader,
    /// The fields of the record, one after the other, and their ends.
    fields: Vec<u8>,
    ends: Vec<usize>,
    used: usize,
    count: usize,
    record: StringRecord,
    header: Option<StringRecord>,
    width: Option<usize>,
}

impl CsvRecords {
    pub(in crate::bulk) fn new(csv: Csv) -> Self {
        let reader = ReaderBuilder::new().delimiter(csv.delimiter).build();
        Self {
            csv,
            reader,
            fields: vec![0; 1_024],
            ends: vec![0; 64],
            used: 0,
            count: 0,
            record: StringRecord::new(),
            header: None,
            width: None,
        }
    }

    /// Whether the next record is the header.
    pub(in crate::bulk) const fn wants_header(&self) -> bool {
        self.csv.has_header && self.header.is_none()
    }

    /// A record begins.
    pub(in crate::bulk) const fn begin(&mut self) {
        self.used = 0;
        self.count = 0;
    }

    /// Takes bytes, none at the end of the file, up to the end of the record: how many, and whether it ends there. Of a
    /// record that is `lost` only the end is looked for.
    pub(in crate::bulk) fn take(&mut self, mut input: &[u8], is_lost: bool) -> (usize, bool) {
        let mut taken = 0;
        loop {
            if is_lost {
                self.begin();
            }
            let fields = &mut self.fields[self.used..];
            let ends = &mut self.ends[self.count..];
            let (result, read, written, ended) = self.reader.read_record(input, fields, ends);
            taken += read;
            input = &input[read..];
            self.used += written;
            self.count += ended;
            match result {
                ReadRecordResult::InputEmpty => return (taken, false),
                ReadRecordResult::Record | ReadRecordResult::End => return (taken, true),
                ReadRecordResult::OutputFull => {
                    if !is_lost {
                        self.fields.resize(self.fields.len() * 2, 0);
                    }
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() < MOST_FIELDS => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                // Too many for any header: it is refused for their number.
                ReadRecordResult::OutputEndsFull => self.count -= 1,
            }
        }
    }

    /// Keeps the record as the header.
    pub(in crate::bulk) fn keep_header(&mut self) -> Result<(), Fault> {
        self.read(false)?;
        self.width = Some(self.record.len());
        self.header = Some(self.record.clone());
        Ok(())
    }

    /// Makes a row of the record.
    pub(in crate::bulk) fn row<Row: DeserializeOwned>(&mut self) -> Result<Row, Fault> {
        self.expect_width()?;
        self.read(true)?;
        let row = self.record.deserialize(self.header.as_ref());
        row.map_err(|error| self.fault::<Row>(&error))
    }

    fn fault<Row: DeserializeOwned>(&self, error: &csv::Error) -> Fault {
        let csv::ErrorKind::Deserialize { err, .. } = error.kind() else {
            return Fault::new("is not a record");
        };
        let message = err.kind().to_string();
        if let Some(header) = &self.header
            && let Some(missing) = csv_fault::missing(&message, header)
        {
            let fault = Fault::new(format!("{message}: {missing}"));
            return if is_struct::<Row>() {
                fault.of_all_lines()
            } else {
                fault
            };
        }
        let field = err.field().and_then(|field| usize::try_from(field).ok());
        let field =
            field.or_else(|| csv_fault::field::<Row>(&self.record, self.header.as_ref(), &message));
        Fault {
            column: field.map(|field| self.column(field)),
            ..Fault::new(Fault::without_values(&message))
        }
    }

    /// All records have as many fields as the first.
    pub(in crate::bulk) fn expect_width(&mut self) -> Result<(), Fault> {
        let width = *self.width.get_or_insert(self.count);
        if self.count == width {
            return Ok(());
        }
        let first = if self.csv.has_header {
            "the header"
        } else {
            "the first record"
        };
        let fields = counted(self.count, "field");
        Err(Fault::new(format!("has {fields}, {first} has {width}")))
    }

    /// The name of a field.
    fn column(&self, field: usize) -> String {
        let name = self.header.as_ref().and_then(|header| header.get(field));
        name.map_or_else(|| format!("field {}", field + 1), str::to_owned)
    }

    /// Reads the fields.
    fn read(&mut self, replaces_null: bool) -> Result<(), Fault> {
        let mut record = std::mem::take(&mut self.record).into_byte_record();
        record.clear();
        let null = self.csv.null.as_deref().filter(|_| replaces_null);
        let mut start = 0;
        for end in &self.ends[..self.count] {
            let field = &self.fields[start..*end];
            let field = if self.csv.trims {
                field.trim_ascii()
            } else {
                field
            };
            let is_null = null.is_some_and(|null| null.as_bytes() == field);
            record.push_field(if is_null { &[] } else { field });
            start = *end;
        }
        self.record = StringRecord::from_byte_record(record).map_err(|error| Fault {
            column: Some(self.column(error.utf8_error().field())),
            ..Fault::new("is not UTF-8")
        })?;
        Ok(())
    }
}
