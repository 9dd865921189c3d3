//! Where the bytes of an import come from.

use std::{
    io::{self, BufRead as _, BufReader, Read},
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use crate::error::{ApplicationError, Error, ErrorKind, Result};

/// How much is read at a time.
const READ: usize = 64 * 1024;

/// Gives bytes.
pub(in crate::bulk) trait Feed: Send {
    /// What comes next; nothing at the end.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<&[u8]>>;

    /// This many of them were taken.
    fn consume(&mut self, bytes: usize);
}

/// Reads on the calling task.
#[derive(Debug)]
pub(in crate::bulk) struct Reading<R>(BufReader<R>);

impl<R: Read> Reading<R> {
    pub(in crate::bulk) fn new(reader: R) -> Self {
        Self(BufReader::with_capacity(READ, reader))
    }
}

impl<R: Read + Send> Feed for Reading<R> {
    fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Result<&[u8]>> {
        loop {
            match self.0.fill_buf() {
                Ok(_) => return Poll::Ready(Ok(self.0.buffer())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let text = format!("the import cannot be read: {error}");
                    return Poll::Ready(Err(Error::new(ErrorKind::Io, text).with_source(error)));
                }
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }
}

/// Takes the pieces of a stream.
#[derive(Debug)]
pub(in crate::bulk) struct Streaming<S, B> {
    stream: Pin<Box<S>>,
    piece: Option<B>,
    taken: usize,
}

impl<S, B> Streaming<S, B> {
    pub(in crate::bulk) fn new(stream: S) -> Self {
        Self {
            stream: Box::pin(stream),
            piece: None,
            taken: 0,
        }
    }
}

impl<S, B, X> Feed for Streaming<S, B>
where
    S: Stream<Item = Result<B, X>> + Send,
    B: AsRef<[u8]> + Send,
    X: Into<ApplicationError>,
{
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<&[u8]>> {
        // Pieces may be empty.
        while (self.piece.as_ref()).is_none_or(|piece| piece.as_ref().len() <= self.taken) {
            self.taken = 0;
            self.piece = None;
            match ready!(self.stream.as_mut().poll_next(context)) {
                Some(Ok(piece)) => self.piece = Some(piece),
                Some(Err(error)) => return Poll::Ready(Err(Error::from(error.into()))),
                None => return Poll::Ready(Ok(&[])),
            }
        }
        let piece = self.piece.as_ref().map_or(&[][..], AsRef::as_ref);
        Poll::Ready(Ok(&piece[self.taken..]))
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}
