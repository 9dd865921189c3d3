//! Reading that takes its time, such as a backup: on a thread, and on a connection of its own beside the pool's, so that
//! nobody waits for it.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    engine::{
        connection::{Role, open},
        core::Core,
        ffi::Hooks,
        hooks::{Progress, Run},
        pool::{Lent, Reader},
        slot::Label,
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
};

/// A connection for one long work, and whether that is to go on.
pub(in crate::engine) struct LongRead {
    lent: Lent,
    core: Arc<Core>,
    progress: Arc<Progress>,
    run: Run,
}

/// What comes of it. Dropped, it stops the work.
#[derive(Debug)]
pub(in crate::engine) struct Outcome<R> {
    answered: oneshot::Receiver<Result<R>>,
    run: Run,
}

/// Starts the work on a thread.
pub(in crate::engine) fn start<R: Send + 'static>(
    core: &Arc<Core>,
    label: Label,
    work: impl FnOnce(LongRead) -> Result<R> + Send + 'static,
) -> Result<Outcome<R>> {
    let progress = Arc::new(Progress::default());
    let run = progress.begin(None);
    let (answer, answered) = oneshot::channel();
    let outcome = Outcome {
        answered,
        run: run.clone(),
    };
    let core = Arc::clone(core);
    let threads = Arc::clone(&core);
    threads.threads.run(move || {
        let work = || match LongRead::open(&core, label, progress, run) {
            // Its connections are closed, or it is another file.
            Err(_) if core.whereabouts.is_moved() => Err(core.moved()),
            opened => work(opened?),
        };
        if let Ok(outcome) = catch_unwind(AssertUnwindSafe(work)) {
            drop(answer.send(outcome));
        }
    })?;
    Ok(outcome)
}

impl LongRead {
    fn open(core: &Arc<Core>, label: Label, progress: Arc<Progress>, run: Run) -> Result<Self> {
        let hooks = Hooks {
            progress: Some(Arc::clone(&progress)),
            ..Hooks::default()
        };
        let path = &core.location.path;
        // Of another file at the path neither the log nor its index is touched: they may still be those of ours.
        core.look_by_head()?;
        let opened = open(path, &core.options, Role::Reader, None, hooks);
        // It found whatever was at the path by then.
        core.look_by_head()?;
        let connection = opened?;
        // Here is a thread, which may wait for another process that recovers the log.
        connection
            .busy_timeout(core.options.busy_timeout)
            .map_err(from_rusqlite)?;
        let reader = Reader {
            connection,
            // Its end is not to be stopped.
            progress: Arc::default(),
            authorizer: Arc::default(),
            voice: core.voice(label),
        };
        Ok(Self {
            lent: core.pool.lend_guest(reader, label)?,
            core: Arc::clone(core),
            progress,
            run,
        })
    }

    pub(in crate::engine) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(in crate::engine) fn connection(&self) -> &Connection {
        &self.lent.connection
    }

    /// Takes a snapshot, for all statements from now on.
    pub(in crate::engine) fn begin(&self) -> Result<()> {
        self.lent.begin()?;
        self.connection()
            .query_row("SELECT count(*) FROM main.sqlite_schema", [], |_| Ok(()))
            .map_err(from_rusqlite)
    }

    /// An error once nobody waits for it any more, or the file has moved.
    pub(in crate::engine) fn go_on(&self) -> Result<()> {
        if self.run.is_stopped() {
            return Err(stopped());
        }
        self.core.look(self.connection())
    }

    /// Closes the connection, which ends the snapshot. What is left to do is stopped by the same listener and run.
    pub(in crate::engine) fn close(self) -> (Arc<Progress>, Run) {
        (self.progress, self.run)
    }
}

impl<R> Future for Outcome<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        Pin::new(&mut self.answered)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|_| Err(failed())))
    }
}

impl<R> Drop for Outcome<R> {
    fn drop(&mut self) {
        self.run.stop();
    }
}

/// Nobody waits for it any more.
pub(in crate::engine) fn stopped() -> Error {
    Error::new(ErrorKind::Interrupted, "it was stopped")
}

/// The work panicked.
fn failed() -> Error {
    Error::new(
        ErrorKind::Interrupted,
        "the library failed while it read: please report it",
    )
}
