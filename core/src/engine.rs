//! SQLite: connections, the one writer, transactions. It knows statements, not entities.
//!
//! What runs where:
//!
//! | what | where | why |
//! |---|---|---|
//! | reads by key, small limits | the task that asks, on a pooled read connection, under a budget | a switch of threads costs more than the read |
//! | scans, streams, large values | a thread of the library | they would delay other tasks |
//! | several reads together, and those of a snapshot | as reads, in a read transaction | |
//! | set-based writes | the writer's thread | any number of rows may be many |
//! | saves | whoever leads the slot: a task, or the writer's thread when a commit waits for the disk | combined, see `engine/writer.rs` |
//! | raw queries in `db.write` | sqlx's worker thread of the one connection for exclusive transactions | sqlx's design |
//! | typed statements of a session | as reads and saves, on the session's private connection | it waits for nobody |
//! | raw queries of a session | sqlx's worker thread of that connection | sqlx's design |
//! | the merge of a session | whoever leads the slot, as a save; a thread if it is long | it is a unit like a save |
//! | checkpoints | a thread of their own | they wait for the disk |
//! | backups, checks of the file | a thread, on a connection of their own beside the pool's | they read everything |
//! | imports | the task that asks makes values, a thread writes | the writer is let go of between two chunks |
//!
//! A statement on a task never waits for a lock: the busy timeout of those connections is zero, and what meets
//! another process moves to a thread, which can wait.

mod access;
mod apply;
mod back_pressure;
mod backup;
mod block_on;
mod bulk;
mod busy;
mod checkpoint;
mod chunk;
mod commit_times;
mod commits;
mod connection;
mod consumers;
mod core;
mod dual;
mod exchange;
mod expected;
mod fate;
mod ffi;
mod functions;
mod gate;
mod health;
mod history;
mod hold;
mod hooks;
mod integrity;
mod isolation;
mod key;
mod location;
mod long_read;
mod lost_log;
mod monitor;
mod narrator;
mod nested;
mod network;
mod obstacle;
mod open;
mod options;
mod pace;
mod passes;
mod pool;
mod read_snapshot;
mod reader;
mod reader_gate;
mod reads;
mod recording;
mod replay;
mod rerun;
mod room;
mod rowid;
mod save_record;
mod seen;
mod session;
mod sessions;
mod slot;
mod sqlite_error;
mod stamp;
mod streaming;
mod submission;
mod threads;
mod timer;
mod transaction;
mod unit;
mod vacuum;
mod wake;
mod wal_policy;
mod whereabouts;
mod writer;

pub(crate) use self::{
    backup::{BackupOptions, OnProgress},
    bulk::{BulkWriter, Hold},
    commits::{Commits, commit_or, pause},
    expected::ExpectedColumn,
    fate::{Fate, Witness},
    options::Options,
    save_record::SaveRecord,
    session::Committing,
    submission::{Outcome, Submission},
};
pub use self::{
    backup::{BackupProgress, BackupReport, BackupStep},
    checkpoint::Checkpoint,
    integrity::{BrokenReference, Integrity},
    isolation::Isolation,
    network::network_name,
    options::{AutoVacuum, Bytes, Execution, Synchronous, TempStore},
    read_snapshot::ReadSnapshot,
    session::{ConcurrentOptions, Session, SessionGuard},
    transaction::{Transaction, TransactionGuard},
    vacuum::VacuumReport,
    wal_policy::{OldReaders, WalPolicy},
};

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;
use tracing::Instrument as _;

use self::{
    checkpoint::truncate_log,
    connection::execute,
    core::Core,
    nested::Marked,
    slot::{End, Label},
    sqlite_error::from_rusqlite,
    transaction::turn,
    writer::Writer,
};
use crate::{
    error::{Error, ErrorKind, Result},
    observe::{Holder, Statistics, span},
    sql::{Batch, Executor, Read, ReadTogether, Rows, Write, WriteExecutor, Written},
};

/// What a layer above hangs on an engine, to find it again on its transactions.
pub(crate) type Attachment = Arc<dyn Any + Send + Sync>;

/// One database file in this process; a cheap clone.
#[derive(Clone)]
pub(crate) struct Engine {
    core: Arc<Core>,
    attachment: Option<Attachment>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("path", &self.core.location.path)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens a file, or joins the engine that has it open in this process.
    pub(crate) async fn open(path: PathBuf, options: Options) -> Result<Self> {
        let core = on_thread(move || open::open_file(&path, &options)).await?;
        Ok(Self {
            core,
            attachment: None,
        })
    }

    /// Opens a file of its own, removed when it is closed.
    pub(crate) async fn open_temporary(options: Options) -> Result<Self> {
        let core = on_thread(move || open::open_temporary(options)).await?;
        Ok(Self {
            core,
            attachment: None,
        })
    }

