//! What one open file consists of, shared by all its handles.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use rusqlite::Connection;

use tokio::sync::Semaphore;

use crate::{
    engine::{
        checkpoint::Checkpointer,
        commit_times::CommitTimes,
        ffi::WriterVfs,
        gate::InlineGate,
        history::History,
        hooks::{Authorizer, Draws, Progress, Statements, WalSize, Watch},
        key::Allocator,
        location::Location,
        lost_log,
        narrator::{Narrator, Voice},
        options::{Execution, Options, Synchronous},
        pace::Pace,
        passes::{Pass, Passes},
        pool::{Lent, Pool},
        reader_gate::ReaderGate,
        rerun::Heats,
        sessions::Sessions,
        slot::{End, HeldBy, Label, Slot},
        threads::Threads,
        whereabouts::Whereabouts,
        writer::{Answer, Unit, Writer, lead},
    },
    error::{Error, ErrorKind, Result},
    observe::{Counters, PassEnd},
};

/// One database file in this process.
#[derive(Debug)]
pub(in crate::engine) struct Core {
    pub(in crate::engine) slot: Arc<Slot<Unit, Answer>>,
    pub(in crate::engine) writer: Mutex<Option<Writer>>,
    /// What the connections that write are opened through.
    pub(in crate::engine) vfs: Arc<WriterVfs>,
    /// Of the connection for exclusive transactions.
    pub(in crate::engine) authorizer: Arc<Authorizer>,
    pub(in crate::engine) watch: Arc<Watch>,
    /// What the functions of the connections that write gave.
    pub(in crate::engine) draws: Arc<Draws>,
    /// Stops a replay that holds the writer for too long.
    pub(in crate::engine) hold: Arc<Progress>,
    pub(in crate::engine) allocator: Arc<Allocator>,
    pub(in crate::engine) history: Arc<History>,
    /// Of the connection for exclusive transactions.
    pub(in crate::engine) statements: Arc<Statements>,
    pub(in crate::engine) sessions: Sessions,
    pub(in crate::engine) heats: Heats,
    pub(in crate::engine) wal_size: Arc<WalSize>,
    pub(in crate::engine) pool: Arc<Pool>,
    pub(in crate::engine) gate: InlineGate,
    pub(in crate::engine) pace: Pace,
    pub(in crate::engine) threads: Threads,
    pub(in crate::engine) checkpointer: Checkpointer,
    pub(in crate::engine) passes: Passes,
    pub(in crate::engine) commit_times: CommitTimes,
    pub(in crate::engine) reader_gate: ReaderGate,
    pub(in crate::engine) capacity: Option<Arc<Semaphore>>,
    pub(in crate::engine) counters: Arc<Counters>,
    pub(in crate::engine) options: Options,
    /// A COMMIT failed, and a recovery might still find it in the log: nothing was written since to decide that.
    pub(in crate::engine) is_undecided: AtomicBool,
    /// Set before the last handle's threads are told to end.
    pub(in crate::engine) closing: AtomicBool,
    pub(in crate::engine) whereabouts: Arc<Whereabouts>,
    /// Last, so that a temporary folder is removed after the connections are closed.
    pub(in crate::engine) location: Location,
}

/// A reader that is open, and since when.
pub(in crate::engine) type OpenReader = (Label, Instant);

/// The writer, while a lease is held.
pub(in crate::engine) struct WriterGuard<'a>(MutexGuard<'a, Option<Writer>>);

impl std::ops::Deref for WriterGuard<'_> {
    type Target = Writer;

    #[allow(
        clippy::expect_used,
        reason = "the writer is taken out only by close, which holds the last lease"
    )]
    fn deref(&self) -> &Writer {
        self.0.as_ref().expect("no lease is given after close")
    }
}

impl std::ops::DerefMut for WriterGuard<'_> {
    #[allow(
        clippy::expect_used,
        reason = "the writer is taken out only by close, which holds the last lease"
    )]
    fn deref_mut(&mut self) -> &mut Writer {
        self.0.as_mut().expect("no lease is given after close")
    }
}

