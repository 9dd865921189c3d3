//! The two ways into a context from elsewhere: a transaction's own, and a query that tracks.

use crate::{
    context::Context,
    engine::{Session, Transaction},
    entity::Entity,
    error::{Error, ErrorKind, Result},
    query::Query,
    sql::NewKey,
    tracker::Tracked,
    value::PrimaryKey,
};

impl Transaction {
    /// A unit of work whose reads and saves are part of this transaction.
    #[must_use]
    pub fn context(&mut self) -> Context<'_> {
        Context::in_transaction(self)
    }
}

impl Session {
    /// A unit of work whose reads and saves are part of this session.
    #[must_use]
    pub fn context(&mut self) -> Context<'_> {
        Context::in_session(self)
    }

    /// A key for a new row that no other session, and no save of this process, is given: for raw SQL, and for entities
    /// that are to be referred to before they are saved. In SQL the function `next_id('table')` does the same.
    ///
    /// A key that is not used leaves a gap.
    ///
    /// # Errors
    ///
    /// Kind `Model` if keys of this entity are not integers that the writer gives; `Full` after the largest key there is.
    ///
    /// # Cancel safety
    ///
    /// Dropped, a key may be lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// db.concurrent(async |s| {
    ///     let id = s.next_id::<Note>().await?;
    ///     sqlx::query("INSERT INTO note (id, text) VALUES (?, 'tea')").bind(id).execute(&mut *s).await?;
    ///     Ok(())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub async fn next_id<E: Entity>(&mut self) -> Result<E::Key> {
        let refused = || {
            Error::new(
                ErrorKind::Model,
                "keys of this entity are not integers that the writer gives",
            )
            .with_table(E::TABLE.name)
        };
        let column = E::TABLE.writer_key().ok_or_else(refused)?;
        let key = NewKey {
            table: E::TABLE.name,
            column: E::TABLE.columns[column].name,
            above: 0,
        };
        let key = self.next_key(key).await?;
        E::Key::from_integer(key).ok_or_else(refused)
    }
}

impl<E: Entity> Query<E> {
    /// Runs the query and tracks its entities in `ctx`. One that is tracked already stays as it is there, with its
    /// local changes; one that was removed there is left out.
    ///
    /// # Errors
    ///
    /// Those of reading; kind `Value` for an operand that cannot be stored.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it tracks nothing.
    pub async fn load(self, ctx: &mut Context<'_>) -> Result<Vec<Tracked<E>>> {
        ctx.load_read(self.into_read()?).await
    }
}
