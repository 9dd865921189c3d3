//! What a feed tells of.

use std::fmt;

use uuid::Uuid;

use crate::{
    entity::Entity,
    query::Cursor,
    value::{PrimaryKey as _, Value},
};

/// A change of one row.
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
/// let event = &batch.events()[0];
/// assert_eq!((event.seq, event.key()), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event<E: Entity> {
    /// The number of the commit that made it.
    pub seq: i64,
    /// What became of the row.
    pub change: Change<E>,
    pub(super) epoch: Uuid,
}

/// What became of a row.
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
/// use anabranch::feed::Change;
///
/// let batch = db.feed::<Order>("mailer").next_batch().await?;
/// for event in &batch {
///     match &event.change {
///         Change::Saved(order) => println!("{}", order.item),
///         Change::Deleted(id) => println!("{id} is gone"),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub enum Change<E: Entity> {
    /// It was inserted or updated, which of them is not told; this is what it was when the batch was read.
    Saved(E),
    /// It was deleted, or its key changed; the key that it had.
    Deleted(E::Key),
}

/// Names an event for ever, in one life of the file (a backup that is restored begins another): what a receiver outside of the database keeps to take nothing twice.
/// Its text form is one word.
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
/// let id = batch.events()[0].id();
/// assert!(id.to_string().contains("/1/saved/"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId {
    pub(super) epoch: Uuid,
    pub(super) seq: i64,
    pub(super) is_deleted: bool,
    /// As text.
    pub(super) key: String,
}

impl<E: Entity> Event<E> {
    /// The key of the row.
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
    pub fn key(&self) -> E::Key {
        match &self.change {
            Change::Saved(row) => row.key(),
            Change::Deleted(key) => key.clone(),
        }
    }

    /// The row, unless it was deleted.
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
    /// assert_eq!(batch.events()[0].row().unwrap().item, "tea");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn row(&self) -> Option<&E> {
        match &self.change {
            Change::Saved(row) => Some(row),
            Change::Deleted(_) => None,
        }
    }

    /// Whether the row was deleted.
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
    /// ctx.remove(tea);
    /// ctx.save_changes().await?;
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// assert!(batch.events()[0].is_deleted());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_deleted(&self) -> bool {
        matches!(self.change, Change::Deleted(_))
    }

    /// The name of the event: the same whenever it is told of again.
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
    /// use std::collections::HashSet;
    ///
    /// let mut taken = HashSet::new();
    /// for _ in 0..2 {
    ///     let batch = db.feed::<Order>("mailer").next_batch().await?;
    ///     taken.extend(batch.events().iter().map(|event| event.id()));
    /// }
    /// assert_eq!(taken.len(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId {
            epoch: self.epoch,
            seq: self.seq,
            is_deleted: self.is_deleted(),
            key: Cursor::of_key(self.key_values()).to_string(),
        }
    }

    /// The values of the key; it was read from the database, and can be stored there.
    pub(super) fn key_values(&self) -> Vec<Value> {
        self.key().to_values().unwrap_or_default()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_deleted { "deleted" } else { "saved" };
        write!(f, "{}/{}/{what}/{}", self.epoch, self.seq, self.key)
    }
}
