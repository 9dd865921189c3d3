//! Where the rows of an operation come from.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use crate::{
    bulk::{BulkError, BulkReport},
    error::{ApplicationError, Error, Result},
};

/// What a source gives: rows, and the lines in which they begin.
pub(in crate::bulk) trait Source<T>: Send {
    /// The next row; one `is_done` was written before, and need not be made.
    fn poll_row(
        &mut self,
        is_done: bool,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Row<T>>>>;

    /// The operation cannot store the last row: the error, unless it goes on without the row.
    fn refused(&mut self, error: Error) -> Result<()> {
        Err(error)
    }

    /// The line in which the last row begins, counted from 1; 0 where there are no lines.
    fn line(&self) -> u64 {
        0
    }

    /// Completes what is told of the operation.
    fn complete(&mut self, ended: Result<BulkReport, BulkError>) -> Result<BulkReport, BulkError> {
        ended
    }
}

/// A row of the source.
#[derive(Debug)]
pub(in crate::bulk) enum Row<T> {
    New(T),
    /// It is done, or was passed over by the source.
    None,
}

/// A stream of rows.
#[derive(Debug)]
pub(in crate::bulk) struct Rows<'s, S>(pub(in crate::bulk) Pin<&'s mut S>);

impl<T, S, X> Source<T> for Rows<'_, S>
where
    S: Stream<Item = Result<T, X>> + Send,
    X: Into<ApplicationError>,
{
    fn poll_row(
        &mut self,
        is_done: bool,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Row<T>>>> {
        let next = self.0.as_mut().poll_next(context);
        next.map(|next| {
            Some(match next? {
                // An error among those that are left out is one of the source all the same.
                Ok(_) if is_done => Ok(Row::None),
                Ok(item) => Ok(Row::New(item)),
                Err(error) => Err(Error::from(error.into())),
            })
        })
    }
}