    /// The same file, with something of the layer above.
    #[must_use]
    pub(crate) fn with_attachment(self, attachment: Attachment) -> Self {
        Self {
            attachment: Some(attachment),
            ..self
        }
    }

    pub(crate) const fn attachment(&self) -> Option<&Attachment> {
        self.attachment.as_ref()
    }

    /// The file's name, as spans and labels have it.
    pub(crate) fn namespace(&self) -> &str {
        self.core.counters.told.namespace()
    }

    /// Whether a transaction is one of this file's.
    pub(crate) fn is_of(&self, transaction: &Transaction) -> bool {
        transaction.is_on(&self.core)
    }

    /// Hands a batch to the writer.
    pub(crate) fn submit(&self, batch: Batch) -> Submission {
        Submission::new(Arc::clone(&self.core), batch)
    }

    /// Refuses if this task is inside of a write, which another one would wait for.
    pub(crate) fn refuse_nested(&self) -> Result<()> {
        nested::refuse(Arc::as_ptr(&self.core).addr())
    }

    /// Begins a bulk operation, on a thread of its own.
    pub(crate) async fn bulk(
        &self,
        hold: Hold,
        at: &'static Location<'static>,
    ) -> Result<BulkWriter> {
        let core = Arc::clone(&self.core);
        BulkWriter::begin(core, hold, Label::at("a bulk operation", at)).await
    }

    /// Begins an exclusive transaction.
    pub(crate) async fn begin(
        &self,
        what: &'static str,
        at: &'static Location<'static>,
    ) -> Result<Transaction> {
        let attachment = self.attachment.clone();
        Transaction::begin(Arc::clone(&self.core), attachment, Label::at(what, at)).await
    }