impl WriterGuard<'_> {
    /// The library failed while it held the writer. Nothing more is written; the connection is closed, which undoes
    /// what was open on it, and the file can be opened anew.
    pub(in crate::engine) fn poison(mut self, core: &Core) {
        tracing::error!("the writer panicked; the database takes no more writes");
        core.closing.store(true, Ordering::Release);
        core.slot.end(End::Poisoned);
        drop(self.0.take());
    }
}

impl Core {
    /// The writer. To be called by whoever holds the slot's lease.
    pub(in crate::engine) fn writer(&self) -> WriterGuard<'_> {
        WriterGuard(self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells of the statements of whoever is called this.
    pub(in crate::engine) fn narrator(&self, label: Label, is_timed: bool) -> Narrator<'_> {
        let slow = self.options.slow_statements;
        Narrator::new(&self.counters, slow, label, is_timed)
    }

    /// The same, for a connection to keep.
    pub(in crate::engine) fn voice(&self, label: Label) -> Voice {
        Voice {
            counters: Arc::clone(&self.counters),
            slow: self.options.slow_statements,
            label,
        }
    }

    /// Takes the writer out, for good. To be called by whoever holds the last lease.
    pub(in crate::engine) fn take_writer(&self) -> Option<Writer> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.take()
    }

    /// Lends a read connection, of a file that is still where it was opened.
    pub(in crate::engine) async fn lend(&self, label: Label) -> Result<Lent> {
        let lent = match self.pool.lend(label).await {
            Err(_) if self.whereabouts.is_moved() => return Err(self.moved()),
            lent => lent?,
        };
        self.look_again(&lent.connection, lent.since)?;
        Ok(lent)
    }

    /// A pass over the log has ended.
    pub(in crate::engine) fn note_pass(&self, pass: Result<Pass, &Error>) {
        match &pass {
            Ok(pass) if pass.is_done() => self.counters.passes_complete.add(1),
            Ok(_) => self.counters.passes_incomplete.add(1),
            Err(_) => {}
        }
        let end = match &pass {
            Ok(pass) if pass.is_done() => PassEnd::Complete,
            Ok(pass) if pass.moved == pass.frames => PassEnd::MovedNotReset,
            Ok(_) => PassEnd::PartlyMoved,
            Err(error) if error.kind() == ErrorKind::Busy => PassEnd::OtherCheckpointer,
            Err(_) => PassEnd::Failed,
        };
        let took = pass.as_ref().ok().map(|pass| pass.took);
        self.counters.told.pass(end, took);
        let oldest = oldest_reader(self).map(|(_, since)| since);
        self.passes
            .note(pass.map(|pass| (pass, oldest)), Instant::now());
    }

    /// A pass that cuts the log's file has ended; with the slot held.
    pub(in crate::engine) fn note_cut(&self, pass: Pass) {
        self.note_pass(Ok(pass));
        if pass.is_done() {
            self.wal_size.committed(0);
        }
    }

    /// Ends readers that are too old, or tells of them.
    pub(in crate::engine) fn end_old(&self) {
        let policy = &self.options.wal_policy;
        self.pool.end_old(policy, &self.counters);
        self.sessions.pool.end_old(policy, &self.counters);
    }

    /// Lends a read connection for longer than a query, of a file that is still where it was opened.
    pub(in crate::engine) async fn lend_for_long(&self, label: Label) -> Result<Lent> {
        self.reader_gate.pass().await;
        self.lend(label).await
    }

    /// Makes sure that the file is where it was opened.
    pub(in crate::engine) fn look(&self, connection: &Connection) -> Result<()> {
        if !self.whereabouts.look(connection) {
            return Ok(());
        }
        self.lose();
        Err(self.moved())
    }

    /// The same by the allocator's connection, for whoever has none yet. It is given back before what is lost is closed,
    /// which it is itself.
    pub(in crate::engine) fn look_by_head(&self) -> Result<()> {
        let has_moved = self
            .allocator
            .with_head(|head| Ok(self.whereabouts.look(head)));
        match has_moved {
            Ok(false) => Ok(()),
            Err(error) if !self.whereabouts.is_moved() => Err(error),
            _ => {
                self.lose();
                Err(self.moved())
            }
        }
    }

    /// The same, as seen a moment ago at the latest.
    pub(in crate::engine) fn look_again(
        &self,
        connection: &Connection,
        now: Instant,
    ) -> Result<()> {
        if !self.whereabouts.look_again(connection, now) {
            return Ok(());
        }
        self.lose();
        Err(self.moved())
    }

    /// The file is not at its path any more: nothing is read or written from now on. What is idle is closed at once,
    /// the rest by the checkpointer's thread.
    pub(in crate::engine) fn lose(&self) {
        if !self.whereabouts.set_moved() {
            return;
        }
        tracing::error!(
            path = %self.location.path.display(),
            "the database file was removed, renamed or replaced while it was open"
        );
        lost_log::remember(&self.location);
        self.closing.store(true, Ordering::Release);
        self.pool.close();
        self.sessions.pool.close();
        self.allocator.close();
        self.checkpointer.bell()();
    }

    /// Whether all connections of a file that has moved are closed; waits for them until the deadline.
    pub(in crate::engine) fn is_let_go_by(&self, deadline: Instant) -> bool {
        self.checkpointer.is_closed_by(deadline)
            && self.pool.is_empty_by(deadline)
            && self.sessions.pool.is_empty_by(deadline)
    }

    /// What everybody is told once the file has moved.
    pub(in crate::engine) fn moved(&self) -> Error {
        Error::new(
            ErrorKind::FileMoved,
            format!(
                "{} was removed, renamed or replaced while it was open: nothing is read from it or written to it any \
                 more; open the database again",
                self.location.path.display()
            ),
        )
    }

    /// Why nothing is written any more.
    pub(in crate::engine) fn ended(&self, end: End) -> Error {
        match end {
            End::Closed if self.whereabouts.is_moved() => self.moved(),
            End::Closed => Error::new(ErrorKind::Closed, "the database was closed"),
            End::Poisoned => Error::new(
                ErrorKind::Poisoned,
                "the library failed while it held the writer: open the database anew",
            ),
        }
    }

    /// Whether short statements run on the task that asks.
    pub(in crate::engine) fn runs_inline(&self) -> bool {
        self.options.execution == Execution::Inline
    }

    /// Whether a commit waits for the disk, and so does not run on a task.
    pub(in crate::engine) fn commit_waits_for_disk(&self) -> bool {
        self.options.synchronous == Synchronous::Full
    }

    /// The writer's thread: leads where tasks should not, ends pauses, takes over what was left lying.
    pub(in crate::engine) fn run_writer_thread(self: &Arc<Self>) -> std::io::Result<()> {
        let slot = Arc::clone(&self.slot);
        // Weak: the last handle's drop ends the thread, not the other way round.
        let core = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("anabranch-writer".to_owned())
            .spawn(move || {
                let _ends = EndsOnPanic(Arc::clone(&slot));
                while let Some(task) = slot.next_on_thread() {
                    let Some(core) = core.upgrade() else { return };
                    if task.taken_over {
                        core.counters.taken_over.add(1);
                    }
                    lead(&core, task.lease);
                }
            })
            .map(drop)
    }
}

/// The reader of ours that is open for longest.
pub(in crate::engine) fn oldest_reader(core: &Core) -> Option<OpenReader> {
    let held = core.slot.held_by();
    let writer = held
        .filter(|held| held.label.is_of_application())
        .and_then(|HeldBy { label, age }| Some((label, Instant::now().checked_sub(age)?)));
    [core.pool.oldest(), core.sessions.pool.oldest(), writer]
        .into_iter()
        .flatten()
        .min_by_key(|(_, since)| *since)
}

/// Without its thread the slot is of no use: nothing would expire, and nothing wait for the disk.
struct EndsOnPanic(Arc<Slot<Unit, Answer>>);

impl Drop for EndsOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(End::Poisoned);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.slot.end(End::Closed);
        self.checkpointer.end();
    }
}
