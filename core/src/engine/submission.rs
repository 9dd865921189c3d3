//! A batch on its way through the writer.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Span;

use crate::{
    engine::{
        apply::is_long,
        core::Core,
        nested,
        obstacle::waited_for,
        recording::Recording,
        slot::{End, HeldBy, Label, Ticket, Turned, Unserved},
        timer,
        writer::{Answer, Unit, Work, lead},
    },
    error::{Error, ErrorKind},
    sql::{Batch, Receipt, Refusal},
};

/// A batch that was handed to the writer, and the place where its answer will lie.
#[derive(Debug)]
pub(crate) struct Submission {
    core: Arc<Core>,
    stage: Stage,
    /// What a session's save was told already; the commit number comes with the answer.
    applied: Receipt,
}

#[derive(Debug)]
enum Stage {
    /// Not in the queue yet.
    New(Work),
    /// In the queue, or being applied.
    Queued(Arc<Ticket<Unit, Answer>>),
    /// Taken out of the queue.
    Withdrawn,
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was committed.
    Committed(Receipt),
    /// It was not applied.
    Refused(Refusal),
    /// The wait for it was given up while it was still queued: nothing ran.
    Withdrawn,
}

impl Outcome {
    /// The receipt, for who has no entities to name in an error.
    pub(crate) fn into_receipt(self) -> Result<Receipt, Error> {
        match self {
            Self::Committed(receipt) => Ok(receipt),
            Self::Refused(refusal) => Err(refusal.into_error()),
            Self::Withdrawn => Err(Error::new(
                ErrorKind::Interrupted,
                "it was taken out of the queue before it ran: nothing was written",
            )),
        }
    }
}

impl Submission {
    pub(in crate::engine) fn new(core: Arc<Core>, batch: Batch) -> Self {
        Self {
            core,
            stage: Stage::New(Work::Save(batch)),
            applied: Receipt::default(),
        }
    }

    /// What a session did, to be validated.
    pub(in crate::engine) fn of_session(core: Arc<Core>, recording: Recording) -> Self {
        Self {
            core,
            stage: Stage::New(Work::Session(Box::new(recording))),
            applied: Receipt::default(),
        }
    }

    /// Answers with this receipt, and the commit number.
    #[must_use]
    pub(crate) fn completing(mut self, applied: Receipt) -> Self {
        self.applied = applied;
        self
    }

    /// Waits for the answer; to be called until it answered once.
    ///
    /// # Cancel safety
    ///
    /// Dropped while the batch is queued: it is taken out of the queue, and the next call says `Withdrawn`. Dropped
    /// while it runs: it ends as it ends, and the next call says how.
    pub(crate) async fn outcome(&mut self) -> Outcome {
        let waiting = WithdrawOnDrop(self);
        let outcome = waiting.0.run().await;
        let outcome = waiting.0.completed(outcome);
        std::mem::forget(waiting);
        outcome
    }

    /// The answer, if it is there already.
    pub(crate) fn try_outcome(&mut self) -> Option<Outcome> {
        let outcome = match &self.stage {
            Stage::New(_) | Stage::Withdrawn => Some(Outcome::Withdrawn),
            Stage::Queued(ticket) => ticket
                .try_answer()
                .map(|answer| outcome_of(&self.core, answer)),
        };
        outcome.map(|outcome| self.completed(outcome))
    }

