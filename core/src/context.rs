//! The unit of work: entities are read, changed in memory, and saved together.
//!
//! A [`Context`] tracks entities and hands out [`Tracked`] handles to them; it is indexed with a handle. Nothing
//! reaches the database before [`Context::save_changes`], which finds out what changed and writes that in one
//! transaction. A context belongs to one piece of work, such as one request: it is cheap to make, `Send`, and
//! not shared.
//!
//! # States
//!
//! ```text
//!            add                  save
//! Detached ───────▶ Added ──────────────────▶ Unchanged ◀── attach, find, a tracked query
//!    ▲                │                        │     ▲
//!    │         remove │                 change │     │ save, or changed back
//!    │◀───────────────┘                        ▼     │
//!    │  save                                  Modified
//!    │◀────────────── Deleted ◀── remove ──── (from Unchanged or Modified)
//! ```
//!
//! [`EntityState::Modified`] is not a decision but a finding: some column differs from what was read (or was marked to
//! be written all the same). `reset` and `reload` lead back to Unchanged; `detach` and `clear` lead from any state to
//! [`EntityState::Detached`].
//!
//! # A save
//!
//! 1. *Detect.* Entities that were touched are compared with what they were, column by column. Two columns are
//!    not the application's: a changed `version` is refused, a changed `commit_seq` is passed over.
//! 2. *Plan.* Changes become statements in the order the database needs; temporary keys become questions to the
//!    writer. A value that cannot be stored ends the save here, with nothing written.
//! 3. *Submit.* The batch is handed over, and the context keeps what is needed to accept it: it is *in flight*.
//! 4. *Settle.* The answer is awaited. It comes only after the commit.
//! 5. *Accept.* Keys, versions and commit numbers are set in the entities, temporary keys are replaced wherever
//!    a declared reference holds one, and what was written becomes what the database is known to hold.
//!
//! If any step fails the context is exactly as before, and can be saved again.
//!
//! # Changes from elsewhere
//!
//! * [`update`](Context::update) takes an entity that was read earlier and changed outside of any context, and writes
//!   it whole; [`set_values`](Context::set_values) sets what a form or a JSON object mentions. Either way a version
//!   that came along is checked by the save, so that what somebody else saved meanwhile is not overwritten unseen.
//! * `ctx[handle] = entity` replaces an entity. Its key and its version have to be those of the tracked one, or the
//!   save refuses it; an added entity keeps the key it was given if the new one has none.
//! * [`reload`](Context::reload) takes the row as it is now, [`reset`](Context::reset) goes back to what was read.
//!
//! # Conflicts
//!
//! A save that lost a race changes nothing, and its error has the original, current and database values. One call says
//! what is to become of it: [`client_wins`](Context::client_wins), [`store_wins`](Context::store_wins),
//! [`merge`](Context::merge), or [`merge_with`](Context::merge_with), which asks about what clashes. None of them
//! asks the database. After it the save goes through, unless somebody wrote again meanwhile; so it stands in a loop:
//!
//! ```
//! # use anabranch::prelude::*;
//! # #[derive(Debug, Entity)]
//! # struct Item { #[entity(id)] id: i64, name: String, price: i64, #[entity(version)] version: i64 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! # let db = Database::temporary().await?;
//! # db.create_tables::<Item>().await?;
//! # let mut ctx = db.context();
//! # let tea = ctx.add(Item { id: 0, name: "tea".into(), price: 3, version: 0 });
//! # ctx.save_changes().await?;
//! # let mut other = db.context();
//! # let same = other.find::<Item>(ctx[tea].id).await?.unwrap();
//! # other[same].price = 5;
//! # other.save_changes().await?;
//! ctx[tea].name = "green tea".into(); // while somebody else changes the price
//! while let Err(error) = ctx.save_changes().await {
//!     if !error.is_conflict() {
//!         return Err(error);
//!     }
//!     ctx.merge(&error)?;
//! }
//! assert_eq!((ctx[tea].name.as_str(), ctx[tea].price), ("green tea", 5));
//! # Ok(()) }
//! ```
//!
//! # Cancellation
//!
//! A dropped save leaves its plan in flight. The next `async` call first settles what became of it: it never ran,
//! it was refused (either way the changes are still to be saved), or it was committed, and then it is accepted
//! before anything else. So a save that was dropped and is called again never writes twice. Calls that do not
//! wait take the answer if it is there, and else go on:
//!
//! * what is changed now is compared, once the plan is accepted, with what the plan wrote;
//! * an added entity that is removed now is deleted by the next save if its insert was committed, and else forgotten;
//! * what is detached or cleared now is gone from the context, whatever becomes of the plan.
//!
//! # What the database does by itself
//!
//! When a save deletes a row, entities that referred to it follow as their references declare, once the save is
//! accepted. By their references as they were read or last saved, not by what these were changed to since:
//!
//! | `on_delete` | a tracked entity that referred to the row |
//! |---|---|
//! | `Cascade` | is gone, its handle stale; so are those that referred to it |
//! | `SetNull` | refers to nothing; a reference that was changed meanwhile, and all else, stays. If a `generated` column is computed from the reference, it is no longer tracked: find it again |
//! | `SetDefault` | is no longer tracked, since the database decides what it refers to: find it again |
//! | `NoAction`, `Restrict` | the database refuses the delete |
//!
//! A cascade is followed through tracked entities: one that referred to the row by way of a row that is not tracked stays,
//! and saving a change of it is a conflict.
//!
//! A row that is removed and added again under the same key is a new one to the database: what referred to the old one
//! goes with it, unless it is moved elsewhere, and what comes to refer to the key in the same save refers to the new one.
//! An entity cannot do both, leave one that goes for one that comes back under its key: that save is a conflict.
//!
//! A removed entity whose row may have gone with another of the same save, on a circle of cascades, counts as deleted
//! when there is no row. An entity that is still to be inserted stays `Added`; if it refers to what is gone, the next
//! save is refused, with kind `ForeignKey`. What other contexts, raw SQL or triggers do to tracked rows is not seen:
//! saving a change of a row that is gone is a conflict; `reload` finds out. Two rows that swap a unique value in one save
//! get the database's `Unique`.
//!
//! # Inside a transaction
//!
//! A context that is bound to a transaction saves into it at once: all of a save or nothing, and the
//! transaction goes on either way. What it accepted is only as lasting as the transaction.
//!
//! Any other context saves into a transaction with [`Context::save_changes_in`], and accepts once that is committed.
//! Until then its plan is in flight, like that of a dropped save.
//!
//! # Interceptors
//!
//! An [`Interceptor`] takes part in saves. Who is told of a save that was dropped is told by the call that settles it:
//! by `find` or `save_changes`, and as well by one that does not wait, such as `add` or `ctx[handle].field = value`.

