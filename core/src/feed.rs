//! Feeds: what was committed, in the order of the commits, to consumers that each have a place of their own.
//!
//! [`Database::feed`](crate::database::Database::feed) is one consumer's view of one table. Its place is a row in the file, named by the
//! consumer, its cursor, which moves when a batch is acknowledged: after a crash the consumer goes on where it was. The table's entity has a `commit_seq` with
//! an index, and `#[entity(tombstones)]` if deletions are to be told of.
//!
//! ```
//! use anabranch::{feed::Change, prelude::*};
//!
//! #[derive(Debug, Entity)]
//! #[entity(tombstones)]
//! struct Order {
//!     #[entity(id)]
//!     id: i64,
//!     item: String,
//!     #[entity(commit_seq, index)]
//!     seq: CommitSeq,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! let db = Database::temporary().await?;
//! db.create_tables::<Order>().await?;
//! let mut ctx = db.context();
//! let order = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
//! ctx.save_changes().await?;
//!
//! let mut feed = db.feed::<Order>("mailer");
//! let batch = feed.next_batch().await?;
//! for event in &batch {
//!     match &event.change {
//!         Change::Saved(order) => println!("mail about {}", order.item),
//!         Change::Deleted(id) => println!("order {id} is gone"),
//!     }
//! }
//! batch.ack().await?;
//!
//! // The next batch waits for the next commit.
//! ctx.remove(order);
//! ctx.save_changes().await?;
//! let batch = feed.next_batch().await?;
//! assert!(batch.events()[0].is_deleted());
//! # Ok(()) }
//! ```
//!
//! # What is told
//!
//! * **Every commit is, at least once, in order, whole.** The number is given under the write lock, at the end of the transaction: who
//!   has seen 7 never meets a 6 later. A row that was changed again before the feed read it is told of once, with the later
//!   commit, as it is then. So a consumer that keeps the rows has what the table has at the end of each batch.
//! * **Deletions** come before the rows of their commit, for a key that was told of or not. Rows that `INSERT OR REPLACE` in SQL
//!   of the application drops, as they clash with a row of another key, are not told of: SQLite runs no triggers for them. An
//!   [upsert](crate::query::upsert) drops none.
//! * **A feed is of one table**: what one commit did to two tables comes by two feeds, each in its own time.
//! * **An acknowledgement moves the place only from where the batch began.** Two consumers of one name do not both pass it: one is told
//!   [`CursorMoved`](crate::error::ErrorKind::CursorMoved).
//! * **A reader is open for no longer than it takes to read a batch**: a slow consumer is in nobody's way.

mod batch;
mod cursor;
mod each;
mod event;
mod list;
mod parked;
mod place;
mod position;
mod reading;
mod tombstones;

pub use self::{
    batch::Batch,
    cursor::Start,
    each::{GiveUp, Park, Retries},
    event::{Change, Event, EventId},
    list::{CursorState, Lag},
    parked::Parked,
    position::{NotAPosition, Position},
    tombstones::Retention,
};
pub(crate) use self::{
    list::{cursors, last_commit, remove, renew_epoch},
    tombstones::prune,
};

