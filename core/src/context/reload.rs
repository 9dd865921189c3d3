//! What the database has of an entity by now.

use crate::{
    context::{Context, Tracked},
    entity::Entity,
    error::Result,
    query::{self, Included},
};

impl Context<'_> {
    /// Reads the row of an entity again and takes its values: local changes are dropped, also a removal, and the
    /// state is `Unchanged`. An added entity becomes the row that has its key, if there is one. Deferred columns are read if
    /// they are loaded.
    ///
    /// False if there is no such row: an entity that was stored is detached then, an added one stays added. False,
    /// too, of a handle that is not tracked.
    ///
    /// # Errors
    ///
    /// Those of reading; kind `AlreadyTracked` if the entity was removed or added, and another one that is tracked
    /// has its key; `Refused` while a save of the entity is in a transaction that is still open (see
    /// [`save_changes_in`](Self::save_changes_in)). On any error nothing is changed.
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
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Item { id: 0, name: "tea".into() });
    /// # ctx.save_changes().await?;
    /// ctx[tea].name = "coffee".into();
    /// assert!(ctx.reload(tea).await?);
    /// assert_eq!(ctx[tea].name, "tea");
    /// # Ok(()) }
    /// ```
    pub async fn reload<E: Entity>(&mut self, handle: Tracked<E>) -> Result<bool> {
        let row = self.database_values(handle).await?;
        let found = row.is_some();
        match row {
            Some(entity) => self.tracker.refresh(handle, entity)?,
            None => self.tracker.vanish(handle)?,
        }
        Ok(found)
    }

    /// The entity as the database has it now; nothing in the context changes. `None` if there is no row with its
    /// key, or the handle is not tracked.
    ///
    /// # Errors
    ///
    /// Those of reading.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Item { id: 0, name: "tea".into() });
    /// # ctx.save_changes().await?;
    /// ctx[tea].name = "coffee".into();
    /// let stored = ctx.database_values(tea).await?.expect("nobody deleted it");
    /// assert_eq!((stored.name.as_str(), ctx[tea].name.as_str()), ("tea", "coffee"));
    /// # Ok(()) }
    /// ```
    pub async fn database_values<E: Entity>(&mut self, handle: Tracked<E>) -> Result<Option<E>> {
        self.settle_abandoned().await?;
        let Some(key) = self.tracker.row_key(handle) else {
            return Ok(None);
        };
        let included = (self.tracker.get(handle)).map_or(Included::NONE, Included::of);
        Ok(self
            .read(query::by_key(&key, included)?)
            .await?
            .into_iter()
            .next())
    }
}