mod access;
mod concurrent;
mod debug_view;
mod edit;
mod entry;
mod graph;
mod hooks;
mod interceptor;
mod later;
mod link;
mod load;
mod load_column;
mod related;
mod reload;
mod replace;
mod resolve;
mod save;
mod save_token;
mod sever;

use std::{fmt, ops::Range, panic::Location};

use crate::{
    context::{concurrent::Concurrent, save::InFlight},
    engine::{Attachment, Engine, Session, Transaction},
    entity::{CommitSeq, Entity},
    error::{Error, Result},
    query::{self, Page, Paged, Query, Selection},
    sql::{Executor, Read},
    tracker::Tracker,
};

pub(crate) use self::interceptor::Interceptors;
pub use self::{
    debug_view::DebugView,
    entry::Entry,
    graph::Graph,
    interceptor::{ChangeKind, Interceptor, NewlyTracked, SavedChange},
    load::Tracking,
    related::{Navigation, Refers},
    replace::Children,
    save_token::{SaveToken, SavedAt},
};
pub use crate::tracker::{AnyEntry, Clash, ColumnEntry, EntityState, Tracked, Winner};

/// A unit of work: tracks entities, and saves what changed in one transaction. See the [module](self).
pub struct Context<'t> {
    source: Source<'t>,
    tracker: Tracker,
    in_flight: Option<InFlight>,
    /// The serial numbers of what interceptors added for the save that is under way.
    supplied: Range<u64>,
    /// A dropped save may or may not have been committed; the next call that can report it does.
    unknown: Option<Error>,
    interceptors: Interceptors,
    /// An interceptor has the context at the moment.
    intercepted: bool,
}

/// Where a context reads and saves.
#[derive(Debug)]
enum Source<'t> {
    /// The engine, and where the context was made, by which its queries are named.
    Engine(Engine, &'static Location<'static>),
    Transaction(&'t mut Transaction),
    Session(&'t mut Session),
    Concurrent(Box<Concurrent>),
}

/// What queries of a context are called, with the place where it was made.
const QUERY: &str = "a query of the context";

impl Source<'_> {
    /// The name of the file, as spans have it.
    fn namespace(&self) -> &str {
        match self {
            Self::Engine(engine, _) => engine.namespace(),
            Self::Transaction(transaction) => transaction.namespace(),
            Self::Session(session) => session.namespace(),
            Self::Concurrent(concurrent) => concurrent.namespace(),
        }
    }
}

/// What a save wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Saved {
    /// How many entities were inserted.
    pub inserted: usize,
    /// How many entities were updated.
    pub updated: usize,
    /// How many entities were deleted.
    pub deleted: usize,
    /// The commit number, if a table with such a column was written.
    pub commit_seq: Option<CommitSeq>,
}

impl Context<'static> {
    /// A context whose saves go through the queue, each in a transaction of its own.
    #[must_use]
    pub(crate) fn new(engine: Engine, at: &'static Location<'static>) -> Self {
        let interceptors = interceptors(engine.attachment());
        Self::of(Source::Engine(engine, at), interceptors)
    }
}