use std::{
    fmt,
    panic::Location,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_core::Stream;
use futures_util::{future::BoxFuture, stream};
use tracing::Instrument as _;

use self::{
    batch::Step,
    cursor::{State, acknowledge, asked, check, find, prepare},
    position::Place,
    reading::{Reading, Wanted},
};
use crate::{
    engine::{Engine, commit_or},
    entity::Entity,
    error::{Error, ErrorKind, Result},
    observe::{FeedTold, span},
    query::{Condition, Query, raw},
};

/// Once so many numbers were passed in which there was nothing for a feed, its place is moved past them.
const MARK_AFTER: i64 = 1000;

/// Past what a filter left out it is moved after this time: else it would seem to wait.
const MARK_LEFT_OUT_AFTER: Duration = Duration::from_secs(1);

/// More than any batch has.
const MOST_ROWS: usize = u32::MAX as usize - 1;

/// A feed that looked all the time would not let others run.
const LEAST_LOOK: Duration = Duration::from_millis(1);

/// A consumer of the changes of a table; see the [module's page](self).
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # #[entity(tombstones)]
/// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Order>().await?;
/// # let mut ctx = db.context();
/// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
/// # ctx.save_changes().await?;
/// let mut feed = db.feed::<Order>("mailer").batch_rows(100);
/// let batch = feed.next_batch().await?;
/// batch.ack().await?;
/// # Ok(()) }
/// ```
#[must_use = "a feed does nothing until a batch is asked for"]
pub struct Feed<E: Entity> {
    engine: Engine,
    name: Arc<str>,
    at: &'static Location<'static>,
    wanted: Wanted<E>,
    start: Start,
    look_every: Duration,
    ack_every: Duration,
    /// Whether tables, index and cursor were found.
    is_prepared: bool,
    /// The schema in which that was so.
    schema: Option<i64>,
    /// With which nothing was found.
    idle: Option<Idle>,
    /// Since when there is something that its filter left out, and its place is not behind it.
    passing: Option<Instant>,
    told: FeedTold,
}

/// What has to change before there can be something again.
#[derive(Debug, Clone)]
struct Idle {
    present: Present,
    /// The place that a stream has read up to; where it ends, what is before comes again.
    ahead: Option<Place>,
    /// Past what its filter left out, and since when it may be moved there.
    passed: Option<(Step, Instant)>,
}

/// The last commit, the schema, whether the epoch is that of the cursor, and the cursor's generation and place.
type Present = (i64, i64, bool, i64, i64, Option<String>);

impl<E: Entity> fmt::Debug for Feed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("name", &self.name)
            .field("table", &E::TABLE.name)
            .finish_non_exhaustive()
    }
}

impl<E: Entity> Feed<E> {
    pub(crate) fn new(engine: Engine, name: String, at: &'static Location<'static>) -> Self {
        const {
            assert!(
                E::TABLE.commit_seq.is_some(),
                "a feed is in the order of commits: add a field `#[entity(commit_seq, index)] seq: CommitSeq` to the entity"
            );
        }
        Self {
            engine,
            name: name.into(),
            at,
            wanted: Wanted {
                query: Query::new().without_filters(),
                rows: 1000,
                splits: false,
                is_filtered: false,
            },
            start: Start::default(),
            look_every: Duration::from_millis(100),
            ack_every: Duration::from_secs(1),
            is_prepared: false,
            schema: None,
            idle: None,
            passing: None,
            told: FeedTold::default(),
        }
    }
}

