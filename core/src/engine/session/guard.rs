//! A session that its holder ends.

use std::ops::{Deref, DerefMut};

use crate::{engine::session::Session, error::Result};

/// A session, rolled back when dropped. `&mut *s` is the [`Session`] itself.
#[derive(Debug)]
#[must_use = "a session that is dropped is rolled back"]
pub struct SessionGuard(Session);

impl SessionGuard {
    pub(crate) const fn new(session: Session) -> Self {
        Self(session)
    }

    /// Validates the session and keeps what it did; returns the commit number if a stamped table was touched.
    ///
    /// # Errors
    ///
    /// Kind `Conflict` when something that the session saw is not so any more, with the statement, and table and key
    /// where they are known: nothing was written; begin a new session and run the work again. Otherwise as
    /// [`TransactionGuard::commit`](crate::engine::TransactionGuard::commit).
    ///
    /// # Cancel safety
    ///
    /// Dropped while the session waits for its turn, nothing is written. Dropped later, it commits or it does not; the
    /// writer is fine either way.
    pub async fn commit(self) -> Result<Option<i64>> {
        self.0.commit().await
    }

    /// Ends the session; nothing of it was written.
    ///
    /// # Errors
    ///
    /// When the connection cannot be used any more.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it is undone as well.
    pub async fn rollback(self) -> Result<()> {
        self.0.rollback().await
    }
}

impl Deref for SessionGuard {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl DerefMut for SessionGuard {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0
    }
}
