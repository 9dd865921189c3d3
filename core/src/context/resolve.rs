//! Conflicts resolved: each in one call that asks nobody, since the error carries the database's values.

use crate::{
    context::{Clash, Context, Winner},
    error::{Error, Result},
};

impl Context<'_> {
    /// Resolves a conflict in favour of the context: the next save writes all that differs from what the database
    /// has now, and expects the version it has now. Of rows that are gone, those to be updated are inserted again,
    /// and those to be deleted are detached.
    ///
    /// # Errors
    ///
    /// With nothing changed: `Refused` if the error is no conflict, if an entity of it is no longer tracked, or if
    /// a later save of it is not answered yet; `Decode` if a row does not fit its entity.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, #[entity(version)] version: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Item { id: 0, name: "tea".into(), version: 0 });
    /// # ctx.save_changes().await?;
    /// # let mut other = db.context();
    /// # let same = other.find::<Item>(ctx[tea].id).await?.unwrap();
    /// # other[same].name = "coffee".into();
    /// # other.save_changes().await?;
    /// ctx[tea].name = "green tea".into();
    /// let error = ctx.save_changes().await.unwrap_err(); // somebody else made it coffee
    /// ctx.client_wins(&error)?;
    /// ctx.save_changes().await?;
    /// # assert_eq!(ctx.database_values(tea).await?.unwrap().name, "green tea");
    /// # Ok(()) }
    /// ```
    pub fn client_wins(&mut self, error: &Error) -> Result<()> {
        self.settle_if_answered();
        self.tracker.client_wins(error)
    }

    /// Resolves a conflict in favour of the database: its entities become what the database has now, `Unchanged`,
    /// also those that were removed; those whose rows are gone are detached.
    ///
    /// # Errors
    ///
    /// As [`client_wins`](Self::client_wins); also `AlreadyTracked` if a removed entity would come back, and another
    /// one was added with its key.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, #[entity(version)] version: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Item { id: 0, name: "tea".into(), version: 0 });
    /// # ctx.save_changes().await?;
    /// # let mut other = db.context();
    /// # let same = other.find::<Item>(ctx[tea].id).await?.unwrap();
    /// # other[same].name = "coffee".into();
    /// # other.save_changes().await?;
    /// ctx[tea].name = "green tea".into();
    /// let error = ctx.save_changes().await.unwrap_err(); // somebody else made it coffee
    /// ctx.store_wins(&error)?;
    /// assert_eq!(ctx[tea].name, "coffee");
    /// assert!(!ctx.has_changes());
    /// # Ok(()) }
    /// ```
    pub fn store_wins(&mut self, error: &Error) -> Result<()> {
        self.settle_if_answered();
        self.tracker.store_wins(error)
    }

    /// Resolves a conflict column by column: what was changed only here stays, what was changed only there is taken.
    ///
    /// # Errors
    ///
    /// With nothing changed: `Conflict` if a column was changed on both sides to different values, or a row was
    /// changed on one side and deleted on the other; it names those columns (`Conflict::clashing`), and can be
    /// given to the other methods here. Else as [`client_wins`](Self::client_wins).
    ///
    /// # Examples
    ///
    /// See [`merge_with`](Self::merge_with).
    pub fn merge(&mut self, error: &Error) -> Result<()> {
        self.settle_if_answered();
        self.tracker.merge(error)
    }

    /// The same, and asks `decide` about what clashes.
    ///
    /// # Errors
    ///
    /// As [`client_wins`](Self::client_wins).
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::context::Winner;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64, #[entity(version)] version: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Item { id: 0, name: "tea".into(), price: 3, version: 0 });
    /// # ctx.save_changes().await?;
    /// # let mut other = db.context();
    /// # let same = other.find::<Item>(ctx[tea].id).await?.unwrap();
    /// # (other[same].name, other[same].price) = ("coffee".into(), 5);
    /// # other.save_changes().await?;
    /// (ctx[tea].name, ctx[tea].price) = ("green tea".into(), 4);
    /// let error = ctx.save_changes().await.unwrap_err(); // somebody else changed both
    /// let clashing = ctx.merge(&error).unwrap_err();
    /// assert_eq!(clashing.conflicts()[0].clashing, ["name", "price"]);
    ///
    /// ctx.merge_with(&error, |clash| {
    ///     if clash.is(Item::PRICE) { Winner::Store } else { Winner::Client }
    /// })?;
    /// ctx.save_changes().await?;
    /// assert_eq!((ctx[tea].name.as_str(), ctx[tea].price), ("green tea", 5));
    /// # Ok(()) }
    /// ```
    pub fn merge_with(
        &mut self,
        error: &Error,
        decide: impl FnMut(&Clash<'_>) -> Winner,
    ) -> Result<()> {
        self.settle_if_answered();
        self.tracker.merge_with(error, decide)
    }
}