/// # What is told of
impl<E: Entity> Feed<E> {
    /// Where a consumer of this name begins, if there was none before. Default: [`Start::Beginning`].
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// use anabranch::feed::Start;
    ///
    /// let mut feed = db.feed::<Order>("mailer").start(Start::Now);
    /// assert!(feed.try_next_batch().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub const fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Tells only of rows that fulfil the condition when they are read; that a row has ceased to is not told. Deletions are told
    /// of all rows. The cursor passes what is left out within about a second. The entity's own filters do not apply.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// let mut feed = db.feed::<Order>("cakes").filter(Order::ITEM.eq("cake"));
    /// assert!(feed.try_next_batch().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn filter(mut self, condition: Condition<E>) -> Self {
        self.wanted.query = self.wanted.query.filter(condition);
        self.wanted.is_filtered = true;
        self
    }

    /// How many changes a batch has at most, unless one commit has more; one at least. Default: 1,000.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// # Order::query().update().set(Order::ITEM, "cake").execute(&db).await?;
    /// let mut feed = db.feed::<Order>("mailer").batch_rows(100);
    /// assert_eq!(feed.next_batch().await?.len(), 1);
    /// # Ok(()) }
    /// ```
    pub const fn batch_rows(mut self, rows: usize) -> Self {
        self.wanted.rows = match rows {
            0 => 1,
            // One more is read, and SQLite counts up to there.
            MOST_ROWS.. => MOST_ROWS,
            rows => rows,
        };
        self
    }

    /// Cuts commits that have more changes than a batch: such a batch [is split](Batch::is_split). Without it a batch has all of
    /// the commit, in memory.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// # ctx.add(Order { id: 0, item: "jam".into(), seq: CommitSeq(0) });
    /// # ctx.add(Order { id: 0, item: "cake".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// let mut feed = db.feed::<Order>("mailer").batch_rows(1).split_commits();
    /// let first = feed.next_batch().await?; // the tea, a commit of its own
    /// first.ack().await?;
    /// assert!(feed.next_batch().await?.is_split());
    /// # Ok(()) }
    /// ```
    pub const fn split_commits(mut self) -> Self {
        self.wanted.splits = true;
        self
    }

    /// How often to look for commits of other processes; those of this one wake the feed at once. A look takes some
    /// microseconds. A millisecond at least. Default: 100 milliseconds.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// use std::time::Duration;
    ///
    /// let mut feed = db.feed::<Order>("mailer").look_every(Duration::from_millis(10));
    /// assert!(feed.try_next_batch().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub const fn look_every(mut self, interval: Duration) -> Self {
        self.look_every = interval;
        self
    }

    /// After how long [`each`](Self::each) acknowledges what is done of a batch, between two of its commits; what was done since is
    /// done again if the process ends. Zero: after each commit. Default: one second.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # async fn mail(_: &Order) -> std::io::Result<()> { Ok(()) }
    /// # async fn run(db: Database) -> anabranch::error::Result<()> {
    /// use anabranch::feed::Retries;
    /// use std::time::Duration;
    ///
    /// let mut feed = db.feed::<Order>("mailer").ack_every(Duration::ZERO);
    /// feed.each(Retries::new(), async |event| {
    ///     if let Some(order) = event.row() {
    ///         mail(order).await?;
    ///     }
    ///     Ok(())
    /// })
    /// .await
    /// # }
    /// ```
    pub const fn ack_every(mut self, interval: Duration) -> Self {
        self.ack_every = interval;
        self
    }
}

/// # Taking
impl<E: Entity> Feed<E> {
    /// The next changes; waits until there are some, or until [all rows of the start](Start::Snapshot) have come. As long as it is not acknowledged the same batch comes again, with what was
    /// committed since as far as there is room.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// let mut feed = db.feed::<Order>("mailer");
    /// let batch = feed.next_batch().await?;
    /// let again = feed.next_batch().await?;
    /// assert_eq!(again.events()[0].id(), batch.events()[0].id());
    /// again.ack().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind [`EpochChanged`](crate::error::ErrorKind::EpochChanged) if the file is a backup that was restored:
    /// [`accept_epoch`](Self::accept_epoch) goes on, [`rewind`](Self::rewind) elsewhere.
    /// [`CursorExpired`](crate::error::ErrorKind::CursorExpired) if deletions were forgotten that the consumer did not see: `rewind`.
    /// [`Refused`](crate::error::ErrorKind::Refused) if the cursor was removed since, or was to begin after a commit that is not in
    /// the file. [`Model`](crate::error::ErrorKind::Model) if the table has no index on its commit numbers, or the name is that of a
    /// feed of another table. [`Decode`](crate::error::ErrorKind::Decode), each time, for a row with a value that does not fit its field:
    /// mend the row, or leave it out with a [`filter`](Self::filter). What reads can meet; the first one writes the cursor.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn next_batch(&mut self) -> Result<Batch<E>> {
        self.wait_for(None, None).await
    }

    /// The next changes, if there are any. Errors and cancel safety as of [`next_batch`](Self::next_batch).
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, item: String, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Order { id: 0, item: "tea".into(), seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// let mut feed = db.feed::<Order>("mailer");
    /// while let Some(batch) = feed.try_next_batch().await? {
    ///     batch.ack().await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`next_batch`](Self::next_batch).
    pub async fn try_next_batch(&mut self) -> Result<Option<Batch<E>>> {
        self.look(None).await
    }

    /// Batch after batch, each read while the one before may still be dealt with. They are acknowledged in their order. It ends
    /// after an error; a new one begins after what was acknowledged.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # for _ in 0..3 {
    /// #     let mut ctx = db.context();
    /// #     ctx.add(Order { id: 0, seq: CommitSeq(0) });
    /// #     ctx.save_changes().await?;
    /// # }
    /// use futures_util::TryStreamExt as _;
    ///
    /// let mut feed = db.feed::<Order>("mailer").batch_rows(2);
    /// let mut batches = feed.stream();
    /// let first = batches.try_next().await?.unwrap();
    /// let second = batches.try_next().await?.unwrap();
    /// assert_eq!((first.len(), second.len()), (2, 1));
    /// first.ack().await?;
    /// second.ack().await?;
    /// # Ok(()) }
    /// ```
    pub fn stream(&mut self) -> impl Stream<Item = Result<Batch<E>>> + Send + Unpin + '_ {
        stream::try_unfold((self, None), |(feed, ahead)| {
            Box::pin(async move {
                let batch = feed.wait_for(ahead, None).await?;
                let ahead = Some((batch.step.to.clone(), batch.step.generation));
                Ok(Some((batch, (feed, ahead))))
            })
        })
    }
}

