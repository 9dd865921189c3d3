//! A place in the queue, and later an answer.

use std::{
    marker::PhantomData,
    sync::PoisonError,
    task::{Context, Waker},
};

#[cfg(test)]
use shuttle::sync::Mutex;
#[cfg(not(test))]
use std::sync::Mutex;

use crate::engine::{slot::label::Unserved, wake::wake};

/// An owner's place in the queue, and later its answer.
#[derive(Debug)]
pub(in crate::engine) struct Ticket<U, A> {
    pub(super) number: u64,
    place: Mutex<Place<A>>,
    pub(super) of: PhantomData<fn() -> U>,
}

#[derive(Debug)]
struct Place<A> {
    pub(super) answer: Option<Result<A, Unserved>>,
    pub(super) waker: Option<Waker>,
}

impl<U, A> Ticket<U, A> {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            place: Mutex::new(Place {
                answer: None,
                waker: None,
            }),
            of: PhantomData,
        }
    }

    pub(super) fn answer_or_wait(&self, context: &mut Context<'_>) -> Option<Result<A, Unserved>> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = place.answer.take() {
            return Some(answer);
        }
        match &mut place.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        None
    }

    /// The answer, if it is there.
    pub(in crate::engine) fn try_answer(&self) -> Option<Result<A, Unserved>> {
        self.place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .answer
            .take()
    }

    /// Answers the owner, and wakes it.
    pub(super) fn answer(&self, answer: Result<A, Unserved>) {
        if let Some(waker) = self.put_answer(answer) {
            wake(waker);
        }
    }

    /// Answers the owner; whoever calls wakes it.
    pub(super) fn put_answer(&self, answer: Result<A, Unserved>) -> Option<Waker> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.answer = Some(answer);
        place.waker.take()
    }

    pub(super) fn take_waker(&self) -> Option<Waker> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.waker.take()
    }
}
