//! Lines that cannot be read, and the file that keeps them.

use std::{
    ffi::OsString,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use crate::error::{Error, ErrorKind, Result};

/// A line that could not be read, and why. It tells no values.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Format, Import};
///
/// # #[derive(Debug, Entity, serde::Deserialize)]
/// # struct Item { #[entity(id)] id: i64, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// let file = "{\"id\": 1, \"price\": 5}\n{\"id\": 2, \"price\": \"much\"}\n";
/// let import = Import::new(file.as_bytes(), Format::Ndjson).skip_bad_lines();
/// let report = db.bulk_insert::<Item>().run_import::<Item>(import).await?;
/// assert_eq!((report.rows, report.written, report.bad_lines), (2, 1, 1));
/// let bad = &report.first_bad_lines[0];
/// assert_eq!((bad.line, bad.column.as_deref()), (2, Some("price")));
/// assert_eq!(bad.to_string(), "line 2, price: invalid type: string, expected i64");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadLine {
    /// The line in which it begins, counted from 1.
    pub line: u64,
    /// The row of the source, counted from 0.
    pub row: u64,
    /// The column, where it is known.
    pub column: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = &self.column {
            write!(f, ", {column}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// What is wrong with a line.
#[derive(Debug)]
pub(in crate::bulk) struct Fault {
    pub(in crate::bulk) column: Option<String>,
    pub(in crate::bulk) reason: String,
    /// It is the same with all lines, so that the import ends, whatever becomes of bad ones.
    pub(in crate::bulk) is_of_all_lines: bool,
}

impl Fault {
    pub(in crate::bulk) fn new(reason: impl Into<String>) -> Self {
        Self {
            column: None,
            reason: reason.into(),
            is_of_all_lines: false,
        }
    }

    /// No line can be read.
    pub(in crate::bulk) fn of_all_lines(self) -> Self {
        Self {
            is_of_all_lines: true,
            ..self
        }
    }

    /// A value that cannot be stored.
    pub(in crate::bulk) fn of(error: &Error) -> Self {
        let text = error.to_string();
        let place = match (error.table(), error.column()) {
            (Some(table), Some(column)) => format!("{table}.{column}: "),
            _ => String::new(),
        };
        Self {
            column: error.column().map(str::to_owned),
            ..Self::new(text.strip_prefix(&place).unwrap_or(&text))
        }
    }

    /// What serde says of a value, without the value.
    pub(in crate::bulk) fn without_values(message: &str) -> String {
        for start in ["invalid type: ", "invalid value: ", "unknown variant"] {
            if let Some(rest) = message.strip_prefix(start)
                && let Some(end) = rest.rfind(", expected ")
            {
                let kind = rest.split(['"', '`']).next().unwrap_or_default();
                let kind = kind[..kind.len().min(end)].trim_end();
                return format!("{start}{kind}{}", &rest[end..]);
            }
        }
        message.to_owned()
    }

    pub(in crate::bulk) fn into_error(self) -> Error {
        let error = Error::new(ErrorKind::BadLine, self.reason);
        match self.column {
            Some(column) => error.with_column(column),
            None => error,
        }
    }
}

/// The file that keeps bad lines as they are, and the one beside it that says what is wrong with each.
#[derive(Debug)]
pub(in crate::bulk) struct Rejects {
    lines: File,
    reasons: File,
    path: PathBuf,
    /// Nothing is in it yet: a header belongs on top.
    is_empty: bool,
    is_synced: bool,
}

impl Rejects {
    pub(in crate::bulk) fn open(path: &Path) -> Result<Self> {
        let mut beside = OsString::from(path);
        beside.push(".reasons");
        let open = || {
            let lines = open(path)?;
            let is_empty = lines.metadata()?.len() == 0;
            Ok((lines, is_empty, open(Path::new(&beside))?))
        };
        let (lines, is_empty, reasons) =
            open().map_err(|error| failed(path, "cannot be opened", error))?;
        Ok(Self {
            lines,
            reasons,
            path: path.to_owned(),
            is_empty,
            is_synced: true,
        })
    }

    /// Writes a part of a line.
    pub(in crate::bulk) fn write(&mut self, header: &[u8], part: &[u8]) -> Result<()> {
        self.is_synced = false;
        let is_empty = std::mem::take(&mut self.is_empty);
        let result = if is_empty && !header.is_empty() {
            let top = [header, b"\n"].concat();
            self.lines.write_all(&top)
        } else {
            Ok(())
        };
        (result.and_then(|()| self.lines.write_all(part)))
            .map_err(|error| failed(&self.path, "cannot be written", error))
    }

    /// Ends the line, and says why it is bad.
    pub(in crate::bulk) fn end(&mut self, bad: &BadLine) -> Result<()> {
        (self.lines.write_all(b"\n"))
            .and_then(|()| self.reasons.write_all(format!("{bad}\n").as_bytes()))
            .map_err(|error| failed(&self.path, "cannot be written", error))
    }

    /// Returns when all is on the disk.
    pub(in crate::bulk) fn sync(&mut self) -> Result<()> {
        if self.is_synced {
            return Ok(());
        }
        (self.lines.sync_all())
            .and_then(|()| self.reasons.sync_all())
            .and_then(|()| sync_folder(&self.path))
            .map_err(|error| failed(&self.path, "cannot be synced", error))?;
        self.is_synced = true;
        Ok(())
    }
}

/// Opens a file to append to it; a line that was cut short is ended.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// The names of new files are on the disk too.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn failed(path: &Path, what: &str, error: io::Error) -> Error {
    let path = path.display();
    Error::new(
        ErrorKind::Io,
        format!("the file of bad lines, {path}, {what}: {error}"),
    )
    .with_source(error)
}
