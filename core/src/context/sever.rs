//! Taking a child from its parent.

use crate::{
    context::{Context, Refers, Tracked},
    entity::Entity,
    error::{Error, ErrorKind, Result},
    value::ValueRef,
};

impl Context<'_> {
    /// Takes an entity from the one that it refers to, by the column or the relation that is named: a reference that may be missing becomes `None`; an entity that
    /// cannot be without it is removed. Whether the handle was tracked. Of a reference of several columns one that may
    /// be `None` is enough.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// #[derive(Debug, Entity)]
    /// struct Crate {
    ///     #[entity(id)]
    ///     id: i64,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct Apple {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(references = Crate)]
    ///     crate_id: Option<i64>,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct Label {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(references = Crate)]
    ///     crate_id: i64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Crate, Apple, Label)>().await?;
    /// # let mut ctx = db.context();
    /// let of_apples = ctx.add(Crate { id: 0 });
    /// let apple = ctx.add(Apple { id: 0, crate_id: Some(ctx[of_apples].id) });
    /// let label = ctx.add(Label { id: 0, crate_id: ctx[of_apples].id });
    /// ctx.save_changes().await?;
    ///
    /// ctx.sever(apple, Apple::CRATE_ID)?;
    /// ctx.sever(label, Label::CRATE_ID)?;
    /// assert_eq!(ctx[apple].crate_id, None);
    /// assert_eq!(ctx.entry(label).state(), EntityState::Deleted);
    /// # ctx.save_changes().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind `Refused` if the column is no reference, or one that its optional embedded struct cannot be without.
    pub fn sever<E: Entity>(
        &mut self,
        child: Tracked<E>,
        reference: impl Refers<E>,
    ) -> Result<bool> {
        let position = reference.position()?;
        let column = &E::TABLE.columns[position];
        let refers =
            (E::TABLE.foreign_keys()).any(|foreign_key| foreign_key.columns.contains(&position));
        if !refers {
            return Err(
                Error::new(ErrorKind::Refused, "the column refers to no entity")
                    .with_table(E::TABLE.name)
                    .with_column(column.name),
            );
        }
        if !column.nullable {
            return Ok(self.remove(child));
        }
        let Some(entity) = self.get_mut(child) else {
            return Ok(false);
        };
        entity
            .assign(position, ValueRef::Null)
            .map_err(|_| {
                Error::new(
                    ErrorKind::Refused,
                    "the reference is part of an embedded struct that cannot be without it: set the struct to None, or \
                     remove the entity",
                )
                .with_table(E::TABLE.name)
                .with_column(column.name)
            })?;
        Ok(true)
    }
}
