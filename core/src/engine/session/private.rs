//! A session that runs beside others: on a snapshot of its own, with nothing written before it commits.
//!
//! Its statements run at once on a private connection (see [`crate::engine::ffi::SessionVfs`]), and are recorded with what
//! was seen of them. To commit, the private view is rolled back, and the recording goes to the writer's queue, where it is
//! replayed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::{
    engine::{
        Attachment, Submission,
        apply::{Keys, as_undone, is_long},
        connection::execute,
        core::Core,
        exchange::{Exchange, half_done},
        ffi::{
            has_deferred_violations,
            session_vfs::{cache_used, refresh},
            set_last_insert_rowid,
        },
        isolation::Isolation,
        nested,
        recording::{Applied, AppliedOutcome, Event, Given, Recording},
        seen::{Effect, End},
        session::{lent::LentSession, recorded_reads::RecordedReads},
        sessions::Instruments,
        slot::Label,
        sqlite_error::from_rusqlite,
        transaction::turn,
        unit::{apply_once, in_savepoint},
    },
    error::{Error, ErrorKind, Result},
    observe::span,
    sql::{Batch, Cost, NewKey, Read, ReadTogether, Reads, Receipt, Refusal},
};

/// See the module's page.
#[derive(Debug)]
pub(super) struct Private {
    pub(super) exchange: Exchange<LentSession>,
    pub(super) attachment: Option<Attachment>,
    pub(super) log: Log,
    /// Savepoints that are open.
    depth: u32,
}

/// What was done so far, and how much may be done.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) recording: Recording,
    pub(super) instruments: Arc<Instruments>,
    core: Arc<Core>,
    began: Instant,
    /// A limit was reached: it can only be rolled back.
    outgrown: Option<Error>,
    /// A raw query has begun, and what was seen of it is not noted yet.
    unrecorded: bool,
    /// The last event is a raw query of which it is still to be asked what it changed.
    lacks_effect: bool,
}

/// A savepoint that is open.
#[derive(Debug)]
pub(super) struct PrivateSavepoint {
    depth: u32,
    tokens: usize,
}

impl Private {
    /// Begins a session; nothing if there can be none on this file.
    pub(super) async fn begin(
        core: &Arc<Core>,
        attachment: Option<Attachment>,
        isolation: Isolation,
        label: Label,
    ) -> Result<Option<Self>> {
        nested::refuse(Arc::as_ptr(core).addr())?;
        core.reader_gate.pass().await;
        let Some(lent) = core.sessions.lend(core, label).await? else {
            return Ok(None);
        };
        let mut held = LentSession::new(Arc::clone(core), lent);
        let Some(instruments) = held.instruments() else {
            return Ok(None);
        };
        let is_snapshot = isolation == Isolation::Snapshot;
        // Before the snapshot is taken: what is committed between the two counts as changed.
        let since = (core.history).begin(core.vfs.head().foreign(), is_snapshot);
        let authorizer = Arc::clone(&instruments.authorizer);
        let span = span::session(core.counters.told.namespace(), label, isolation);
        let mut exchange = Exchange::new(Arc::clone(core), held, authorizer, label, span);
        begin(core, &mut exchange).await?;
        instruments.watch.forget_keys();
        instruments.pages.take_exceeded();
        if is_snapshot {
            instruments.watch.note_rows();
        }
        core.counters.sessions.add(1);
        Ok(Some(Self {
            exchange,
            attachment,
            log: Log {
                recording: Recording {
                    isolation,
                    events: Vec::new(),
                    tokens: Vec::new(),
                    since,
                    rows: Vec::new(),
                    cost: Duration::ZERO,
                    writes: false,
                    bytes: 0,
                },
                instruments,
                core: Arc::clone(core),
                began: Instant::now(),
                outgrown: None,
                unrecorded: false,
                lacks_effect: false,
            },
            depth: 0,
        }))
    }

