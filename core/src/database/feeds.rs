//! What was committed, told to consumers.

use std::{future::Future, panic::Location};

use crate::{
    database::Database,
    entity::Entity,
    error::Result,
    feed::{self, CursorState, Feed, Position, Retention},
};

/// # Feeds
impl Database {
    /// What was committed to a table, in the order of the commits, to the consumer of this name: see [the module](crate::feed).
    /// Nothing is read or written before a batch is asked for.
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
    /// assert_eq!(batch.events()[0].row().unwrap().item, "tea");
    /// batch.ack().await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn feed<E: Entity>(&self, name: impl Into<String>) -> Feed<E> {
        Feed::new(self.engine.clone(), name.into(), Location::caller())
    }

    /// The places of all consumers, by their names: which are behind, and which nobody uses any more.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// let mut feed = db.feed::<Order>("mailer");
    /// assert!(feed.try_next_batch().await?.is_none());
    /// let cursors = db.cursors().await?;
    /// assert_eq!((&*cursors[0].name, cursors[0].waiting), ("mailer", 0));
    /// assert!(db.remove_cursor("mailer").await?);
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
    #[track_caller]
    pub fn cursors(&self) -> impl Future<Output = Result<Vec<CursorState>>> + Send {
        feed::cursors(&self.engine, Location::caller())
    }

    /// The number of the last commit, with the epoch of the file; nothing if no table in it has a `commit_seq`.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// assert!(db.last_commit().await?.is_none());
    /// db.create_tables::<Order>().await?;
    /// let mut ctx = db.context();
    /// ctx.add(Order { id: 0, seq: CommitSeq(0) });
    /// ctx.save_changes().await?;
    /// assert_eq!(db.last_commit().await?.unwrap().seq, 1);
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
    #[track_caller]
    pub fn last_commit(&self) -> impl Future<Output = Result<Option<Position>>> + Send {
        feed::last_commit(&self.engine, Location::caller())
    }

    /// Gives the file a new epoch. Call it once after restoring a copy that [`backup_to`](Self::backup_to) did not make: such copies keep
    /// the epoch of the original. The next batch of every consumer fails with [`EpochChanged`](crate::error::ErrorKind::EpochChanged)
    /// then. False, and nothing is done, if no table of the file has a `commit_seq`.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// let mut feed = db.feed::<Order>("mailer");
    /// feed.try_next_batch().await?;
    /// assert!(db.renew_epoch().await?);
    /// let error = feed.try_next_batch().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::EpochChanged);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it has another one or not.
    #[track_caller]
    pub fn renew_epoch(&self) -> impl Future<Output = Result<bool>> + Send {
        feed::renew_epoch(&self.engine, Location::caller())
    }

    /// Removes the place of a consumer, and what it had put aside; whether it was there.
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
    /// db.feed::<Order>("mailer").try_next_batch().await?;
    /// assert!(db.remove_cursor("mailer").await?);
    /// assert!(!db.remove_cursor("mailer").await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it is removed or not.
    #[track_caller]
    pub fn remove_cursor(&self, name: &str) -> impl Future<Output = Result<bool>> + Send {
        feed::remove(&self.engine, Location::caller(), name)
    }

    /// Forgets old deletions of an entity with `tombstones`; how many. Call it now and then.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(tombstones)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// use anabranch::feed::Retention;
    /// use std::time::Duration;
    ///
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// let forgotten = db.prune_tombstones::<Order>(Retention::new(day).at_most(30 * day)).await?;
    /// assert_eq!(forgotten, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind `Model` if the entity keeps none; what a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, all are forgotten or none.
    #[track_caller]
    pub fn prune_tombstones<E: Entity>(
        &self,
        retention: Retention,
    ) -> impl Future<Output = Result<u64>> + Send {
        feed::prune::<E>(&self.engine, Location::caller(), retention)
    }
}
