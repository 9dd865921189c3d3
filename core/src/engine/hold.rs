//! What holds a state of the database for longer than a moment, and how the monitor ends that.
//!
//! A snapshot lies idle while its user awaits something else, and a stream while nobody takes its rows: no statement
//! runs that could be stopped, and the log stays pinned. So an idle connection lies here, where whoever ends the hold
//! can take it away; a statement takes it out while it runs, and is stopped by its progress handler.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::{Either, select};
use tokio::sync::watch;

use crate::{
    engine::{
        block_on::block_on,
        hooks::Progress,
        pool::{Endable, Lent},
    },
    error::{Error, ErrorKind, Result},
};

/// A reader that can be ended.
#[derive(Debug)]
pub(in crate::engine) struct Hold {
    /// The connection, while nobody runs a statement on it.
    idle: Mutex<Option<Lent>>,
    progress: Arc<Progress>,
    ended: watch::Sender<bool>,
}

impl Hold {
    /// Makes a loan one that can be ended.
    pub(in crate::engine) fn of(lent: &Lent) -> Arc<Self> {
        let hold = Arc::new(Self {
            idle: Mutex::new(None),
            progress: Arc::clone(&lent.progress),
            ended: watch::Sender::new(false),
        });
        let weak = Arc::downgrade(&hold);
        lent.can_be_ended(weak);
        hold
    }

    pub(in crate::engine) fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Takes the connection out, to run something; `None` if there is none.
    pub(in crate::engine) fn take(&self) -> Result<Option<Lent>> {
        let mut idle = self.lock();
        if self.is_ended() {
            return Err(too_old());
        }
        Ok(idle.take())
    }

    /// Puts it back; it goes back to its pool if the hold was ended meanwhile.
    pub(in crate::engine) fn put(&self, lent: Lent) {
        let mut idle = self.lock();
        if self.is_ended() {
            drop(idle);
            drop(lent);
        } else {
            *idle = Some(lent);
        }
    }

    /// What a statement came to: if it was stopped since the hold was ended, that is told.
    pub(in crate::engine) fn told<T>(&self, outcome: Result<T>) -> Result<T> {
        match outcome {
            Err(error) if error.kind() == ErrorKind::Interrupted && self.is_ended() => {
                Err(too_old())
            }
            outcome => outcome,
        }
    }

    /// Waits for something on this thread, but not once the hold is ended; whether it came about.
    pub(in crate::engine) fn waits_for(&self, wanted: impl Future<Output = bool>) -> bool {
        let mut ended = self.ended.subscribe();
        let ended = pin!(ended.wait_for(|ended| *ended));
        match block_on(select(pin!(wanted), ended)) {
            Either::Left((came, _)) => came,
            Either::Right(_) => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lent>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endable for Hold {
    fn end(&self) {
        let _idle = self.lock();
        self.ended.send_replace(true);
        self.progress.stop_present();
    }

    fn give_back(&self) {
        let idle = self.lock().take();
        // Its transaction ends with it.
        drop(idle);
    }
}

/// What whoever uses a reader that was ended is told.
pub(in crate::engine) fn too_old() -> Error {
    Error::new(
        ErrorKind::ReaderTooOld,
        "the reader was open for longer than the option wal_policy.reader_age allows, and was ended: read less at a \
         time, or raise the limit",
    )
}
