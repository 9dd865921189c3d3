//! The two ways into a context from elsewhere: a transaction's own, and a query that tracks.

use crate::{
    context::Context, engine::Transaction, entity::Entity, error::Result, query::Query,
    tracker::Tracked,
};

impl Transaction {
    /// A unit of work whose reads and saves are part of this transaction.
    #[must_use]
    pub fn context(&mut self) -> Context<'_> {
        Context::in_transaction(self)
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
