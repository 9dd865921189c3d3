//! Calling the interceptors of a context.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::{
    context::{
        ChangeKind, Context, Interceptor, NewlyTracked, Saved, SavedChange, Tracked,
        interceptor::{ErasedInterceptor, Interceptors},
    },
    entity::Entity,
    error::{Error, ErrorKind, Result},
    sql::Receipt,
    tracker::{Ledger, Written},
    value::Value,
};

/// A context while an interceptor has it. Dropped, also by a panic or with its future, the context may save again.
struct Intercepted<'a, 't> {
    ctx: &'a mut Context<'t>,
    /// Whether what is added now goes with the save.
    supplies: bool,
}

impl<'a, 't> Intercepted<'a, 't> {
    fn new(ctx: &'a mut Context<'t>, supplies: bool) -> Self {
        ctx.intercepted = true;
        Self { ctx, supplies }
    }
}

impl Drop for Intercepted<'_, '_> {
    fn drop(&mut self) {
        self.ctx.intercepted = false;
        if self.supplies {
            self.ctx.supplied.end = self.ctx.tracker.next_serial();
        }
    }
}

impl Context<'_> {
    /// Lets an interceptor take part in the saves of this context, from the next one on.
    ///
    /// ```
    /// use anabranch::{context::{Interceptor, SavedChange}, error::Result, prelude::*};
    /// use std::sync::mpsc::{Sender, channel};
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Customer { #[entity(id)] id: i64, name: String }
    /// /// Tells a cache which rows are out of date.
    /// struct Outdated(Sender<SavedChange>);
    ///
    /// impl Interceptor for Outdated {
    ///     fn saved(&self, _: &mut Context<'_>, _: &Saved, changes: &[SavedChange]) {
    ///         for change in changes {
    ///             self.0.send(change.clone()).ok();
    ///         }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Customer>().await?;
    /// let (outdated, cache) = channel();
    /// let mut ctx = db.context();
    /// ctx.intercept(Outdated(outdated));
    /// ctx.add(Customer { id: 0, name: "Ada".into() });
    /// ctx.save_changes().await?;
    /// assert_eq!(cache.recv().unwrap().table, "customer");
    /// # Ok(()) }
    /// ```
    pub fn intercept(&mut self, interceptor: impl Interceptor) {
        self.interceptors.push(interceptor);
    }

    /// Refuses a save that an interceptor asks for: it would come back to it without end.
    pub(crate) fn refuse_in_interceptor(&self) -> Result<()> {
        if self.intercepted {
            return Err(Error::new(
                ErrorKind::Refused,
                "an interceptor cannot save: what it changes in `saving` is part of the save that calls it",
            ));
        }
        Ok(())
    }

    pub(crate) async fn tell_saving(&mut self) -> Result<()> {
        let interceptors = self.interceptors.clone();
        // Of a save whose future was dropped in the middle of it.
        self.withdraw_supplied();
        let first = self.tracker.next_serial();
        self.supplied = first..first;
        for interceptor in interceptors.iter() {
            let intercepted = Intercepted::new(self, true);
            interceptor.saving(&mut *intercepted.ctx).await?;
        }
        Ok(())
    }

    /// Forgets what interceptors added for a save that failed: they will add it again for the next one.
    pub(crate) fn withdraw_supplied(&mut self) {
        let supplied = std::mem::take(&mut self.supplied);
        if !supplied.is_empty() {
            self.tracker.withdraw(&supplied);
        }
    }

    pub(crate) fn tell_saved(
        &mut self,
        interceptors: &Interceptors,
        saved: &Saved,
        changes: &[SavedChange],
    ) {
        self.tell(interceptors, |interceptor, ctx| {
            interceptor.saved(ctx, saved, changes);
        });
    }

    pub(crate) fn tell_failed(&mut self, interceptors: &Interceptors, error: &Error) {
        self.tell(interceptors, |interceptor, ctx| {
            interceptor.failed(ctx, error);
        });
    }

    /// All are told, also after one that panics.
    fn tell(
        &mut self,
        interceptors: &Interceptors,
        told: impl Fn(&dyn ErasedInterceptor, &mut Context<'_>),
    ) {
        let mut panic: Option<Box<dyn Any + Send>> = None;
        for interceptor in interceptors.iter() {
            let ctx = Intercepted::new(self, false);
            let called = catch_unwind(AssertUnwindSafe(|| told(&**interceptor, &mut *ctx.ctx)));
            panic = panic.or(called.err());
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// An entity is tracked from now on.
    pub(crate) fn tell_tracked<E: Entity>(&self, handle: Tracked<E>) {
        let Some(record) = (!self.interceptors.is_empty())
            .then(|| self.tracker.record(handle))
            .flatten()
        else {
            return;
        };
        let entity = NewlyTracked {
            entity: &record.entity,
            name: E::TABLE.entity,
            state: record.state(),
        };
        for interceptor in self.interceptors.iter() {
            interceptor.tracked(entity);
        }
    }

    /// What a plan is about to write, for those who are told once it is written.
    pub(crate) fn changes_of(&self, ledger: &Ledger) -> Vec<SavedChange> {
        if self.interceptors.is_empty() {
            return Vec::new();
        }
        (ledger.entries.iter())
            .map(|entry| {
                let (table, key) = self.tracker.identity(entry.place);
                SavedChange {
                    entity: table.entity,
                    table: table.name,
                    key,
                    kind: match entry.written {
                        Written::Inserted { .. } => ChangeKind::Inserted,
                        Written::Updated { .. } => ChangeKind::Updated,
                        Written::Deleted { .. } => ChangeKind::Deleted,
                    },
                }
            })
            .collect()
    }
}

/// Puts the keys that the writer gave in the place of temporary ones.
pub(crate) fn with_given_keys(changes: &mut [SavedChange], ledger: &Ledger, receipt: &Receipt) {
    for value in changes.iter_mut().flat_map(|change| &mut change.key) {
        if let Value::Integer(key) = value
            && let Some(position) = ledger.keys.find(*key)
            && let Some(given) = receipt.keys.get(position)
        {
            *key = *given;
        }
    }
}
