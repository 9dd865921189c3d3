//! Saving: detect, plan, submit, settle, accept. The module's page states the protocol.

use tracing::Instrument as _;

use crate::{
    context::{
        Context, Interceptors, SaveToken, Saved, SavedChange, Source, hooks::with_given_keys, later,
    },
    engine::{Outcome, Submission, Witness},
    entity::CommitSeq,
    error::{Error, ErrorKind, Result},
    flush::FlushPlan,
    observe::span,
    sql::{Batch, Receipt, Refusal},
    tracker::{Changes, Ledger, Tracker, Written},
};

/// A plan on its way, and what is needed to accept it.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(super) answer: Answer,
    pub(super) ledger: Ledger,
    pub(super) told: Told,
}

/// Where the answer to a plan comes from.
#[derive(Debug)]
pub(super) enum Answer {
    /// The writer's queue.
    Queued(Submission),
    /// The transaction to which the context is bound; it keeps no answer for later.
    Transaction,
    /// A transaction that somebody else ends, and what it answered so far.
    Later { witness: Witness, receipt: Receipt },
}

/// Who is told what became of a plan, and what it wrote.
#[derive(Debug)]
pub(super) struct Told {
    interceptors: Interceptors,
    changes: Vec<SavedChange>,
}

impl Context<'_> {
    /// Writes what was added, changed and removed since the last save, in one transaction or, in a context that is
    /// bound to one, inside it. With nothing to write it does not touch the database.
    ///
    /// # Errors
    ///
    /// On any error the context is as before, and can be saved again.
    ///
    /// * `Conflict`: rows were changed or deleted since they were read; `conflicts()` has all values.
    /// * `Value`: a value cannot be stored, or is a temporary key of nobody.
    /// * `Refused`: the key or the version of a tracked entity was changed; an interceptor asked for the save; an
    ///   earlier one is in a transaction that is still open.
    /// * What an [interceptor](crate::context::Interceptor) returned from `saving`.
    /// * `AlreadyTracked`: two entities of this context have the same key.
    /// * Constraints of the database, and whatever keeps the writer from writing.
    /// * `OutcomeUnknown`, once, if an earlier save was dropped and its COMMIT did not tell whether it took place.
    ///
    /// # Cancel safety
    ///
    /// Dropped while the save is queued, nothing is written; dropped later, it is written or not. The next call
    /// on this context finds out which, so that calling `save_changes` again never writes twice. The `Saved` of
    /// a save that was dropped is not told by the next one.
    ///
    /// In a context bound to a transaction a dropped save leaves the transaction's state unknown: from then on
    /// the context's calls fail with `TransactionEnded`, and the transaction is to be rolled back.
    pub async fn save_changes(&mut self) -> Result<Saved> {
        let changes = self.begin_save().await?;
        if changes.is_empty() {
            return Ok(Saved::default());
        }
        self.write(changes, None).await
    }

    /// [`Context::save_changes`] with a token, by which anybody can find out later whether this save was committed: after
    /// its future was dropped, after `OutcomeUnknown`, in another process, after a crash.
    ///
    /// The token is recorded in the transaction of the save, so that there are both or neither; also if there is
    /// nothing else to write. A save with a token that is recorded already is not repeated. Of several that come with
    /// one token at the same time, from several processes even, exactly one is written. So the way to answer a request
    /// once, however often it comes, is to save with a token that the request brings.
    ///
    /// Tokens are kept for a day, or [as long as was chosen][1]; [`Database::was_saved`][2] asks for one.
    ///
    /// # Errors
    ///
    /// Those of [`Context::save_changes`], and `AlreadySaved` if a save with this token was committed before. Nothing is
    /// written then, and the context is as before, with changes that are most likely in the database already: drop it,
    /// and read what was saved.
    ///
    /// # Cancel safety
    ///
    /// As [`Context::save_changes`]. Saved again with the same token, a save that was dropped and took place all the
    /// same is told as `AlreadySaved`; the context has accepted it then.
    ///
    /// In a context bound to a transaction the token is as lasting as the transaction.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(table = "orders")]
    /// # struct Order { #[entity(id)] id: i64, item: String }
    /// /// A client that has heard nothing sends its request again, with the same key.
    /// async fn place_order(db: &Database, idempotency_key: &str, item: &str) -> Result<(), Error> {
    ///     let token = SaveToken::from_text(idempotency_key)?;
    ///     let mut ctx = db.context();
    ///     ctx.add(Order { id: 0, item: item.into() });
    ///     match ctx.save_changes_with(&token).await {
    ///         Err(error) if error.kind() == ErrorKind::AlreadySaved => Ok(()),
    ///         saved => saved.map(drop),
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// place_order(&db, "8e03978e", "tea").await?;
    /// place_order(&db, "8e03978e", "tea").await?;
    /// assert_eq!(Order::query().count(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// [1]: crate::database::DatabaseBuilder::save_token_retention
    /// [2]: crate::database::Database::was_saved
    pub async fn save_changes_with(&mut self, token: &SaveToken) -> Result<Saved> {
        let changes = self.begin_save().await?;
        self.write(changes, Some(token)).await
    }

    /// Plans, submits and accepts what was detected.
    async fn write(&mut self, changes: Changes, token: Option<&SaveToken>) -> Result<Saved> {
        let (mut batch, ledger) = self.plan(changes)?;
        batch.token = token.map(SaveToken::shared);
        let span = span::save(self.source.namespace(), batch.steps.len());
        let saved = self
            .write_batch(batch, ledger)
            .instrument(span.clone())
            .await;
        match &saved {
            Ok(saved) => {
                let number = saved.commit_seq.map(|number| number.0);
                span.record("anabranch.commit_seq", number);
            }
            Err(error) => span::set_error(&span, error.kind()),
        }
        saved
    }

    async fn write_batch(&mut self, batch: Batch, ledger: Ledger) -> Result<Saved> {
        if let Source::Concurrent(_) = self.source {
            return self.write_concurrent(batch, ledger).await;
        }
        let outcome = self.submit(batch, ledger).await;
        self.conclude(outcome)
    }

    /// What changed, after interceptors have had their say.
    pub(super) async fn begin_save(&mut self) -> Result<Changes> {
        self.refuse_in_interceptor()?;
        self.settle_abandoned().await?;
        if self.in_flight.is_some() {
            return Err(Error::new(
                ErrorKind::Refused,
                "an earlier save of this context is in a transaction that is still open: end that first, or work in it \
                 with tx.context()",
            ));
        }
        let detected = match self.tell_saving().await {
            Ok(()) => self.tracker.detect(),
            Err(error) => Err(error),
        };
        self.or_failed(detected)
    }

    /// The statements for these changes.
    pub(super) fn plan(&mut self, changes: Changes) -> Result<(Batch, Ledger)> {
        let plan = FlushPlan::of(changes);
        self.or_failed(plan).map(FlushPlan::render)
    }

    /// Tells the interceptors if this step of a save failed.
    pub(super) fn or_failed<T>(&mut self, step: Result<T>) -> Result<T> {
        if let Err(error) = &step {
            self.withdraw_supplied();
            self.tell_failed(&self.interceptors.clone(), error);
        }
        step
    }

    /// Hands a batch over and waits for its answer.
    async fn submit(&mut self, batch: Batch, ledger: Ledger) -> Outcome {
        let told = self.depart(&ledger);
        let in_flight = |answer| InFlight {
            answer,
            ledger,
            told,
        };
        match &mut self.source {
            Source::Engine(engine, _) => {
                self.in_flight = Some(in_flight(Answer::Queued(engine.submit(batch))));
                self.answer().await.unwrap_or(Outcome::Withdrawn)
            }
            Source::Transaction(transaction) => {
                self.in_flight = Some(in_flight(Answer::Transaction));
                match transaction.apply(&batch).await {
                    Ok(receipt) => Outcome::Committed(receipt),
                    Err(refusal) => Outcome::Refused(refusal),
                }
            }
            // Has a way of its own, see `write_concurrent`.
            Source::Concurrent(_) => Outcome::Withdrawn,
            Source::Session(session) => {
                self.in_flight = Some(in_flight(Answer::Transaction));
                match session.apply(batch).await {
                    Ok(receipt) => Outcome::Committed(receipt),
                    Err(refusal) => Outcome::Refused(refusal),
                }
            }
        }
    }

    /// Marks what a plan writes, and notes who is to be told of what.
    pub(super) fn depart(&mut self, ledger: &Ledger) -> Told {
        self.tracker.depart(ledger);
        Told {
            changes: self.changes_of(ledger),
            interceptors: self.interceptors.clone(),
        }
    }

    /// The answer to the plan in flight, waited for; `None` while its transaction is open, and without a plan.
    pub(super) async fn answer(&mut self) -> Option<Outcome> {
        match &mut self.in_flight.as_mut()?.answer {
            Answer::Queued(submission) => Some(submission.outcome().await),
            Answer::Later { witness, receipt } => later::outcome(witness.settled().await, receipt),
            Answer::Transaction => None,
        }
    }

    /// Takes over what became of an earlier save: one whose future was dropped, or that went into a transaction which
    /// has ended by now. Every other call that waits does so first; this one is for those who want to see it, such as
    /// the keys that the writer gave, in `ctx[handle]`.
    ///
    /// # Errors
    ///
    /// * `OutcomeUnknown`, once, if the COMMIT did not tell whether it took place.
    /// * `TransactionEnded` in a context that is bound to a transaction, after a save into it was dropped.
    ///
    /// That a save was refused, or rolled back, is no error here: its changes are still to be saved.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the next call does it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Customer { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Customer>().await?;
    /// let mut ctx = db.context();
    /// let ada = ctx.add(Customer { id: 0, name: "Ada".into() });
    /// let mut tx = db.begin().await?;
    /// ctx.save_changes_in(&mut tx).await?;
    /// tx.commit().await?;
    /// ctx.settle().await?;
    /// assert_eq!(ctx[ada].id, 1);
    /// # Ok(()) }
    /// ```
    pub async fn settle(&mut self) -> Result<()> {
        self.settle_abandoned().await
    }

    /// Finds out what became of a save that was dropped, or is in a transaction of somebody else. That it was refused
    /// is no error of the call that asks.
    pub(crate) async fn settle_abandoned(&mut self) -> Result<()> {
        if let Some(InFlight {
            answer: Answer::Transaction,
            ..
        }) = &self.in_flight
        {
            return Err(Error::new(
                ErrorKind::TransactionEnded,
                "a save into this transaction was dropped before it was answered: roll it back and run it again",
            ));
        }
        if let Some(outcome) = self.answer().await {
            self.conclude_abandoned(outcome);
        }
        self.unknown.take().map_or(Ok(()), Err)
    }

    /// The same for calls that do not wait.
    pub(crate) fn settle_if_answered(&mut self) {
        let Some(InFlight { answer, .. }) = &mut self.in_flight else {
            return;
        };
        let outcome = match answer {
            Answer::Queued(submission) => submission.try_outcome(),
            Answer::Later { witness, receipt } => later::outcome(witness.fate(), receipt),
            Answer::Transaction => None,
        };
        if let Some(outcome) = outcome {
            self.conclude_abandoned(outcome);
        }
    }

    /// Whether the last save is in a transaction that may end at any moment.
    pub(crate) const fn is_accepted_later(&self) -> bool {
        matches!(
            &self.in_flight,
            Some(InFlight {
                answer: Answer::Later { .. },
                ..
            })
        )
    }

    fn conclude_abandoned(&mut self, outcome: Outcome) {
        if let Err(error) = self.conclude(outcome)
            && error.kind() == ErrorKind::OutcomeUnknown
        {
            self.unknown = Some(error);
        }
    }

    /// Takes the answer to the plan in flight over into the context.
    pub(super) fn conclude(&mut self, outcome: Outcome) -> Result<Saved> {
        let Some(InFlight {
            ledger, mut told, ..
        }) = self.in_flight.take()
        else {
            return Ok(Saved::default());
        };
        let error = match outcome {
            Outcome::Committed(receipt) => {
                self.settle_session();
                self.supplied = 0..0;
                self.tracker.accept(&ledger, &receipt);
                let saved = Saved::of(&ledger, &receipt);
                with_given_keys(&mut told.changes, &ledger, &receipt);
                self.tell_saved(&told.interceptors, &saved, &told.changes);
                return Ok(saved);
            }
            Outcome::Refused(refusal) => explained(refusal, &ledger, &self.tracker),
            Outcome::Withdrawn => Error::new(
                ErrorKind::Interrupted,
                "the save was taken out of the queue before it ran: nothing was written",
            ),
        };
        self.tracker.refuse(&ledger);
        self.withdraw_supplied();
        self.tell_failed(&told.interceptors, &error);
        Err(error)
    }
}