impl<E: Entity> Feed<E> {
    /// Boxed, so that tasks can be made of it: the compiler does not see through so many borrows that it can be sent.
    ///
    /// `patience`: what passes by itself is waited for so often, one after the other.
    fn wait_for(
        &mut self,
        ahead: Option<(Place, i64)>,
        patience: Option<Retries>,
    ) -> BoxFuture<'_, Result<Batch<E>>> {
        Box::pin(async move {
            let commits = self.engine.commits();
            let mut failed = 0;
            loop {
                let commit = commits.next();
                match (self.look(ahead.clone()).await, patience) {
                    (Ok(Some(batch)), _) => return Ok(batch),
                    (Ok(None), _) => failed = 0,
                    (Err(error), Some(retries)) => {
                        self.endure(retries, &mut failed, error).await?;
                        continue;
                    }
                    (Err(error), None) => return Err(error),
                }
                let passes = self.idle.as_ref().is_some_and(|idle| idle.passed.is_some());
                let look = if passes {
                    self.look_every.min(MARK_LEFT_OUT_AFTER)
                } else {
                    self.look_every
                };
                commit_or(commit, look.max(LEAST_LOOK)).await;
            }
        })
    }

    /// `ahead`: a stream has taken what is up to this place of the cursor's generation.
    async fn look(&mut self, ahead: Option<(Place, i64)>) -> Result<Option<Batch<E>>> {
        self.prepare(self.start).await?;
        let place = ahead.as_ref().map(|(place, _)| place.clone());
        if let Some(idle) = self.idle.clone()
            && idle.ahead == place
            && self.present().await? == Some(idle.present)
        {
            if let Some((step, since)) = &idle.passed
                && since.elapsed() >= MARK_LEFT_OUT_AFTER
            {
                self.pass(step).await?;
            }
            return Ok(None);
        }
        let span = span::feed(self.engine.namespace(), E::TABLE.name, &self.name);
        let read = self.read(ahead).instrument(span.clone()).await;
        let (state, batch) = match read {
            Ok(read) => read,
            Err(error) => {
                span::set_error(&span, error.kind());
                return Err(error);
            }
        };
        span.record("anabranch.commit_seq", batch.step.to.seq);
        span.record("anabranch.rows", batch.events.len());
        if !batch.is_empty() || batch.ends_snapshot() {
            self.told.read(batch.len());
            self.idle = None;
            self.passing = None;
            return Ok(Some(batch));
        }
        let cursor = (state.place.seq, state.place.inside_text());
        self.idle = Some(Idle {
            present: (
                state.last,
                state.schema,
                true,
                state.generation,
                cursor.0,
                cursor.1,
            ),
            ahead: place,
            passed: None,
        });
        if batch.step.from != state.place || state.last == state.place.seq {
            return Ok(None);
        }
        let is_far = state.last - state.place.seq >= MARK_AFTER || state.place.inside.is_some();
        let since = *self.passing.get_or_insert_with(Instant::now);
        if is_far || (self.wanted.is_filtered && since.elapsed() >= MARK_LEFT_OUT_AFTER) {
            self.pass(&batch.step).await?;
        } else if let Some(idle) = &mut self.idle
            && self.wanted.is_filtered
        {
            idle.passed = Some((batch.step, since));
        }
        Ok(None)
    }

    /// Moves the place past what was found to have nothing for it. Nobody waits for that: where it cannot be written now, it is
    /// later.
    async fn pass(&mut self, step: &Step) -> Result<()> {
        self.idle = None;
        self.passing = None;
        match acknowledge(step, asked(&self.engine, self.at), Vec::new()).await {
            Err(error)
                if error.is_retryable()
                    || matches!(error.kind(), ErrorKind::CursorMoved | ErrorKind::Nested) =>
            {
                Ok(())
            }
            passed => passed,
        }
    }

    /// What is there to be told, and the state in which it was read; a batch without events has nothing.
    async fn read(&mut self, ahead: Option<(Place, i64)>) -> Result<(State, Batch<E>)> {
        let (engine, name) = (self.engine.clone(), Arc::clone(&self.name));
        let (mut snapshot, state, epoch) = find(engine, self.at, name, E::TABLE).await?;
        if self.schema != Some(state.schema) {
            check(&mut snapshot, E::TABLE).await?;
            self.schema = Some(state.schema);
        }
        let from = match ahead {
            Some((_, generation)) if generation != state.generation => {
                return Err(Error::new(
                    ErrorKind::CursorMoved,
                    format!(
                        "the cursor {} was rewound, or made anew: begin another stream",
                        self.name
                    ),
                ));
            }
            // Where nothing was left the cursor itself was moved on.
            Some((place, _)) if place.seq >= state.place.seq => place,
            _ => state.place.clone(),
        };
        let reading = Reading {
            wanted: self.wanted.clone(),
            snapshot,
            epoch,
        };
        let taken = reading.next(state.last, from.clone()).await?;
        let batch = Batch {
            events: taken.events,
            step: Step {
                name: Arc::clone(&self.name),
                epoch,
                generation: state.generation,
                from,
                to: taken.to,
            },
            engine: self.engine.clone(),
            at: self.at,
        };
        Ok((state, batch))
    }

    async fn prepare(&mut self, start: Start) -> Result<()> {
        if self.is_prepared {
            return Ok(());
        }
        self.prepare_anew(start).await
    }

    /// Also where it was found before: the cursor may have been removed.
    async fn prepare_anew(&mut self, start: Start) -> Result<()> {
        let (engine, name) = (self.engine.clone(), Arc::clone(&self.name));
        prepare(engine, self.at, name, E::TABLE, start).await?;
        self.told = FeedTold::of(self.engine.namespace(), &self.name);
        self.is_prepared = true;
        Ok(())
    }

    fn present(&self) -> BoxFuture<'_, Result<Option<Present>>> {
        let found = raw(
            "SELECT s.last, (SELECT schema_version FROM pragma_schema_version), c.epoch IS e.epoch,
                    c.generation, c.seq, c.inside
             FROM anabranch_sequence AS s, anabranch_epoch AS e, anabranch_cursors AS c
             WHERE c.name = {} LIMIT 1",
            (&*self.name,),
        );
        Box::pin(found.first(asked(&self.engine, self.at)))
    }
}