    /// Makes sure that the session may go on, and that all is noted of what was done so far.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        self.log.check()?;
        if self.log.lacks_effect {
            self.exchange.ready().await?;
            let end = self.log.last_end();
            let effect = Effect::of(self.exchange.connection()?, end);
            self.log.complete(effect);
        }
        Ok(())
    }

    pub(super) async fn read<T: Send + 'static>(&mut self, read: Read<T>) -> Result<Vec<T>> {
        let Read {
            statement,
            cost,
            entity,
            decode,
        } = read;
        self.reading(cost, move |reads| {
            let mut items = Vec::new();
            reads.entity = entity;
            reads.rows(&statement, &mut |row| {
                items.push(decode(row)?);
                Ok(())
            })?;
            Ok(items)
        })
        .await
    }

    pub(super) async fn read_together<T: Send + 'static>(
        &mut self,
        reads: ReadTogether<T>,
    ) -> Result<T> {
        let ReadTogether { cost, work } = reads;
        self.reading(cost, move |reads| work(reads)).await
    }

    /// Runs what only reads, and notes each statement with what was seen of it.
    async fn reading<R: Send + 'static>(
        &mut self,
        cost: Cost,
        work: impl FnOnce(&mut RecordedReads<'_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.go_on().await?;
        let instruments = Arc::clone(&self.log.instruments);
        let (core, label) = (Arc::clone(self.exchange.core()), self.exchange.told().0);
        let read = move |connection: &Connection| {
            let began = Instant::now();
            let mut reads = RecordedReads {
                narrator: core.narrator(label, true),
                connection,
                instruments: &instruments,
                entity: None,
                queries: Vec::new(),
            };
            // What was seen before a panic was seen.
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut reads)));
            let queries = reads.queries;
            (outcome, queries, began.elapsed(), cache_used(connection))
        };
        let (outcome, queries, cost, used) = if cost == Cost::Small {
            self.exchange.with(read).await?
        } else {
            self.exchange.ready().await?;
            self.exchange.on_thread(read).await?
        };
        if !matches!(outcome, Ok(Ok(_))) {
            self.exchange.notice_end();
        }
        self.log.recording.cost += cost;
        let mut noted = Ok(());
        for query in queries {
            let note = self.log.note(Event::Query(query), Duration::ZERO, used);
            noted = noted.and(note);
        }
        let outcome = outcome.unwrap_or_else(|panic| resume_unwind(panic));
        noted.and(outcome)
    }

    /// Applies a batch inside a savepoint: all of it or nothing, and the session goes on either way.
    pub(super) async fn apply(&mut self, batch: Batch) -> Result<Receipt, Refusal> {
        self.go_on().await?;
        let core = Arc::clone(self.exchange.core());
        let instruments = Arc::clone(&self.log.instruments);
        let long = is_long(&batch);
        let label = self.exchange.told().0;
        let apply = move |connection: &Connection| {
            let began = Instant::now();
            instruments.record();
            let (keys, answer) = instruments
                .authorizer
                .ours(|| apply(&core, label, &instruments, connection, &batch));
            let applied = Applied {
                rowid: connection.last_insert_rowid(),
                given: instruments.given(),
                outcome: AppliedOutcome::of(&answer),
                keys,
                batch,
            };
            (answer, applied, began.elapsed(), cache_used(connection))
        };
        let (answer, applied, cost, used) = if long {
            self.exchange.ready().await?;
            self.exchange.on_thread(apply).await?
        } else {
            self.exchange.with(apply).await?
        };
        self.exchange.notice_end();
        self.log.recording.writes = true;
        if answer.is_ok() {
            let token = applied.batch.token.clone();
            self.log.recording.tokens.extend(token);
        }
        self.log.note(Event::Batch(Box::new(applied)), cost, used)?;
        answer
    }

    pub(super) async fn next_key(&mut self, key: NewKey) -> Result<i64> {
        self.go_on().await?;
        let core = Arc::clone(self.exchange.core());
        let instruments = Arc::clone(&self.log.instruments);
        self.exchange
            .with(move |connection| {
                instruments
                    .authorizer
                    .ours(|| core.allocator.reserve(connection, &instruments.watch, key))
            })
            .await?
    }

    pub(super) async fn begin_savepoint(&mut self) -> Result<PrivateSavepoint> {
        self.go_on().await?;
        let depth = self.depth;
        self.run_ours(format!("SAVEPOINT anabranch_{depth}"))
            .await?;
        self.depth += 1;
        self.log.note(Event::Savepoint(depth), Duration::ZERO, 0)?;
        Ok(PrivateSavepoint {
            depth,
            tokens: self.log.recording.tokens.len(),
        })
    }

    pub(super) async fn release(&mut self, savepoint: PrivateSavepoint) -> Result<()> {
        self.go_on().await?;
        let depth = savepoint.depth;
        if self.depth != depth + 1 {
            return Err(half_done());
        }
        self.run_ours(format!("RELEASE anabranch_{depth}")).await?;
        self.depth = depth;
        self.log.recording.events.push(Event::Release(depth));
        Ok(())
    }

    /// Undoes what was done since; the caller has the error that says why.
    pub(super) async fn undo(&mut self, savepoint: PrivateSavepoint) {
        let depth = savepoint.depth;
        let undo = format!("ROLLBACK TO anabranch_{depth}; RELEASE anabranch_{depth}");
        // Of what a failed query changed it is asked before it is undone.
        let known = self.go_on().await;
        match known.and(self.run_ours(undo).await) {
            Ok(()) => {
                self.depth = depth;
                self.log.recording.tokens.truncate(savepoint.tokens);
                self.log.recording.events.push(Event::Undo(depth));
            }
            // Mostly since the transaction is gone as a whole.
            Err(second) => tracing::debug!(second = %second.in_log(), "while undoing a savepoint"),
        }
    }

    /// Runs statements of the library's own.
    async fn run_ours(&mut self, sql: String) -> Result<()> {
        let authorizer = Arc::clone(self.exchange.authorizer());
        self.exchange
            .with(move |connection| {
                authorizer.ours(|| connection.execute_batch(&sql).map_err(from_rusqlite))
            })
            .await?
    }

    /// Ends the private view, and hands what was done to the writer's queue; nothing if there is nothing to write.
    pub(super) async fn submit(mut self) -> Result<Option<Submission>> {
        self.exchange.ready().await?;
        self.go_on().await?;
        if self.depth > 0 {
            return Err(half_done());
        }
        let is_broken = has_deferred_violations(self.exchange.connection()?);
        let core = Arc::clone(self.exchange.core());
        let Self { log, exchange, .. } = self;
        let mut recording = log.recording;
        if recording.isolation == Isolation::Snapshot {
            recording.rows = log.instruments.watch.take_rows();
        }
        // The connection is free for the next session, and pins the log no longer.
        drop(exchange);
        if !recording.writes {
            // It saw one state of the database and left it as it was: it took place at that point.
            return Ok(None);
        }
        if is_broken {
            return Err(Error::new(
                ErrorKind::ForeignKey,
                "at the end of the session a reference points at no row: it was rolled back",
            ));
        }
        Ok(Some(Submission::of_session(core, recording)))
    }

    pub(super) async fn rollback(mut self) -> Result<()> {
        if self.exchange.held().is_err() {
            // A thread that was at it when its statement was dropped undoes it.
            return Ok(());
        }
        self.exchange.settle().await
    }
}

