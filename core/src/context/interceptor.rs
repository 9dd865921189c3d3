//! Interceptors: what an application wants done at every save, written once.

use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};

use crate::{
    context::{Context, EntityState, Saved},
    entity::Entity,
    error::{Error, Result},
    value::Value,
};

/// Takes part in the saves of a context.
///
/// Registered with [`DatabaseBuilder::interceptor`](crate::database::DatabaseBuilder::interceptor) it takes part in
/// all contexts of that handle and its clones, also in those of their transactions; with [`Context::intercept`], in
/// those of one context. Those of the database come first, each in the order of registration.
///
/// A save that has passed `saving` ends with `saved` or `failed`, once, unless it had nothing to write. If its future
/// is dropped, the call that settles it tells, as the [module](crate::context) says; if the context is dropped
/// as well, or the save was dropped before it was handed to the writer, nobody does.
///
/// Inside a method the context can read, add, change and remove, but not save: that is refused, with kind `Refused`.
/// A method that panics leaves the context usable: a save that was committed is accepted before anybody is told, and
/// all others are told before the panic goes on.
///
/// # Examples
///
/// An audit log, written by the same transaction as what it is about:
///
/// ```
/// use anabranch::{context::Interceptor, error::Result, prelude::*};
///
/// #[derive(Debug, Entity)]
/// struct Account {
///     #[entity(id)]
///     id: i64,
///     balance: i64,
/// }
///
/// #[derive(Debug, Entity)]
/// struct Audit {
///     #[entity(id)]
///     id: i64,
///     #[entity(references = Account, on_delete = SetNull)] // else no account with a line could be deleted
///     account_id: Option<i64>,
///     balance: i64,
/// }
///
/// struct Auditor;
///
/// impl Interceptor for Auditor {
///     async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
///         let changed: Vec<_> = ctx
///             .iter::<Account>()
///             .filter(|(handle, _)| ctx.entry(*handle).state() != EntityState::Unchanged)
///             .map(|(_, account)| (Some(account.id), account.balance))
///             .collect();
///         for (account_id, balance) in changed {
///             if balance < 0 {
///                 return Err(Error::new(ErrorKind::Refused, "an account may not be overdrawn"));
///             }
///             ctx.add(Audit { id: 0, account_id, balance });
///         }
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let db = Database::builder("").interceptor(Auditor).open_temporary().await?;
/// db.create_tables::<(Account, Audit)>().await?;
/// let mut ctx = db.context();
/// let account = ctx.add(Account { id: 0, balance: 10 });
/// assert_eq!(ctx.save_changes().await?.inserted, 2);
///
/// ctx[account].balance = -1;
/// assert_eq!(ctx.save_changes().await.unwrap_err().kind(), ErrorKind::Refused);
/// assert_eq!(Audit::query().count(&db).await?, 1);
/// # Ok(()) }
/// ```
pub trait Interceptor: Send + Sync + 'static {
    /// Before changes are looked for: what it adds, changes or removes is part of the save. It is called for a save
    /// that turns out to have nothing to write, too.
    ///
    /// What it added is forgotten when the save fails, since it will be asked again; what it changed or removed stays
    /// so.
    ///
    /// # Errors
    ///
    /// An error ends the save, with nothing written.
    fn saving(&self, ctx: &mut Context<'_>) -> impl Future<Output = Result<()>> + Send {
        let _ = ctx;
        std::future::ready(Ok(()))
    }

    /// After a save was committed and accepted. `changes` are the rows that it wrote, in the order of the
    /// statements; rows that the database deleted or changed because of them are not among them.
    ///
    /// In a context that is bound to a transaction the save is only as lasting as the transaction. One that went
    /// into a transaction by [`Context::save_changes_in`] is told of once that is committed.
    fn saved(&self, ctx: &mut Context<'_>, saved: &Saved, changes: &[SavedChange]) {
        let _ = (ctx, saved, changes);
    }

    /// After a save failed, at whatever step; the context is as it was before the save, but for what `saving` changed
    /// in it.
    fn failed(&self, ctx: &mut Context<'_>, error: &Error) {
        let _ = (ctx, error);
    }

    /// An entity begins to be tracked: it was added or attached, or a query read it.
    ///
    /// There is no event for a changed state: a context finds out by comparison, when a save or somebody asks.
    fn tracked(&self, entity: NewlyTracked<'_>) {
        let _ = entity;
    }
}

/// A row that a save wrote.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SavedChange {
    /// The entity's Rust name.
    pub entity: &'static str,
    /// Its table.
    pub table: &'static str,
    /// Its key.
    pub key: Vec<Value>,
    /// What was done.
    pub kind: ChangeKind,
}

/// What a save did with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It was inserted.
    Inserted,
    /// It was updated.
    Updated,
    /// It was deleted.
    Deleted,
}

/// An entity that a context begins to track.
#[derive(Clone, Copy)]
pub struct NewlyTracked<'a> {
    pub(crate) entity: &'a dyn Any,
    pub(crate) name: &'static str,
    pub(crate) state: EntityState,
}

impl<'a> NewlyTracked<'a> {
    /// The entity, if it is one of this type.
    #[must_use]
    pub fn get<E: Entity>(self) -> Option<&'a E> {
        self.entity.downcast_ref()
    }

    /// Its Rust name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// `Added`; of one that is a row already `Unchanged`, or `Modified` if it is to be written as a whole.
    #[must_use]
    pub const fn state(self) -> EntityState {
        self.state
    }
}

impl fmt::Debug for NewlyTracked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewlyTracked")
            .field("name", &self.name)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// An [`Interceptor`] of some type.
pub(crate) trait ErasedInterceptor: Send + Sync {
    fn saving<'a>(
        &'a self,
        ctx: &'a mut Context<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;
    fn saved(&self, ctx: &mut Context<'_>, saved: &Saved, changes: &[SavedChange]);
    fn failed(&self, ctx: &mut Context<'_>, error: &Error);
    fn tracked(&self, entity: NewlyTracked<'_>);
}

impl<I: Interceptor> ErasedInterceptor for I {
    fn saving<'a>(
        &'a self,
        ctx: &'a mut Context<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(Interceptor::saving(self, ctx))
    }

    fn saved(&self, ctx: &mut Context<'_>, saved: &Saved, changes: &[SavedChange]) {
        Interceptor::saved(self, ctx, saved, changes);
    }

    fn failed(&self, ctx: &mut Context<'_>, error: &Error) {
        Interceptor::failed(self, ctx, error);
    }

    fn tracked(&self, entity: NewlyTracked<'_>) {
        Interceptor::tracked(self, entity);
    }
}

/// Interceptors in the order in which they are called; without any, nothing is allocated.
#[derive(Clone, Default)]
pub(crate) struct Interceptors(Option<Arc<[Arc<dyn ErasedInterceptor>]>>);

impl Interceptors {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// One more, after the others.
    pub(crate) fn push(&mut self, interceptor: impl Interceptor) {
        let one: Arc<dyn ErasedInterceptor> = Arc::new(interceptor);
        self.0 = Some(self.iter().cloned().chain([one]).collect());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn ErasedInterceptor>> {
        self.0.iter().flat_map(|all| all.iter())
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors", self.iter().count())
    }
}