    /// Runs `body` in an exclusive transaction: committed when it returns `Ok`, rolled back otherwise.
    pub(crate) async fn write<T>(
        &self,
        at: &'static Location<'static>,
        body: impl AsyncFnOnce(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut transaction = self.begin("db.write", at).await?;
        let span = transaction.span().clone();
        let outcome = Marked::new(Arc::as_ptr(&self.core).addr(), body(&mut transaction))
            .instrument(span.clone())
            .await;
        match outcome {
            Ok(value) => {
                transaction.commit().await?;
                Ok(value)
            }
            Err(error) => {
                span::set_error(&span, error.kind());
                // The first error is the one that matters.
                if let Err(second) = transaction.rollback().await {
                    tracing::debug!(second = %second.in_log(), "while rolling back after an error");
                }
                Err(error)
            }
        }
    }

    /// Runs `body` on one snapshot.
    pub(crate) async fn read_snapshot<T>(
        &self,
        what: &'static str,
        at: &'static Location<'static>,
        body: impl AsyncFnOnce(&mut ReadSnapshot) -> Result<T>,
    ) -> Result<T> {
        let mut snapshot = self.snapshot(what, at).await?;
        body(&mut snapshot).await
    }

    /// Begins a snapshot, which ends when it is dropped.
    pub(crate) async fn snapshot(
        &self,
        what: &'static str,
        at: &'static Location<'static>,
    ) -> Result<ReadSnapshot> {
        ReadSnapshot::begin(Arc::clone(&self.core), Label::at(what, at)).await
    }

    /// Begins a session.
    pub(crate) async fn begin_session(
        &self,
        isolation: Isolation,
        at: &'static Location<'static>,
    ) -> Result<Session> {
        let attachment = self.attachment.clone();
        let label = Label::at("db.begin_concurrent", at);
        Session::begin(Arc::clone(&self.core), attachment, isolation, label).await
    }

    /// Runs `body` in a session, again while it conflicts.
    pub(crate) async fn concurrent<T>(
        &self,
        options: ConcurrentOptions,
        at: &'static Location<'static>,
        body: impl AsyncFnOnce(&mut Session) -> Result<T> + Clone,
    ) -> Result<T> {
        rerun::concurrent(&self.core, self.attachment.as_ref(), options, at, body).await
    }

    /// Runs statements in a transaction of the writer's connection, as part of the library's own work.
    pub(crate) async fn define(
        &self,
        statements: Vec<String>,
        expected: Vec<ExpectedColumn>,
        stamped: Vec<(String, &'static str)>,
    ) -> Result<()> {
        let span = span::migration(self.namespace(), statements.len());
        let work = self.maintain("a change of tables", move |writer, core| {
            begin(writer, core)?;
            let run = || -> Result<()> {
                for statement in &statements {
                    writer
                        .connection()
                        .execute_batch(statement)
                        .map_err(|error| from_rusqlite(error).with_statement(statement.clone()))?;
                }
                for column in &expected {
                    column.check(writer.connection())?;
                }
                for (table, column) in &stamped {
                    stamp::register(writer.connection(), table, column)?;
                }
                Ok(())
            };
            match run() {
                Ok(()) => {
                    writer.commit(core)?;
                    writer.look_at_schema()
                }
                Err(error) => {
                    writer.end_transaction(core);
                    Err(error)
                }
            }
        });
        let defined = work.instrument(span.clone()).await;
        if let Err(error) = &defined {
            span::set_error(&span, error.kind());
        }
        defined
    }

    /// Makes triggers that stamp the rows of these tables when other programs write them.
    pub(crate) async fn stamp_foreign_writes(
        &self,
        stamped: Vec<(String, &'static str)>,
    ) -> Result<()> {
        let triggers = stamped
            .iter()
            .flat_map(|(table, column)| stamp::triggers(table, column))
            .collect();
        self.define(triggers, Vec::new(), stamped).await
    }

    /// For how long, at least, there has been a commit number after this one, of which the last is now that.
    pub(crate) fn age_after(&self, seq: i64, last: i64) -> Option<Duration> {
        let now = Instant::now();
        self.core.commit_times.note(last, now);
        self.core.commit_times.age_after(seq, now)
    }

    /// Hears of commits from now on.
    pub(crate) fn commits(&self) -> Commits {
        Commits::of(&self.core)
    }

    /// What is recorded of a token, once all that is queued before this call is decided.
    pub(crate) async fn save_record(&self, token: Arc<str>) -> Result<Option<SaveRecord>> {
        self.maintain("was_saved", move |writer, core| {
            let found = busy::retrying(core.options.busy_timeout, || {
                save_record::find(writer.connection(), &token)
            })?;
            if found.is_none() && core.is_undecided.load(Ordering::Relaxed) {
                overwrite_failed_commit(writer, core)?;
            }
            Ok(found)
        })
        .await
    }

    /// Copies one state of the file to another.
    pub(crate) async fn backup(
        &self,
        target: &Path,
        options: BackupOptions,
        at: &'static Location<'static>,
        on_progress: Option<OnProgress<'_>>,
    ) -> Result<BackupReport> {
        let label = Label::at("a backup", at);
        let span = span::backup(self.namespace());
        let ended = backup::run(&self.core, target, options, label, on_progress)
            .instrument(span.clone())
            .await;
        match &ended {
            Ok(report) => drop(span.record("anabranch.pages", report.pages)),
            Err(error) => span::set_error(&span, error.kind()),
        }
        ended
    }

    /// What SQLite's checks of the whole file find.
    pub(crate) async fn integrity(&self, at: &'static Location<'static>) -> Result<Integrity> {
        let label = Label::at("an integrity check", at);
        long_read::start(&self.core, label, |read| {
            // Both checks see one state.
            read.begin()?;
            integrity::check(read.connection())
        })?
        .await
    }

    /// Rebuilds the file without its free pages.
    pub(crate) async fn vacuum(&self) -> Result<VacuumReport> {
        self.maintain("vacuum", vacuum::run).await
    }

    /// Moves the log into the database file and truncates it.
    pub(crate) async fn checkpoint(&self) -> Result<Checkpoint> {
        self.maintain("a checkpoint", |writer, core| {
            truncate_log(writer.connection(), core)
        })
        .await
    }

    /// Runs work on the writer's connection, on a thread, with the slot held and no transaction open.
    async fn maintain<R: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Writer, &Core) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let lease = turn(&self.core, Label::new(what)).await?;
        self.core.look(self.core.writer().connection())?;
        let (answer, answered) = oneshot::channel();
        let core = Arc::clone(&self.core);
        self.core.threads.run(move || {
            let outcome = {
                let mut writer = core.writer();
                let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| work(&mut writer, &core)))
                else {
                    writer.poison(&core);
                    return;
                };
                writer.end_transaction(&core);
                outcome
            };
            drop(lease);
            drop(answer.send(outcome));
        })?;
        answered.await.map_err(|_| {
            Error::new(
                ErrorKind::Poisoned,
                "the library failed while it held the writer",
            )
        })?
    }

    /// Waits for all that is queued, closes the connections, and truncates the log.
    pub(crate) async fn close(&self) -> Result<Checkpoint> {
        let core = Arc::clone(&self.core);
        // It may hold the writer, for a reader that does not end.
        let hurry = core.checkpointer.hurry();
        let lease = match turn(&core, Label::new("close")).await {
            Ok(lease) => Some(lease),
            // The checkpointer's thread is done with it, or will be in a moment.
            Err(error) if error.kind() == ErrorKind::FileMoved => None,
            // There is nothing left to write; what reads is closed all the same.
            Err(error) => {
                if error.kind() == ErrorKind::Poisoned {
                    core.pool.close();
                    core.sessions.pool.close();
                    core.checkpointer.end();
                }
                return Err(error);
            }
        };
        hurry.stays();
        core.closing.store(true, Ordering::Release);
        core.slot.end(End::Closed);
        core.checkpointer.end();
        let (answer, answered) = oneshot::channel();
        let closed = Arc::clone(&core);
        self.core.threads.run(move || {
            closed.pool.close();
            closed.sessions.pool.close();
            closed.allocator.close();
            closed.checkpointer.wait_until_closed();
            let outcome = match closed.take_writer() {
                Some(writer) => {
                    let outcome = truncate_log(writer.connection(), &closed);
                    writer.close();
                    outcome
                }
                None => Ok(left_as_it_is(&closed)),
            };
            let outcome = match outcome {
                Err(error) if error.kind() == ErrorKind::FileMoved => Ok(left_as_it_is(&closed)),
                outcome => outcome,
            };
            drop(lease);
            // Whoever waits for a commit waits in vain.
            closed.wal_size.bell.ring();
            drop(answer.send(outcome));
        })?;
        answered.await.map_err(|_| core.ended(End::Closed))?
    }

    /// What the engine counted.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            session_alarms: ffi::session_vfs::alarms(),
            ..self.core.counters.read()
        }
    }

    /// Who holds the writer.
    pub(crate) fn held_by(&self) -> Option<Holder> {
        self.core.slot.held_by().map(|held| Holder {
            label: held.label.to_string(),
            age: held.age,
        })
    }

    /// A place for queries, which are named so, and by where they are asked for.
    pub(crate) const fn asked_at(
        &self,
        query: &'static str,
        at: &'static Location<'static>,
    ) -> AskedAt<'_> {
        AskedAt {
            engine: self,
            query: Label::at(query, at),
            stream: Label::at("a stream", at),
        }
    }

    /// How many frames the log had after the last commit of this process.
    pub(crate) fn wal_frames(&self) -> u32 {
        self.core.wal_size.frames()
    }

    /// The file, absolute, links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.core.location.path
    }
}

