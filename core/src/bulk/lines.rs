//! The rows of lines, and what becomes of bad ones.

use std::{
    marker::PhantomData,
    task::{Context, Poll, ready},
};

use serde::de::DeserializeOwned;

use crate::{
    bulk::{
        BadLine, BulkError, BulkReport,
        bad_line::{Fault, Rejects},
        cutter::Cutter,
        feed::Feed,
        import::ImportOptions,
        source::{Row, Source},
    },
    error::{ApplicationError, Error, ErrorKind, Result},
};

/// What may stand at the beginning of a file, and says that it is UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The rows of an import.
pub(in crate::bulk) struct Lines<F, R> {
    feed: F,
    has_ended: bool,
    options: ImportOptions,
    cutter: Cutter,
    /// How much of the mark was there; `None` behind it.
    mark: Option<usize>,
    /// The bytes that were taken.
    bytes: u64,
    /// The records that were rows, this one among them.
    rows: u64,
    bad_lines: Vec<BadLine>,
    /// How many bad lines were left out.
    left_out: u64,
    of: PhantomData<fn() -> R>,
}

impl<F: Feed, R: DeserializeOwned> Lines<F, R> {
    pub(in crate::bulk) fn new(feed: F, options: ImportOptions) -> Self {
        Self {
            feed,
            has_ended: false,
            cutter: Cutter::new(&options.format, options.longest_line),
            options,
            mark: Some(0),
            bytes: 0,
            rows: 0,
            bad_lines: Vec::new(),
            left_out: 0,
            of: PhantomData,
        }
    }

    /// The next record: whether there is one.
    fn poll_record(&mut self, is_done: bool, context: &mut Context<'_>) -> Poll<Result<bool>> {
        loop {
            if self.has_ended {
                return Poll::Ready(Ok(false));
            }
            self.check_size(self.options.bytes.max(self.bytes))?;
            let bytes = match ready!(self.feed.poll_bytes(context)) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.cutter.pass();
                    return Poll::Ready(Err(error));
                }
            };
            // Those of a line that is done are there already.
            let rejects = self.options.rejects.as_mut().filter(|_| !is_done);
            let Some(first) = bytes.first() else {
                self.has_ended = true;
                if let Some(matched) = self.mark.take() {
                    self.cutter.take(&MARK[..matched], rejects)?;
                }
                return Poll::Ready(Ok(self.cutter.finish()));
            };
            let (taken, is_whole) = match self.mark {
                Some(matched) if *first == MARK[matched] => {
                    self.mark = Some(matched + 1).filter(|matched| *matched < MARK.len());
                    (1, false)
                }
                // It was none.
                Some(matched) => {
                    self.mark = None;
                    self.cutter.take(&MARK[..matched], rejects)?;
                    (0, false)
                }
                None => self.cutter.take(bytes, rejects)?,
            };
            self.feed.consume(taken);
            self.bytes += taken as u64;
            let ends_here = !self.options.skips_bad_lines && !is_done || self.cutter.wants_header();
            let is_lost = self.cutter.is_too_long && ends_here;
            if is_whole || is_lost {
                self.check_size(self.bytes)?;
                return Poll::Ready(Ok(true));
            }
        }
    }

    fn check_size(&self, bytes: u64) -> Result<()> {
        let most = self.options.max_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooBig,
            format!("the import is larger than its limit of {most} bytes: send it in parts"),
        ))
    }

    fn check_rows(&self) -> Result<()> {
        let most = self.options.max_rows;
        if self.rows <= most {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooBig,
            format!("the import has more than its limit of {most} rows: send it in parts"),
        ))
    }

    /// A row of the record.
    fn row<T>(&mut self) -> Result<T, Fault>
    where
        R: TryInto<T, Error: Into<ApplicationError>>,
    {
        let row: R = self.cutter.row(self.rows == 1)?;
        row.try_into().map_err(|error| {
            let error: ApplicationError = error.into();
            Fault::new(error.to_string())
        })
    }

    /// Leaves the record out, if bad lines may be.
    fn leave_out(&mut self, fault: Fault) -> Result<()> {
        if !self.options.skips_bad_lines || fault.is_of_all_lines {
            return Err(fault.into_error());
        }
        let most = self.options.max_bad_lines;
        if self.left_out >= most {
            let reason = format!(
                "{}; one more than the limit of bad lines, {most}",
                fault.reason
            );
            return Err(Fault { reason, ..fault }.into_error());
        }
        self.left_out += 1;
        let bad = BadLine {
            line: self.cutter.line,
            row: self.rows - 1,
            column: fault.column,
            reason: fault.reason,
        };
        if let Some(rejects) = &mut self.options.rejects {
            rejects.write(&self.cutter.header, &self.cutter.raw)?;
            rejects.end(&bad)?;
        }
        if self.bad_lines.len() < self.options.kept_bad_lines {
            self.bad_lines.push(bad);
        }
        Ok(())
    }
}

impl<T, F: Feed, R> Source<T> for Lines<F, R>
where
    R: DeserializeOwned + TryInto<T, Error: Into<ApplicationError>>,
{
    fn poll_row(
        &mut self,
        is_done: bool,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Row<T>>>> {
        loop {
            if !ready!(self.poll_record(is_done, context))? {
                return Poll::Ready(None);
            }
            if self.cutter.takes_header().map_err(Fault::into_error)? || self.cutter.is_blank() {
                continue;
            }
            self.rows += 1;
            self.check_rows()?;
            if is_done {
                self.cutter.pass_over();
                return Poll::Ready(Some(Ok(Row::None)));
            }
            let row = match self.row() {
                Ok(row) => Ok(Row::New(row)),
                Err(fault) => self.leave_out(fault).map(|()| Row::None),
            };
            return Poll::Ready(Some(row));
        }
    }

    fn refused(&mut self, error: Error) -> Result<()> {
        if error.kind() == ErrorKind::Value && self.options.skips_bad_lines {
            return self.leave_out(Fault::of(&error));
        }
        Err(error)
    }

    fn line(&self) -> u64 {
        self.cutter.line
    }

    fn complete(
        &mut self,
        mut ended: Result<BulkReport, BulkError>,
    ) -> Result<BulkReport, BulkError> {
        let report = match &mut ended {
            Ok(report) => report,
            Err(failed) => failed.report_mut(),
        };
        self.bad_lines.retain(|bad| bad.row < report.rows);
        report.first_bad_lines = std::mem::take(&mut self.bad_lines);
        let synced = (self.options.rejects.as_mut()).map_or(Ok(()), Rejects::sync);
        match (ended, synced) {
            (Ok(report), Err(error)) => Err(BulkError::new(error, 0..0, 0..0, report)),
            (ended, _) => ended,
        }
    }
}
