//! Some commits, and their acknowledgement.

use std::{future::Future, panic::Location, sync::Arc};

use futures_util::FutureExt as _;
use uuid::Uuid;

use crate::{
    engine::Engine,
    entity::Entity,
    error::Result,
    feed::{
        cursor::{acknowledge, asked, moved},
        event::Event,
        parked,
        position::{Place, Position},
    },
    sql::WriteExecutor,
};

/// The changes of some commits, in their order, until they are acknowledged: see [`Feed::next_batch`](crate::feed::Feed::next_batch).
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
/// let batch = db.feed::<Order>("mailer").next_batch().await?;
/// for event in &batch {
///     println!("{}: {:?}", event.seq, event.row());
/// }
/// batch.ack().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a batch that is not acknowledged is told of again"]
pub struct Batch<E: Entity> {
    pub(super) events: Vec<Event<E>>,
    pub(super) step: Step,
    pub(super) engine: Engine,
    pub(super) at: &'static Location<'static>,
}

/// From where to where a cursor goes with a batch.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) name: Arc<str>,
    pub(super) epoch: Uuid,
    pub(super) generation: i64,
    pub(super) from: Place,
    pub(super) to: Place,
}

impl<E: Entity> Batch<E> {
    /// The changes: commit by commit, in each of them the deletions before the rows, and these by their keys.
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
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// assert_eq!(batch.events()[0].key(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn events(&self) -> &[Event<E>] {
        &self.events
    }

    /// The changes of each commit, with its number: for who hands on whole commits. Of
    /// [rows at the start](Self::is_snapshot), which are in the order of their keys, neighbours with the same number.
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
    /// # for items in [&["tea", "jam"][..], &["cake"]] {
    /// #     for item in items {
    /// #         ctx.add(Order { id: 0, item: (*item).into(), seq: CommitSeq(0) });
    /// #     }
    /// #     ctx.save_changes().await?;
    /// # }
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// let sizes: Vec<_> = batch.commits().map(|(seq, events)| (seq, events.len())).collect();
    /// assert_eq!(sizes, [(1, 2), (2, 1)]);
    /// # Ok(()) }
    /// ```
    pub fn commits(&self) -> impl Iterator<Item = (i64, &[Event<E>])> {
        let commits = self.events.chunk_by(|one, next| one.seq == next.seq);
        commits.map(|events| (events[0].seq, events))
    }

    /// The changes themselves; what is to be acknowledged later needs the batch.
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
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// batch.ack().await?;
    /// let events = batch.into_events();
    /// assert_eq!(events.len(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn into_events(self) -> Vec<Event<E>> {
        self.events
    }

    /// How many changes there are; none only where [it ends the snapshot](Self::ends_snapshot) and no row was left.
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
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no changes, as at the end of a snapshot of a table without rows.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// use anabranch::feed::Start;
    ///
    /// let mut feed = db.feed::<Order>("copy").start(Start::Snapshot);
    /// let batch = feed.next_batch().await?;
    /// assert!(batch.is_empty() && batch.ends_snapshot());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Where a consumer stands that has taken the batch, in whole commits: where [it is split](Self::is_split) before the commit
    /// that goes on, and before the first one as long as not all rows are read at the start.
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
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// let position = batch.position();
    /// assert_eq!(position.seq, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn position(&self) -> Position {
        let seq = if self.step.to.is_in_snapshot() {
            0
        } else {
            self.step.to.seq
        };
        Position {
            epoch: self.step.epoch,
            seq,
        }
    }

    /// Whether the last commit goes on in the next batch: with [`split_commits`](crate::feed::Feed::split_commits) only, and while
    /// all rows are read at the start.
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
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// assert!(!batch.is_split());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_split(&self) -> bool {
        self.step.to.inside.is_some()
    }

    /// Whether these are rows that were there at the start, told of by their keys, not by their commits:
    /// [`Start::Snapshot`](crate::feed::Start::Snapshot).
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
    /// let mut feed = db.feed::<Order>("copy").start(Start::Snapshot);
    /// assert!(feed.next_batch().await?.is_snapshot());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_snapshot(&self) -> bool {
        self.step.from.is_in_snapshot()
    }

    /// Whether all rows that were there at the start have come, with this batch: a copy is complete, and what it has beside them
    /// is not in the table. Each snapshot ends with such a batch, which is empty if no row was left for it.
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
    /// let mut feed = db.feed::<Order>("copy").start(Start::Snapshot);
    /// loop {
    ///     let batch = feed.next_batch().await?;
    ///     // Take its rows over.
    ///     batch.ack().await?;
    ///     if batch.ends_snapshot() {
    ///         break;
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn ends_snapshot(&self) -> bool {
        self.is_snapshot() && !self.is_split()
    }

    /// Acknowledges the batch: its cursor has passed it, once this returns.
    ///
    /// What was done with the changes before and is not acknowledged, since the process ended between the two, is done again. To
    /// write into the same database exactly once, see [`ack_in`](Self::ack_in).
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
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// batch.ack().await?;
    /// assert!(batch.ack().await.is_err(), "once");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind [`CursorMoved`](crate::error::ErrorKind::CursorMoved) if another consumer of the cursor was faster; what a write can
    /// meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it is queued, nothing is acknowledged; dropped while it runs, it is or it is not.
    pub fn ack(&self) -> impl Future<Output = Result<()>> + Send {
        self.ack_in(asked(&self.engine, self.at))
    }

    /// Acknowledges the batch in a transaction, or a session: with all else that is written there, or not at all. So what a
    /// consumer writes takes place exactly once.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Sale { #[entity(id)] id: i64, total: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[derive(Debug, Entity)]
    /// # struct Turnover { #[entity(id)] id: i64, total: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Sale, Turnover)>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Turnover { id: 1, total: 0 });
    /// # ctx.add(Sale { id: 0, total: 7, seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// // Sales are only ever inserted: one that was changed would be told of again.
    /// let mut feed = db.feed::<Sale>("turnover");
    /// let batch = feed.next_batch().await?;
    /// let sum: i64 = batch.events().iter().filter_map(|event| event.row()).map(|sale| sale.total).sum();
    /// db.write(async |tx| {
    ///     Turnover::query().update().set(Turnover::TOTAL, Turnover::TOTAL + sum).execute(&mut *tx).await?;
    ///     batch.ack_in(&mut *tx).await
    /// })
    /// .await?;
    /// # assert_eq!(Turnover::find(&db, 1).await?.unwrap().total, 7);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind [`CursorMoved`](crate::error::ErrorKind::CursorMoved) if another consumer of the cursor was faster: return it, so that
    /// the transaction is rolled back; what a write can meet.
    ///
    /// # Cancel safety
    ///
    /// That of a write in the transaction.
    pub fn ack_in<'c>(
        &self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<()>> + Send {
        acknowledge(&self.step, executor, Vec::new())
    }

    /// Puts an event of the batch aside, with a reason, before the batch is acknowledged, as if it was dealt with:
    /// [`Feed::parked`](crate::feed::Feed::parked) has it until it is forgotten. Once, however often it is put aside.
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
    /// batch.park(&batch.events()[0], "no such address", &db).await?;
    /// batch.ack().await?;
    /// assert_eq!(feed.parked(10).await?.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind [`CursorMoved`](crate::error::ErrorKind::CursorMoved) if the cursor does not stand where the batch begins: it was
    /// acknowledged, another consumer was faster, or the batch before it of a stream is not acknowledged yet; what a write can meet.
    ///
    /// # Cancel safety
    ///
    /// That of a write in the transaction.
    pub fn park<'c>(
        &self,
        event: &Event<E>,
        reason: &str,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<()>> + Send {
        let parked = parked::park(&self.step, event, reason);
        let name = Arc::clone(&self.step.name);
        parked::written(parked, executor).map(move |written| match written?.changed() {
            0 => Err(moved(&name)),
            _ => Ok(()),
        })
    }
}

impl<E: Entity> Batch<E> {
    /// Whether the event is the first one of a commit, and not of the batch.
    pub(super) fn begins_commit(&self, at: usize) -> bool {
        at > 0 && self.events[at - 1].seq < self.events[at].seq && !self.is_snapshot()
    }

    /// Over all commits before that of the event; nothing if there are none in the batch, or the cursor is there.
    pub(super) fn step_before(&self, at: usize) -> Option<Step> {
        let first = (1..=at).rev().find(|at| self.begins_commit(*at))?;
        let to = Place::after(self.events[first - 1].seq);
        (to != self.step.from).then(|| Step {
            to,
            ..self.step.clone()
        })
    }
}

impl<'a, E: Entity> IntoIterator for &'a Batch<E> {
    type Item = &'a Event<E>;
    type IntoIter = std::slice::Iter<'a, Event<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.events.iter()
    }
}
