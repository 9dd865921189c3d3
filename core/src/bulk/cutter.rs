//! Where each line, or record of several lines, begins and ends.

#[cfg(feature = "csv")]
use crate::bulk::{Csv, csv::CsvRecords};
use crate::bulk::{
    Format,
    bad_line::{Fault, Rejects},
    ndjson,
};
use crate::error::Result;

use serde::de::DeserializeOwned;

/// Cuts bytes into records.
pub(in crate::bulk) struct Cutter {
    records: Records,
    longest: usize,
    /// The line of the next byte.
    next_line: u64,
    /// The line in which the record begins.
    pub(in crate::bulk) line: u64,
    /// Its bytes, without the end of the line; none if it is too long.
    pub(in crate::bulk) raw: Vec<u8>,
    pub(in crate::bulk) header: Vec<u8>,
    is_inside: bool,
    pub(in crate::bulk) is_too_long: bool,
    is_unclosed: bool,
}

/// How records are read.
enum Records {
    #[cfg(feature = "csv")]
    Csv(Box<CsvRecords>),
    Ndjson,
}

impl Cutter {
    pub(in crate::bulk) fn new(format: &Format, longest: usize) -> Self {
        Self {
            records: Records::new(format),
            longest,
            next_line: 1,
            line: 1,
            raw: Vec::new(),
            header: Vec::new(),
            is_inside: false,
            is_too_long: false,
            is_unclosed: false,
        }
    }

    /// Takes bytes up to the end of a record: how many, and whether it ends there. Of one that is too long, bytes go to the
    /// `rejects` at once.
    pub(in crate::bulk) fn take(
        &mut self,
        bytes: &[u8],
        rejects: Option<&mut Rejects>,
    ) -> Result<(usize, bool)> {
        if !self.is_inside {
            let is_empty = |byte: &&u8| matches!(byte, b'\n' | b'\r');
            let empty = bytes.iter().take_while(is_empty).count();
            if empty > 0 {
                self.next_line += lines(&bytes[..empty]);
                return Ok((empty, false));
            }
            self.begin();
        }
        let (taken, is_whole) = self.records.take(bytes, self.is_too_long);
        self.next_line += lines(&bytes[..taken]);
        self.keep(&bytes[..taken], is_whole, rejects)?;
        if is_whole {
            self.end();
        }
        Ok((taken, is_whole))
    }

    /// The file has ended: whether there is one more record.
    pub(in crate::bulk) fn finish(&mut self) -> bool {
        if !self.is_inside {
            return false;
        }
        // An end of a line ends everything but a quoted field.
        let (_, is_whole) = self.records.take(b"\n", self.is_too_long);
        self.is_unclosed = !is_whole;
        self.end();
        true
    }

    /// No record was begun: what fails next is behind the last one.
    pub(in crate::bulk) const fn pass(&mut self) {
        if !self.is_inside {
            self.line = self.next_line;
        }
    }

    /// Whether the record is the header, which is never left out.
    pub(in crate::bulk) fn wants_header(&self) -> bool {
        self.records.wants_header()
    }

    /// Whether the record is the header; if so, it is kept.
    pub(in crate::bulk) fn takes_header(&mut self) -> Result<bool, Fault> {
        if !self.wants_header() {
            return Ok(false);
        }
        self.check()?;
        self.records.keep_header()?;
        self.header.clone_from(&self.raw);
        Ok(true)
    }

    /// Whether a line holds nothing but spaces, in JSON.
    pub(in crate::bulk) fn is_blank(&self) -> bool {
        matches!(self.records, Records::Ndjson)
            && !self.is_too_long
            && self.raw.trim_ascii().is_empty()
    }

    /// A row that is not asked for.
    pub(in crate::bulk) fn pass_over(&mut self) {
        self.records.pass_over();
    }

    /// Makes a row of the record, which is the first of the file or not.
    pub(in crate::bulk) fn row<R: DeserializeOwned>(&mut self, is_first: bool) -> Result<R, Fault> {
        self.check()?;
        self.records.row(&self.raw, is_first)
    }

    fn check(&self) -> Result<(), Fault> {
        if self.is_too_long {
            let longest = self.longest;
            return Err(Fault::new(format!(
                "is longer than {longest} bytes, the limit"
            )));
        }
        if self.is_unclosed {
            return Err(Fault::new("a quote is not closed"));
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.is_inside = true;
        self.is_too_long = false;
        self.is_unclosed = false;
        self.line = self.next_line;
        self.raw.clear();
        self.records.begin();
    }

    fn keep(&mut self, bytes: &[u8], is_last: bool, rejects: Option<&mut Rejects>) -> Result<()> {
        if !self.is_too_long && bytes.len() <= self.longest.saturating_sub(self.raw.len()) {
            self.raw.extend_from_slice(bytes);
            return Ok(());
        }
        self.is_too_long = true;
        let before = std::mem::take(&mut self.raw);
        let Some(rejects) = rejects else {
            return Ok(());
        };
        let bytes = if is_last {
            bytes.strip_suffix(b"\n").unwrap_or(bytes)
        } else {
            bytes
        };
        rejects.write(&self.header, &before)?;
        rejects.write(&self.header, bytes)
    }

    fn end(&mut self) {
        self.is_inside = false;
        while let [rest @ .., b'\n' | b'\r'] = &self.raw[..] {
            self.raw.truncate(rest.len());
        }
    }
}

impl Records {
    fn new(format: &Format) -> Self {
        match format {
            #[cfg(feature = "csv")]
            Format::Csv(csv) => Self::Csv(Box::new(CsvRecords::new(Csv::clone(csv)))),
            Format::Ndjson => Self::Ndjson,
        }
    }

    fn begin(&mut self) {
        match self {
            #[cfg(feature = "csv")]
            Self::Csv(records) => records.begin(),
            Self::Ndjson => {}
        }
    }

    fn take(&mut self, bytes: &[u8], _is_lost: bool) -> (usize, bool) {
        match self {
            #[cfg(feature = "csv")]
            Self::Csv(records) => records.take(bytes, _is_lost),
            Self::Ndjson => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        }
    }

    fn wants_header(&self) -> bool {
        match self {
            #[cfg(feature = "csv")]
            Self::Csv(records) => records.wants_header(),
            Self::Ndjson => false,
        }
    }

    fn keep_header(&mut self) -> Result<(), Fault> {
        match self {
            #[cfg(feature = "csv")]
            Self::Csv(records) => records.keep_header(),
            Self::Ndjson => Ok(()),
        }
    }

    fn pass_over(&mut self) {
        match self {
            // The first record tells the number of fields.
            #[cfg(feature = "csv")]
            Self::Csv(records) => drop(records.expect_width()),
            Self::Ndjson => {}
        }
    }

    fn row<R: DeserializeOwned>(&mut self, raw: &[u8], is_first: bool) -> Result<R, Fault> {
        match self {
            #[cfg(feature = "csv")]
            Self::Csv(records) => records.row(),
            Self::Ndjson => ndjson::row(raw, is_first),
        }
    }
}

/// How many lines end in these bytes.
fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
