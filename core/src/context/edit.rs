//! Changes as a whole: entities that come from elsewhere, values from a form, and back again.

use serde::Serialize;

use crate::{
    context::{Context, Tracked},
    entity::{Column, Entity},
    error::{Error, ErrorKind, Result},
    value,
    value::ColumnType,
};

impl Context<'_> {
    /// Tracks an entity that is a row already and was changed elsewhere: the next save writes every column of it but
    /// the key, what the library keeps, and deferred columns that are not loaded, and checks that the row still has the
    /// entity's version. An entity whose key is unset is added instead.
    ///
    /// # Errors
    ///
    /// Kind `AlreadyTracked` if an entity with this key is tracked, or was removed and not yet saved: then
    /// [`set_values`](Self::set_values) is what you want. Kind `Value` if the key or a reference is a temporary key.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Clone, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, #[entity(version)] version: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// let mut ctx = db.context();
    /// let tea = ctx.add(Item { id: 0, name: "tea".into(), version: 0 });
    /// ctx.save_changes().await?;
    /// let mut sent = ctx[tea].clone(); // to a browser, say, which sends it back
    /// sent.name = "green tea".into();
    ///
    /// let mut ctx = db.context();
    /// let tea = ctx.update(sent)?;
    /// ctx.save_changes().await?;
    /// assert_eq!(ctx[tea].version, 2);
    /// # Ok(()) }
    /// ```
    pub fn update<E: Entity>(&mut self, entity: E) -> Result<Tracked<E>> {
        self.settle_if_answered();
        let handle = self.tracker.update(entity)?;
        self.tell_tracked(handle);
        Ok(handle)
    }

    /// Sets fields of an entity from any struct that serde can write, or from a JSON object: each member sets the
    /// field of that name, or else the column of that name; what is not mentioned stays. All are set, or none. A field
    /// has its name in Rust: serde's renames are not known.
    ///
    /// Numbers, strings and `null` are read as the field has them. Dates are text, as stored or as in RFC 3339; a
    /// UUID is text; bytes are an array of numbers; a struct that is embedded is an object,
    /// which makes it if it was `None`. A deferred column stays as it is for `null`, as serde writes one that is not loaded.
    ///
    /// * A key that is mentioned must be the entity's.
    /// * A version that is mentioned is the one that the next save checks against: so a form that was filled in
    ///   while somebody else saved meets a conflict. If no value differs nothing is written, and an old version is no
    ///   conflict.
    /// * A commit number is passed over.
    ///
    /// # Errors
    ///
    /// * `Value`, naming table and column: no such field or column, a value that does not fit or cannot be stored;
    ///   also if `values` is no object.
    /// * `Refused`: another key; an entity that is not tracked or is to be deleted; a version, while a save of it is not
    ///   answered yet.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64, #[entity(version)] version: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # let tea = ctx.add(Item { id: 0, name: "tea".into(), price: 3, version: 0 });
    /// # ctx.save_changes().await?;
    /// #[derive(serde::Serialize)]
    /// struct Form {
    ///     name: &'static str,
    ///     version: i64, // as it was when the form was shown
    /// }
    ///
    /// ctx.set_values(tea, &Form { name: "green tea", version: 1 })?;
    /// assert_eq!((ctx[tea].name.as_str(), ctx[tea].price), ("green tea", 3));
    /// ctx.set_values(tea, &serde_json::json!({ "price": 4 }))?;
    /// ctx.save_changes().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// To replace an entity by one of its own type, write `ctx[tea] = item`: the save then refuses another key or
    /// version than the tracked one has, and an added entity keeps the key that it was given if the new one has none.
    pub fn set_values<E: Entity>(
        &mut self,
        handle: Tracked<E>,
        values: &(impl Serialize + ?Sized),
    ) -> Result<()> {
        self.settle_if_answered();
        let values = value::to_json(values).map_err(|error| {
            Error::new(ErrorKind::Value, error.to_string()).with_table(E::TABLE.name)
        })?;
        self.tracker.set_values(handle, &values)
    }

    /// Undoes all changes since the entity was read or last saved: it is `Unchanged`, also if it was removed.
    ///
    /// False, with nothing changed, if there is nothing to go back to: the entity is added or not tracked, was
    /// removed and another one was added with its key, or was removed while a save that was dropped is not yet
    /// answered. Columns that were never read, of an entity given to [`update`](Self::update), stay as they are, and
    /// are no longer written.
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
    /// let mut ctx = db.context();
    /// let tea = ctx.attach(Item { id: 7, name: "tea".into() })?;
    /// ctx[tea].name = "coffee".into();
    /// ctx.remove(tea);
    /// assert!(ctx.reset(tea));
    /// assert_eq!(ctx[tea].name, "tea");
    /// assert_eq!(ctx.entry(tea).state(), EntityState::Unchanged);
    /// # Ok(()) }
    /// ```
    pub fn reset<E: Entity>(&mut self, handle: Tracked<E>) -> bool {
        self.settle_if_answered();
        self.tracker.reset(handle)
    }

    /// Undoes the changes of one column. False if the entity is added, removed or not tracked.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// let mut ctx = db.context();
    /// let tea = ctx.attach(Item { id: 7, name: "tea".into(), price: 3 })?;
    /// (ctx[tea].name, ctx[tea].price) = ("coffee".into(), 4);
    /// ctx.reset_column(tea, Item::NAME);
    /// assert_eq!((ctx[tea].name.as_str(), ctx[tea].price), ("tea", 4));
    /// # Ok(()) }
    /// ```
    pub fn reset_column<E: Entity, T: ColumnType>(
        &mut self,
        handle: Tracked<E>,
        column: Column<E, T>,
    ) -> bool {
        self.settle_if_answered();
        self.tracker.reset_column(handle, column.index())
    }

    /// Has the next save write a column even if its value is as it was read. False if it will not: the entity is
    /// added (all of it is written), removed or not tracked; the column is the key, kept by the library, or deferred and
    /// not loaded.
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
    /// assert!(ctx.mark_modified(tea, Item::NAME));
    /// assert_eq!(ctx.entry(tea).modified_columns(), ["name"]);
    /// assert_eq!(ctx.save_changes().await?.updated, 1);
    /// # Ok(()) }
    /// ```
    pub fn mark_modified<E: Entity, T: ColumnType>(
        &mut self,
        handle: Tracked<E>,
        column: Column<E, T>,
    ) -> bool {
        self.settle_if_answered();
        self.tracker.mark_modified(handle, column.index())
    }
}
