//! Where a consumer stands, and what it has put aside.

use std::{future::Future, sync::Arc};

use futures_util::TryFutureExt as _;

use crate::{
    entity::{CommitSeq, Entity, tombstones_of},
    error::Result,
    feed::{
        Feed, Parked, Start,
        cursor::{accept_epoch, asked, find, rewind},
        list::{Lag, after},
        parked,
        position::Inside,
        reading::number,
    },
    schema::TOMBSTONE_SEQ,
    sql::WriteExecutor,
};

/// # Its place
impl<E: Entity> Feed<E> {
    /// Puts the consumer elsewhere; a batch that it has taken cannot be acknowledged any more. This is also how to go on after
    /// [`CursorExpired`](crate::error::ErrorKind::CursorExpired), or where the cursor was removed: it is made anew.
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
    /// let mut feed = db.feed::<Order>("mailer");
    /// feed.next_batch().await?.ack().await?;
    /// feed.rewind(Start::Beginning).await?;
    /// assert!(feed.try_next_batch().await?.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind [`Refused`](crate::error::ErrorKind::Refused) for the number of a commit that is not in the file,
    /// [`EpochChanged`](crate::error::ErrorKind::EpochChanged) for a position that is not; what a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it is moved or not.
    pub async fn rewind(&mut self, start: Start) -> Result<()> {
        self.prepare_anew(start).await?;
        self.idle = None;
        rewind(asked(&self.engine, self.at), &self.name, E::TABLE, start).await
    }

    /// Goes on where the consumer is, after [`EpochChanged`](crate::error::ErrorKind::EpochChanged). That is right
    /// for one whose effects are in the same file, by [`ack_in`](crate::feed::Batch::ack_in): they were put back with it. One with
    /// effects elsewhere was told of commits after the backup that never were, by this file. A batch that was taken before
    /// cannot be acknowledged. If the epoch is the same, nothing changes.
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
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("restored.db");
    /// # db.feed::<Order>("turnover").try_next_batch().await?;
    /// # db.backup_to(&path).await?;
    /// # let db = Database::open(&path).await?;
    /// let mut feed = db.feed::<Order>("turnover");
    /// let batch = match feed.next_batch().await {
    ///     Err(error) if error.kind() == ErrorKind::EpochChanged => {
    ///         feed.accept_epoch().await?;
    ///         feed.next_batch().await?
    ///     }
    ///     other => other?,
    /// };
    /// # assert_eq!(batch.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind [`Refused`](crate::error::ErrorKind::Refused) if it stands after the last commit of the file; what a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it can go on or not.
    pub async fn accept_epoch(&mut self) -> Result<()> {
        self.prepare(self.start).await?;
        accept_epoch(asked(&self.engine, self.at), &self.name, E::TABLE).await?;
        Ok(())
    }

    /// How far behind it is, with the filter of this feed: who asks elsewhere says the same one.
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
    /// let lag = feed.lag().await?;
    /// assert_eq!((lag.commits, lag.rows), (1, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`next_batch`](Self::next_batch).
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn lag(&mut self) -> Result<Lag> {
        self.prepare(self.start).await?;
        let (engine, name) = (self.engine.clone(), Arc::clone(&self.name));
        let (mut snapshot, state, _) = find(engine, self.at, name, E::TABLE).await?;
        let query = self.wanted.query.clone();
        let query = match state.place.inside {
            Some(Inside::Scan(_)) => query,
            _ => query.filter(number::<E>().gt(CommitSeq(state.place.seq))),
        };
        let rows = query.count(&mut snapshot).await?;
        let deletions = if E::TABLE.tombstones {
            let table = tombstones_of(E::TABLE.name);
            after(&mut snapshot, &table, TOMBSTONE_SEQ, state.place.seq).await?
        } else {
            0
        };
        // Within the snapshot there may be rows of any commit left.
        let done = if state.place.is_in_snapshot() {
            0
        } else {
            state.place.seq
        };
        Ok(Lag {
            commits: state.last.abs_diff(done),
            rows,
            deletions,
        })
    }

    /// Events that were put aside, the oldest first; at most so many.
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
    /// let parked = feed.parked(10).await?;
    /// assert_eq!((parked[0].key, &*parked[0].reason), (1, "no such address"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What reads can meet.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn parked(&self, most: u64) -> Result<Vec<Parked<E>>> {
        self.parked_after(0, most).await
    }

    /// The same after the one with this number: the next page, or the one after the number before its own.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Order { id: 0, seq: CommitSeq(0) });
    /// # ctx.add(Order { id: 0, seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// # let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// # for event in &batch {
    /// #     batch.park(event, "no such address", &db).await?;
    /// # }
    /// let feed = db.feed::<Order>("mailer");
    /// let first = feed.parked(1).await?;
    /// let second = feed.parked_after(first[0].id, 1).await?;
    /// assert_eq!(second[0].key, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What reads can meet.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn parked_after(&self, id: i64, most: u64) -> Result<Vec<Parked<E>>> {
        parked::parked(&self.engine, self.at, &self.name, id, most).await
    }

    /// Forgets an event that was put aside, in the transaction in which it is dealt with after all; whether it was there.
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
    /// for parked in feed.parked(10).await? {
    ///     feed.forget(parked.id, &db).await?;
    /// }
    /// assert!(feed.parked(10).await?.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What a write can meet.
    ///
    /// # Cancel safety
    ///
    /// That of a write in the transaction.
    pub fn forget<'c>(
        &self,
        id: i64,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<bool>> + Send {
        let forgotten = parked::written(parked::forget(&self.name, id), executor);
        forgotten.map_ok(|written| written.changed() > 0)
    }
}
