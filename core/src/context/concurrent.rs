//! A context whose saves commit as sessions.

use std::panic::Location;

use crate::{
    context::{
        Context, Saved, Source,
        save::{Answer, InFlight, explained},
    },
    engine::{Committing, Engine, Isolation, Outcome, Session},
    error::{Error, ErrorKind, Result},
    sql::{Batch, Receipt},
    tracker::Ledger,
};

/// Where a concurrent context reads and saves: a session that begins with the first call that needs one, and ends with a
/// save.
#[derive(Debug)]
pub(super) struct Concurrent {
    engine: Engine,
    isolation: Isolation,
    at: &'static Location<'static>,
    session: Option<Session>,
    /// A save was not committed: what was read rests on a snapshot that is gone.
    is_stale: bool,
}

impl Context<'_> {
    /// Makes this a context whose reads see one snapshot, and whose save commits as a serializable session: it is written
    /// only if all that the context read is still so.
    ///
    /// The snapshot is taken by the first call that reads or saves. A save that is committed ends it, and the next call
    /// takes another. When something was changed meanwhile the save fails with kind `Conflict`, and nothing is written;
    /// call [`clear`](Context::clear), and run the work again from its reads.
    ///
    /// To be called on a new context of a database; one that is bound to a transaction or a session stays as it is.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// # #[derive(Debug, Entity)]
    /// # #[entity(table = "accounts")]
    /// # struct Account { #[entity(id)] id: i64, balance: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Account>().await?;
    /// # let mut first = db.context();
    /// # first.add(Account { id: 0, balance: 10 });
    /// # first.save_changes().await?;
    /// let mut ctx = db.context().concurrent();
    /// loop {
    ///     let account = ctx.find::<Account>(1).await?.expect("nobody closed it");
    ///     ctx[account].balance += 5;
    ///     match ctx.save_changes().await {
    ///         Ok(_) => break,
    ///         Err(error) if error.is_conflict() => ctx.clear(), // somebody was faster
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn concurrent(self) -> Self {
        self.concurrent_with(Isolation::Serializable)
    }

    /// The same with another isolation.
    #[must_use]
    #[track_caller]
    pub fn concurrent_with(mut self, isolation: Isolation) -> Self {
        if let Source::Engine(engine, _) = self.source {
            self.source = Source::Concurrent(Box::new(Concurrent {
                engine,
                isolation,
                at: Location::caller(),
                session: None,
                is_stale: false,
            }));
        }
        self
    }

    /// Writes a plan as the end of the context's session.
    pub(super) async fn write_concurrent(&mut self, batch: Batch, ledger: Ledger) -> Result<Saved> {
        let applied = match &mut self.source {
            Source::Concurrent(concurrent) => concurrent.apply(batch).await,
            _ => return Ok(Saved::default()),
        };
        let (receipt, committing) = match applied {
            Ok(applied) => applied,
            Err(refusal) => {
                let error = explained(refusal, &ledger, &self.tracker);
                return self.or_failed(Err(error));
            }
        };
        // Nothing is marked before there is something to wait for: nobody else can get at the context meanwhile.
        let told = self.depart(&ledger);
        let in_flight = |answer| InFlight {
            answer,
            ledger,
            told,
        };
        let outcome = match committing {
            Committing::Queued(submission) => {
                let answer = Answer::Queued(submission.completing(receipt));
                self.in_flight = Some(in_flight(answer));
                self.answer().await.unwrap_or(Outcome::Withdrawn)
            }
            Committing::Nothing => return Ok(Saved::default()),
            Committing::Exclusive(mut transaction) => {
                let witness = transaction.witness();
                let kept = receipt.clone();
                self.in_flight = Some(in_flight(Answer::Later { witness, receipt }));
                match transaction.commit().await {
                    Ok(commit_seq) => Outcome::Committed(Receipt { commit_seq, ..kept }),
                    Err(error) => Outcome::Refused(error.into()),
                }
            }
        };
        self.conclude(outcome)
    }

    /// A save was committed: what was read may be saved again.
    pub(super) fn settle_session(&mut self) {
        if let Source::Concurrent(concurrent) = &mut self.source {
            concurrent.is_stale = false;
        }
    }

    /// Nothing that was read counts any more.
    pub(super) fn forget_session(&mut self) {
        if let Source::Concurrent(concurrent) = &mut self.source {
            concurrent.session = None;
            concurrent.is_stale = false;
        }
    }
}

impl Concurrent {
    /// The name of the file.
    pub(super) fn namespace(&self) -> &str {
        self.engine.namespace()
    }

    /// The session that is open, or a new one.
    pub(super) async fn session(&mut self) -> Result<&mut Session> {
        if self.is_stale {
            return Err(Error::new(
                ErrorKind::Refused,
                "a save of this context was not committed, and what it read is out of date: call clear(), and run the \
                 work again from its reads",
            ));
        }
        if self.session.is_none() {
            let session = self.engine.begin_session(self.isolation, self.at).await?;
            self.session = Some(session);
        }
        (self.session.as_mut()).ok_or_else(|| Error::new(ErrorKind::Closed, "the session is gone"))
    }

    /// The session, if one is open.
    pub(super) fn open_session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// Applies a batch in the session, and ends it. If the batch is refused the session goes on.
    async fn apply(&mut self, batch: Batch) -> Result<(Receipt, Committing), crate::sql::Refusal> {
        let receipt = self.session().await?.apply(batch).await?;
        // Until it is committed: dropped from here on, what was read is lost with the session.
        self.is_stale = true;
        let Some(session) = self.session.take() else {
            return Err(Error::new(ErrorKind::Closed, "the session is gone").into());
        };
        Ok((receipt, session.submit().await?))
    }
}