    /// A session's save was answered but for its commit number.
    fn completed(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Committed(receipt)
                if receipt.keys.is_empty()
                    && receipt.computed.is_empty()
                    && receipt.changed.is_empty() =>
            {
                Outcome::Committed(Receipt {
                    commit_seq: receipt.commit_seq,
                    ..std::mem::take(&mut self.applied)
                })
            }
            outcome => outcome,
        }
    }

    async fn run(&mut self) -> Outcome {
        if let Stage::New(_) = self.stage {
            if let Err(error) = nested::refuse(Arc::as_ptr(&self.core).addr()) {
                return Outcome::Refused(error.into());
            }
            if let Err(error) = self.enter().await {
                return Outcome::Refused(error.into());
            }
        }
        let Stage::Queued(ticket) = &self.stage else {
            return Outcome::Withdrawn;
        };
        let (core, ticket) = (&self.core, Arc::clone(ticket));
        // One turn of the runtime, so that other ready tasks queue theirs: then one commit serves all. On the thread
        // that comes by itself.
        if !core.slot.is_threaded() && core.pace.yields() {
            yield_once().await;
        }
        loop {
            match poll_fn(|context| core.slot.poll_unit(&ticket, context)).await {
                Turned::Answered(answer) => return outcome_of(core, answer),
                Turned::Lead(lease) => lead(core, lease),
            }
        }
    }

    /// Joins the queue, once there is room in it.
    async fn enter(&mut self) -> Result<(), Error> {
        if self.core.whereabouts.is_moved() {
            return Err(self.core.moved());
        }
        let room = match &self.core.capacity {
            Some(capacity) => Some(room(&self.core, capacity).await?),
            None => None,
        };
        let Stage::New(work) = std::mem::replace(&mut self.stage, Stage::Withdrawn) else {
            return Ok(());
        };
        let on_thread = match &work {
            Work::Save(batch) => is_long(batch),
            Work::Session(recording) => recording.is_long(),
        };
        let unit = Unit {
            work,
            _room: room,
            span: Span::current(),
        };
        let ticket = self
            .core
            .slot
            .push(unit, on_thread)
            .map_err(|end| self.core.ended(end))?;
        self.stage = Stage::Queued(ticket);
        Ok(())
    }

    fn withdraw(&mut self) {
        match &self.stage {
            Stage::New(_) => self.stage = Stage::Withdrawn,
            Stage::Queued(ticket) => {
                if self.core.slot.withdraw(ticket).is_some() {
                    self.stage = Stage::Withdrawn;
                }
            }
            Stage::Withdrawn => {}
        }
    }
}

/// Takes the batch out of the queue when the wait for it is dropped.
struct WithdrawOnDrop<'a>(&'a mut Submission);

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

/// Waits for room in a bounded queue, for no longer than one waits in it.
async fn room(core: &Core, capacity: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let began = Instant::now();
    let timeout: Duration = core.options.queue_timeout;
    let room = pin!(Arc::clone(capacity).acquire_owned());
    match select(room, pin!(timer::sleep_until(began + timeout))).await {
        Either::Left((room, _)) => room.map_err(|_| core.ended(End::Closed)),
        Either::Right(_) => Err(unserved_error(
            core,
            &Unserved::TimedOut {
                waited: began.elapsed(),
                held_by: core.slot.held_by(),
            },
        )),
    }
}

fn outcome_of(core: &Core, answer: Result<Answer, Unserved>) -> Outcome {
    match answer {
        Ok(Ok(receipt)) => Outcome::Committed(receipt),
        Ok(Err(refusal)) => Outcome::Refused(refusal),
        Err(unserved) => Outcome::Refused(unserved_error(core, &unserved).into()),
    }
}

/// Why the slot did not serve somebody.
pub(in crate::engine) fn unserved_error(core: &Core, unserved: &Unserved) -> Error {
    match unserved {
        Unserved::Ended(end) => core.ended(*end),
        Unserved::TimedOut { waited, held_by } => {
            let holder = held_by.as_ref().map_or_else(
                || "nobody holds it by now".to_owned(),
                |held| told(core, held),
            );
            Error::new(
                ErrorKind::QueueTimeout,
                format!("the writer did not become free within queue_timeout: {holder}"),
            )
            .with_waited(*waited)
        }
    }
}

/// Who holds the slot; of a log the reader for which it does.
fn told(core: &Core, held: &HeldBy) -> String {
    let holder = format!("it is held by {}, for {:.1?} so far", held.label, held.age);
    let reader = (held.label == Label::LOG).then(|| waited_for(core));
    match reader.flatten() {
        Some(reader) => format!("{holder}; the reader is {reader}"),
        None => holder,
    }
}

async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
