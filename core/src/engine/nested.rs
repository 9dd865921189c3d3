//! A write inside of a write on the same task would wait for itself. It is refused at once.
//!
//! While the closure of `db.write` is polled, its database is marked on the thread; whatever is polled inside of
//! that poll, and on no other task, sees the mark. A guard from `db.begin` leaves no such mark: two branches of one
//! task may well wait for each other. There, the wait's timeout names the holder.

use std::{
    cell::RefCell,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use crate::error::{Error, ErrorKind, Result};

thread_local! {
    static WRITING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
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
        let mark = Mark::set(self.database);
        let polled = pin!(&mut self.future).poll(context);
        drop(mark);
        polled
    }
}

/// Taken back when dropped, so also when the closure panics.
struct Mark;

impl Mark {
    fn set(database: usize) -> Self {
        WRITING.with_borrow_mut(|writing| writing.push(database));
        Self
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        WRITING.with_borrow_mut(Vec::pop);
    }
}

/// Refuses if this task is inside of a write on `database`.
pub(in crate::engine) fn refuse(database: usize) -> Result<()> {
    if WRITING.with_borrow(|writing| writing.contains(&database)) {
        return Err(Error::new(
            ErrorKind::Nested,
            "this task is inside of a write transaction on the same database, and would wait for itself: use the \
             transaction or session at hand (`tx`, `s`, or a context of it)",
        ));
    }
    Ok(())
}
