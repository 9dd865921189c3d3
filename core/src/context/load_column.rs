//! A deferred column of an entity that was read without it.

use crate::{
    context::{Context, EntityState, Tracked},
    entity::{Column, Entity},
    error::Result,
    query::{self, Included},
    value::Value,
};

impl Context<'_> {
    /// Reads a [`Deferred`](crate::value::Deferred) column of an entity that was read without it. Whether the entity has
    /// its value then: false if its row is gone, if it was added or removed here and the value is not set, and of a handle
    /// that is not tracked.
    ///
    /// A value that is loaded or was set stays as it is, and nothing is read. Local changes of other fields stay too.
    ///
    /// # Errors
    ///
    /// Kind `Conflict` if the row was changed since the entity was read, for it would be a mixture of both: resolve it with
    /// [`store_wins`](Self::store_wins) or [`merge`](Self::merge), or [`reload`](Self::reload) the entity; `Refused` while a
    /// save of the entity is in a transaction that is still open; those of reading. On any error nothing is changed.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Document { #[entity(id)] id: i64, title: String, body: Deferred<String> }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Document>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Document { id: 0, title: "tea".into(), body: "how to".to_owned().into() });
    /// # ctx.save_changes().await?;
    /// # ctx.clear();
    /// let tea = Document::query().filter(Document::TITLE.eq("tea")).load_one(&mut ctx).await?;
    /// if !ctx[tea].body.is_loaded() {
    ///     ctx.load_column(tea, Document::BODY).await?;
    /// }
    /// assert_eq!(ctx[tea].body.get().map(String::as_str), Some("how to"));
    /// # Ok(()) }
    /// ```
    pub async fn load_column<E: Entity, T>(
        &mut self,
        handle: Tracked<E>,
        column: Column<E, T>,
    ) -> Result<bool> {
        self.settle_abandoned().await?;
        let Some(record) = self.tracker.record(handle) else {
            return Ok(false);
        };
        if record.entity.encode(column.index()) != Ok(Value::Unread) {
            return Ok(true);
        }
        if matches!(record.state(), EntityState::Added | EntityState::Deleted) {
            return Ok(false);
        }
        record.check_answered()?;
        // With all that is loaded: whoever merges a conflict needs both sides.
        let included = Included::of(&record.entity).and(E::TABLE, column.index());
        let read = query::by_key(&record.key, included)?;
        match self.read(read).await?.pop() {
            Some(row) => self.tracker.load_from(handle, &row),
            None => Ok(false),
        }
    }
}