impl Log {
    /// Whether the session may go on.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(error) = &self.outgrown {
            return Err(error.copy());
        }
        if self.unrecorded {
            return Err(Error::new(
                ErrorKind::TransactionEnded,
                "a raw query that may write was dropped before its end: the session can only be rolled back",
            ));
        }
        let limit = self.core.options.sessions.age;
        if self.began.elapsed() > limit {
            return Err(outgrown("session_age", "is open for too long"));
        }
        Ok(())
    }

    /// A raw query begins.
    pub(super) fn begin_raw(&mut self) {
        self.instruments.record();
        self.unrecorded = true;
    }

    /// How the last query ended.
    fn last_end(&self) -> End {
        match self.recording.events.last() {
            Some(Event::Query(query)) => query.seen.end,
            _ => End::Done,
        }
    }

    /// It is known what the last query changed.
    fn complete(&mut self, effect: Effect) {
        self.lacks_effect = false;
        if let Some(Event::Query(query)) = self.recording.events.last_mut() {
            query.seen.effect = Some(effect);
        }
    }

    /// What the last query changed is to be asked, once the connection is idle.
    pub(super) const fn wants_effect(&mut self) {
        self.lacks_effect = true;
    }

    /// A raw query was refused: it did nothing, here or anywhere, and is not run where the session is merged.
    pub(super) const fn refused_raw(&mut self) {
        self.unrecorded = false;
    }

    /// Notes what was done. `used` is how much memory the connection's pages take.
    pub(super) fn note(&mut self, event: Event, cost: Duration, used: u64) -> Result<()> {
        let options = &self.core.options;
        let recording = &mut self.recording;
        self.unrecorded = false;
        recording.bytes += event.bytes();
        recording.cost += cost;
        recording.events.push(event);
        let exceeded = if self.instruments.pages.take_exceeded() {
            Some(too_much_memory())
        } else if recording.events.len() > options.sessions.statements {
            Some(outgrown("session_statements", "ran too many statements"))
        } else if recording.bytes + used.saturating_sub(options.cache_size.0)
            > options.sessions.memory.0
        {
            Some(too_much_memory())
        } else {
            None
        };
        match exceeded {
            Some(error) => {
                self.outgrown = Some(error.copy());
                Err(error)
            }
            None => Ok(()),
        }
    }
}

