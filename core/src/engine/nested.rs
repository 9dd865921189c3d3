//! A write inside of a write on the same task would wait for itself. It is refused at once.
//!
//! While the closure of `db.write` is polled, its database is marked on the thread; whatever is polled inside of
//! that poll, and on no other task, sees the mark. So it is while a bulk operation that keeps the writer asks its source
//! for a row. A guard from `db.begin` leaves no such mark: two branches of one
//! task may well wait for each other. There, the wait's timeout names the holder.

use std::{
    cell::RefCell,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use crate::error::{Error, ErrorKind, Result};

thread_local! {
    static WRITING: RefCell<Vec<(usize, Inside)>> = const { RefCell::new(Vec::new()) };
}

/// Of what one is inside.
#[derive(Debug, Clone, Copy)]
enum Inside {
    /// The closure of a transaction or session.
    Closure,
    /// The source of a bulk operation.
    Source,
}

/// A future that is polled with the mark of `database`.
pub(in crate::engine) struct Marked<F> {
    database: usize,
    future: Pin<Box<F>>,
}

impl<F: Future> Marked<F> {
    pub(in crate::engine) fn new(database: usize, future: F) -> Self {
        Self {
            database,
            future: Box::pin(future),
        }
    }
}

impl<F: Future> Future for Marked<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let mark = Mark::set(self.database, Inside::Closure);
        let polled = pin!(&mut self.future).poll(context);
        drop(mark);
        polled
    }
}

/// Taken back when dropped, so also when the closure panics.
struct Mark;

impl Mark {
    fn set(database: usize, inside: Inside) -> Self {
        WRITING.with_borrow_mut(|writing| writing.push((database, inside)));
        Self
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        WRITING.with_borrow_mut(Vec::pop);
    }
}

/// Asks the source of a bulk operation that keeps the writer of `database`.
pub(in crate::engine) fn asking_source<T>(database: usize, ask: impl FnOnce() -> T) -> T {
    let _mark = Mark::set(database, Inside::Source);
    ask()
}

/// Refuses if this task is inside of a write on `database`.
pub(in crate::engine) fn refuse(database: usize) -> Result<()> {
    let inside = WRITING.with_borrow(|writing| {
        let mut marks = writing.iter().rev();
        marks
            .find(|(marked, _)| *marked == database)
            .map(|(_, inside)| *inside)
    });
    let message = match inside {
        None => return Ok(()),
        Some(Inside::Closure) => {
            "this task is inside of a write transaction on the same database, and would wait for itself: use the \
             transaction or session at hand (`tx`, `s`, or a context of it)"
        }
        Some(Inside::Source) => {
            "the source of a bulk operation that keeps the writer writes itself, and would wait for its own operation: \
             leave out `exclusive()` and `atomic()`, or write before it or after it"
        }
    };
    Err(Error::new(ErrorKind::Nested, message))
}
