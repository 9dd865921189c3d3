//! Saving into a transaction that somebody else ends.

use crate::{
    context::{
        Context, Saved, Source,
        save::{Answer, InFlight, explained},
    },
    engine::{Fate, Outcome, Transaction},
    error::{Error, ErrorKind, Result},
    sql::Receipt,
};

impl Context<'_> {
    /// Writes what was added, changed and removed since the last save into an open transaction, and accepts it once
    /// that is committed.
    ///
    /// Until then the context holds temporary keys and unsaved changes. Its first call after the end of the transaction
    /// takes over what became of it: committed, all is accepted, commit numbers included; rolled back (or dropped,
    /// or undone with a [savepoint](Transaction::savepoint)), all is as before, and can be saved again. Meanwhile the
    /// context can read and change, but not save again; nor [`reload`](Context::reload) what that save wrote, which it
    /// cannot see.
    ///
    /// What it reads is what was committed before, not what the transaction did. For work that goes on inside,
    /// [`Transaction::context`] is the simpler tool; this is for a context that outlives the transaction.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, item: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// let mut ctx = db.context();
    /// let tea = ctx.add(Order { id: 0, item: "tea".into() });
    ///
    /// let mut tx = db.begin().await?;
    /// ctx.save_changes_in(&mut tx).await?;
    /// tx.rollback().await?;
    /// assert_eq!(ctx.entry(tea).state(), EntityState::Added);
    ///
    /// let mut tx = db.begin().await?;
    /// ctx.save_changes_in(&mut tx).await?;
    /// sqlx::query("UPDATE \"order\" SET item = 'green tea'").execute(&mut *tx).await?;
    /// tx.commit().await?;
    /// assert!(ctx.find::<Order>(1).await? == Some(tea));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`save_changes`](Context::save_changes); the transaction is as before this call then, and goes on, unless
    /// SQLite itself ended it. `Refused` while an earlier save is in a transaction that is still open, for a context
    /// that is bound to a transaction, and for a transaction of another database.
    ///
    /// When COMMIT does not tell whether it took place, a later call fails with `OutcomeUnknown`, once.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the context is as before. Either nothing was written, or the transaction can only be rolled back,
    /// and its calls say so.
    pub async fn save_changes_in(&mut self, transaction: &mut Transaction) -> Result<Saved> {
        self.refuse_transaction(transaction)?;
        let changes = self.begin_save().await?;
        if changes.is_empty() {
            return Ok(Saved::default());
        }
        let (batch, ledger) = self.plan(changes)?;
        // Nothing is marked before there is an answer: nobody else can get at the context meanwhile.
        match transaction.apply(&batch).await {
            Ok(receipt) => {
                let saved = Saved::of(&ledger, &receipt);
                let told = self.depart(&ledger);
                self.in_flight = Some(InFlight {
                    answer: Answer::Later {
                        witness: transaction.witness(),
                        receipt,
                    },
                    ledger,
                    told,
                });
                Ok(saved)
            }
            Err(refusal) => {
                let error = explained(refusal, &ledger, &self.tracker);
                self.or_failed(Err(error))
            }
        }
    }

    fn refuse_transaction(&self, transaction: &Transaction) -> Result<()> {
        let refused = match &self.source {
            Source::Engine(engine, _) if engine.is_of(transaction) => return Ok(()),
            Source::Engine(..) => "the transaction is of another database than the context",
            Source::Transaction(_) | Source::Session(_) => {
                "the context is bound to a transaction already: use save_changes"
            }
            Source::Concurrent(_) => "the context saves as a session of its own: use save_changes",
        };
        Err(Error::new(ErrorKind::Refused, refused))
    }
}

/// What a transaction's fate means for a save in it; `None` while that is open.
pub(super) fn outcome(fate: Fate, receipt: &mut Receipt) -> Option<Outcome> {
    match fate {
        Fate::Open | Fate::Committing => None,
        Fate::Committed(number) => Some(Outcome::Committed(Receipt {
            commit_seq: number,
            ..std::mem::take(receipt)
        })),
        Fate::RolledBack => Some(refused(
            ErrorKind::TransactionEnded,
            "the transaction into which the save went was rolled back: nothing was written",
        )),
        Fate::Unknown => Some(refused(
            ErrorKind::OutcomeUnknown,
            "the commit of the transaction into which the save went may or may not have taken place: look before \
             trying again",
        )),
    }
}

fn refused(kind: ErrorKind, message: &'static str) -> Outcome {
    Outcome::Refused(Error::new(kind, message).into())
}