/// Where queries and set-based writes run that are asked for at a place in the application's source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedAt<'c> {
    engine: &'c Engine,
    query: Label,
    stream: Label,
}

impl<'c> Executor<'c> for AskedAt<'c> {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        reader::read(&self.engine.core, self.query, read).await
    }

    async fn read_together<T: Send + 'static>(self, reads: ReadTogether<T>) -> Result<T> {
        reader::read_together(&self.engine.core, self.query, reads).await
    }

    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        reader::stream(&self.engine.core, self.stream, read)
    }
}

impl<'c> WriteExecutor<'c> for AskedAt<'c> {
    async fn write(self, write: Write) -> Result<Written> {
        let mut submission = self.engine.submit(write.batch);
        let receipt = submission.outcome().await.into_receipt()?;
        Ok(Written { receipt })
    }
}

/// What closing a file that has moved does to its log: nothing.
fn left_as_it_is(core: &Core) -> Checkpoint {
    Checkpoint {
        frames: core.wal_size.frames(),
        moved: 0,
        is_held_by_reader: false,
    }
}

/// BEGIN IMMEDIATE on a thread that may wait for other processes.
fn begin(writer: &mut Writer, core: &Core) -> Result<()> {
    busy::retrying(core.options.busy_timeout, || {
        execute(writer.connection(), "BEGIN IMMEDIATE")
    })?;
    writer.look_around(core)
}

/// The frames of a COMMIT that failed may lie in the log, unseen, until a recovery takes them for committed. The next
/// commit is written over them, and so decides that they are not: one that writes the file's header as it is.
fn overwrite_failed_commit(writer: &mut Writer, core: &Core) -> Result<()> {
    begin(writer, core)?;
    let connection = writer.connection();
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(from_rusqlite)?;
    connection
        .pragma_update(None, "user_version", version)
        .map_err(from_rusqlite)?;
    writer.commit(core)?;
    core.is_undecided.store(false, Ordering::Relaxed);
    Ok(())
}

/// Runs blocking work on a thread that ends with it.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    let no_thread = || {
        Error::new(
            ErrorKind::OutOfMemory,
            "the operating system gave no thread",
        )
    };
    std::thread::Builder::new()
        .name("anabranch-open".to_owned())
        .spawn(move || {
            drop(answer.send(work()));
        })
        .map_err(|error| no_thread().with_source(error))?;
    answered.await.map_err(|_| no_thread())?
}