impl<'t> Context<'t> {
    /// A context that reads and saves in a transaction.
    #[must_use]
    pub(crate) fn in_transaction(transaction: &'t mut Transaction) -> Self {
        let interceptors = interceptors(transaction.attachment());
        Self::of(Source::Transaction(transaction), interceptors)
    }

    /// A context that reads and saves in a session.
    #[must_use]
    pub(crate) fn in_session(session: &'t mut Session) -> Self {
        let interceptors = interceptors(session.attachment());
        Self::of(Source::Session(session), interceptors)
    }

    fn of(source: Source<'t>, interceptors: Interceptors) -> Self {
        Self {
            source,
            tracker: Tracker::new(),
            supplied: 0..0,
            in_flight: None,
            unknown: None,
            interceptors,
            intercepted: false,
        }
    }

    /// The transaction to which this context is bound, for queries and statements beside it.
    pub fn transaction(&mut self) -> Option<&mut Transaction> {
        match &mut self.source {
            Source::Transaction(transaction) => Some(transaction),
            _ => None,
        }
    }

    /// The session to which this context is bound, for queries and statements beside it; in a
    /// [concurrent](Context::concurrent) context the one that is open, if any is.
    pub fn session(&mut self) -> Option<&mut Session> {
        match &mut self.source {
            Source::Session(session) => Some(session),
            Source::Concurrent(concurrent) => concurrent.open_session(),
            Source::Engine(..) | Source::Transaction(_) => None,
        }
    }

    /// The entity with this key: the tracked one as it is here, else read from the database and tracked. `None` if
    /// there is none, or it was removed here.
    ///
    /// # Errors
    ///
    /// Those of reading; kind `Value` if the key cannot be stored.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn find<E: Entity>(&mut self, key: impl Into<E::Key>) -> Result<Option<Tracked<E>>> {
        let key = key.into();
        self.settle_abandoned().await?;
        if let Some(known) = self.tracker.lookup(&key) {
            return Ok(known);
        }
        let found = self.load_read(query::found_by_key(&key)?).await?;
        Ok(found.first().copied())
    }

    /// Runs a query and tracks what it reads. An entity that is tracked already stays as it is, with its local
    /// changes; one that was removed here is left out.
    pub(crate) async fn load_read<E: Entity>(&mut self, read: Read<E>) -> Result<Vec<Tracked<E>>> {
        self.settle_abandoned().await?;
        let entities = self.read(read).await?;
        if self.is_accepted_later() {
            // Rows of its transaction may have become visible meanwhile: they are those that are tracked here.
            self.settle_abandoned().await?;
        }
        let tracked = entities.into_iter().filter_map(|entity| self.track(entity));
        Ok(tracked.collect())
    }

    /// Tracks an entity that was read; nothing if it was removed here.
    fn track<E: Entity>(&mut self, entity: E) -> Option<Tracked<E>> {
        let known = self.tracker.len();
        let handle = self.tracker.track(entity)?;
        if self.tracker.len() > known {
            self.tell_tracked(handle);
        }
        Some(handle)
    }

    async fn run_page<E: Entity, S: Selection<E>>(
        &mut self,
        paged: Paged<E, S>,
    ) -> Result<Page<S::Output>> {
        match &mut self.source {
            Source::Engine(engine, at) => paged.read(engine.asked_at(QUERY, at)).await,
            Source::Transaction(transaction) => paged.read(&mut **transaction).await,
            Source::Session(session) => paged.read(&mut **session).await,
            Source::Concurrent(concurrent) => paged.read(concurrent.session().await?).await,
        }
    }

    async fn run<E: Entity, S: Selection<E>>(
        &mut self,
        query: Query<E, S>,
    ) -> Result<Vec<S::Output>> {
        match &mut self.source {
            Source::Engine(engine, at) => query.all(engine.asked_at(QUERY, at)).await,
            Source::Transaction(transaction) => query.all(&mut **transaction).await,
            Source::Session(session) => query.all(&mut **session).await,
            Source::Concurrent(concurrent) => query.all(concurrent.session().await?).await,
        }
    }

    async fn read<E: Entity>(&mut self, read: Read<E>) -> Result<Vec<E>> {
        match &mut self.source {
            Source::Engine(engine, at) => engine.asked_at(QUERY, at).read(read).await,
            Source::Transaction(transaction) => (&mut **transaction).read(read).await,
            Source::Session(session) => (&mut **session).read(read).await,
            Source::Concurrent(concurrent) => concurrent.session().await?.read(read).await,
        }
    }
}

/// The interceptors that a database hung on its engine.
fn interceptors(attachment: Option<&Attachment>) -> Interceptors {
    let interceptors = attachment.and_then(|attachment| attachment.downcast_ref::<Interceptors>());
    interceptors.cloned().unwrap_or_default()
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("tracker", &self.tracker)
            .field("in_flight", &self.in_flight.is_some())
            .finish_non_exhaustive()
    }
}