impl Instruments {
    /// Keeps what the next statement is given.
    pub(super) fn record(&self) {
        self.vfs.clock().record();
        self.draws.record();
    }

    /// What it was given.
    pub(super) fn given(&self) -> Given {
        Given {
            time: self.vfs.clock().asked(),
            draws: self.draws.take(),
        }
    }
}

fn too_much_memory() -> Error {
    outgrown("session_memory", "needs too much memory")
}

fn outgrown(option: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::SessionLimit,
        format!(
            "the session {what} (the option {option}): it can only be rolled back; do the work in smaller pieces, or in db.write"
        ),
    )
}

/// Takes the snapshot, and begins the private transaction.
async fn begin(core: &Arc<Core>, exchange: &mut Exchange<LentSession>) -> Result<()> {
    let authorizer = Arc::clone(exchange.authorizer());
    let begin_private =
        move |connection: &Connection| authorizer.ours(|| begin_private(connection));
    match exchange.with(begin_private.clone()).await? {
        Err(error) if error.kind() == ErrorKind::Busy => {}
        begun => return begun,
    }
    // Commits came faster than the snapshot could be taken, or the log is to be recovered: while the writer's slot is
    // held nobody of this process commits, and the writer's read recovers what there is.
    core.counters.slow_begins.add(1);
    let lease = turn(core, Label::new("the begin of a session")).await?;
    let timeout = core.options.busy_timeout;
    let owner = Arc::clone(core);
    exchange
        .on_thread(move |connection| {
            let begun = crate::engine::busy::retrying(timeout, || {
                owner.writer().read()?;
                begin_private(connection)
            });
            // Held until then, also if nobody waits any more.
            drop(lease);
            begun
        })
        .await?
}

fn begin_private(connection: &Connection) -> Result<()> {
    refresh(connection);
    execute(connection, "BEGIN IMMEDIATE")?;
    set_last_insert_rowid(connection, 0);
    Ok(())
}

/// Applies a batch with keys from the allocator.
fn apply(
    core: &Core,
    label: Label,
    instruments: &Instruments,
    connection: &Connection,
    batch: &Batch,
) -> (Vec<i64>, Result<Receipt, Refusal>) {
    let given = batch.keys.iter();
    let keys: Result<Vec<i64>> = given
        .map(|key| (core.allocator).reserve(connection, &instruments.watch, *key))
        .collect();
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    let answer = in_savepoint(connection, &instruments.watch, || {
        let retention = core.options.save_token_retention;
        let narrator = core.narrator(label, true);
        apply_once(narrator, connection, Keys::Given(&keys), batch, retention)
    })
    .map_err(|refusal| as_undone(connection, batch, refusal));
    (keys, answer)
}