impl Saved {
    pub(super) fn of(ledger: &Ledger, receipt: &Receipt) -> Self {
        let mut saved = Self {
            commit_seq: receipt.commit_seq.map(CommitSeq),
            ..Self::default()
        };
        for entry in &ledger.entries {
            match entry.written {
                Written::Inserted { .. } => saved.inserted += 1,
                Written::Updated { .. } => saved.updated += 1,
                Written::Deleted { .. } => saved.deleted += 1,
            }
        }
        saved
    }
}

/// The error of a refused plan, in terms of entities.
pub(super) fn explained(refusal: Refusal, ledger: &Ledger, tracker: &Tracker) -> Error {
    match refusal {
        Refusal::Mismatches(mismatches) => Error::conflict(
            (mismatches.into_iter())
                .filter_map(|mismatch| {
                    let entry = ledger.entries.get(mismatch.step)?;
                    tracker.conflict(entry.place, mismatch.found)
                })
                .collect(),
        ),
        Refusal::Step { step, error } => match ledger.entries.get(step) {
            Some(entry) => tracker.named(entry.place, error),
            None => error,
        },
        Refusal::Whole(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        context::{Context, save::explained},
        entity::samples::Customer,
        error::{Error, ErrorKind},
        flush::FlushPlan,
        sql::{Mismatch, Refusal},
        tracker::{Ledger, Tracker},
        value::Value,
    };

    fn changed() -> (Tracker, Ledger) {
        let mut tracker = Tracker::new();
        let ada = tracker.attach(Customer::stored(5, "ada")).unwrap();
        tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
        let (_, ledger) = FlushPlan::of(tracker.detect().unwrap()).unwrap().render();
        tracker.depart(&ledger);
        (tracker, ledger)
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn a_lost_race_shows_original_current_and_database_values() {
        let (tracker, ledger) = changed();
        let found = Some(vec![
            Value::Integer(5),
            text("A."),
            Value::Null,
            Value::Integer(4),
        ]);
        let mismatch = Mismatch {
            step: 0,
            found: found.clone(),
        };
        let error = explained(Refusal::Mismatches(vec![mismatch]), &ledger, &tracker);
        assert!(error.is_conflict());
        let [conflict] = error.conflicts() else {
            panic!("one entity lost");
        };
        assert_eq!(
            (conflict.entity, &conflict.key),
            ("Customer", &vec![Value::Integer(5)])
        );
        assert_eq!(conflict.original[1], text("ada"));
        assert_eq!(conflict.current[1], text("Ada"));
        assert_eq!(conflict.database, found);
    }

    #[test]
    fn an_error_of_a_step_names_table_and_key() {
        let (tracker, ledger) = changed();
        let error = Error::new(ErrorKind::Check, "a check failed");
        let error = explained(Refusal::Step { step: 0, error }, &ledger, &tracker);
        assert_eq!(
            (error.table(), error.key()),
            (Some("customers"), &[Value::Integer(5)][..])
        );
    }

    #[test]
    fn a_context_and_its_futures_are_send() {
        fn send<T: Send>(_: T) {}
        let _ = |mut context: Context<'static>| {
            send(context.save_changes());
            send(context.find::<Customer>(1));
            send(context);
        };
    }
}
