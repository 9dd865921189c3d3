//! The connection of a session, while it has one. It is never given back with a transaction open.

use std::sync::Arc;

use crate::{
    engine::{
        block_on::block_on,
        connection::execute,
        core::Core,
        exchange::Holds,
        ffi::MixedConnection,
        pool::Lent,
        sessions::{Checked, Instruments, Place},
    },
    error::Error,
};

/// See the module's page.
#[derive(Debug)]
pub(super) struct LentSession {
    core: Arc<Core>,
    /// `None` once it is being given back.
    lent: Option<Lent<Place>>,
}

impl LentSession {
    pub(super) const fn new(core: Arc<Core>, lent: Lent<Place>) -> Self {
        Self {
            core,
            lent: Some(lent),
        }
    }

    /// What listens to the connection.
    pub(super) fn instruments(&mut self) -> Option<Arc<Instruments>> {
        let connection = self.lent.as_mut()?.connection()?;
        connection.instruments()
    }

    /// What is known of a text.
    pub(super) fn checked(&self, text: &str) -> Option<Checked> {
        self.lent.as_ref()?.checked(text)
    }

    /// Remembers what was found of a text.
    pub(super) fn remember(&mut self, checked: &Checked) {
        if let Some(lent) = &mut self.lent {
            lent.remember(checked);
        }
    }
}

impl Holds for LentSession {
    fn connection(&mut self) -> Option<&mut MixedConnection> {
        self.lent.as_mut()?.connection()?.mixed()
    }
}

impl Drop for LentSession {
    fn drop(&mut self) {
        let is_idle = self
            .connection()
            .is_some_and(|mixed| mixed.view().is_some());
        let Some(mut lent) = self.lent.take() else {
            return;
        };
        if is_idle && self.core.runs_inline() {
            undo(&mut lent);
            return;
        }
        // Its worker may run a statement, which is stopped and waited for. Without a thread to be had that is done right
        // here.
        let core = Arc::clone(&self.core);
        let undone = self.core.threads.run(move || {
            undo(&mut lent);
            drop(core);
        });
        if let Err(error) = undone {
            tracing::error!(error = %error.in_log(), "a dropped session was rolled back on the task that dropped it");
        }
    }
}

/// Rolls back what is open. A connection of which SQLite does not say that nothing is open is not used again.
fn undo(lent: &mut Lent<Place>) {
    let Some(connection) = lent.connection() else {
        return;
    };
    let (Some(instruments), Some(mixed)) = (connection.instruments(), connection.mixed()) else {
        return;
    };
    if let Err(error) = block_on(mixed.stop()) {
        tracing::error!(error = %Error::from(error).in_log(), "the connection of a dropped session is lost");
        return;
    }
    if let Some(view) = mixed.view()
        && !view.is_autocommit()
        && let Err(error) = instruments.authorizer.ours(|| execute(view, "ROLLBACK"))
    {
        tracing::error!(error = %error.in_log(), "a dropped session could not be rolled back");
    }
    drop(instruments.watch.take_rows());
    // `Place::clean` looks whether it is ended.
}
