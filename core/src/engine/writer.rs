//! The writer: applies what waits in the queue, many saves in one SQLite transaction.
//!
//! A group is `BEGIN IMMEDIATE`, then for each save `SAVEPOINT`, its batch, its checks, `RELEASE` (or
//! `ROLLBACK TO`), then one `COMMIT`; only then is anybody answered. Nobody waits for a group to fill: it is what
//! came while the one before was written. A save that is alone needs no savepoint.
//!
//! Whoever leads the slot runs this: a task that saves, or the writer's thread. See [`crate::engine::slot`].

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Span;

use crate::{
    engine::{
        access::Accesses,
        apply::{Keys, as_undone, is_long},
        block_on::block_on,
        busy,
        chunk::apply_chunk,
        connection::execute,
        core::Core,
        ffi::{MixedConnection, PlainConnection, data_version},
        history::{Changes, Rows},
        hooks::{Authorizer, Mark, Watch},
        recording::Recording,
        replay::Replay,
        save_record,
        slot::{End, Label, Lease, Running},
        sqlite_error::from_rusqlite,
        stamp,
        unit::{Savepoint, apply_once, number},
    },
    error::{Error, ErrorKind, Result},
    observe::span,
    sql::{Batch, Chunk, Receipt, Refusal},
};

/// What the writer makes of a batch.
pub(in crate::engine) type Answer = Result<Receipt, Refusal>;

/// The most statements in one commit, unless one save has more: some two milliseconds of work.
const MOST_STEPS: usize = 512;
/// By how many times its usual length the log may outgrow a checkpoint that is under way before commits are held up. A bulk
/// operation writes a log in some tens of milliseconds, and waits for each restart in the queue anyway.
const SAVE_LEAD: u32 = 2;
pub(in crate::engine) const CHUNK_LEAD: u32 = 8;
/// How long one leader goes on before it hands the slot to the next.
const LEAD: Duration = Duration::from_millis(2);
/// After another process committed: for how long the writer makes room for it, how often, and how long.
const MAKE_ROOM_FOR: Duration = Duration::from_secs(1);
const MAKE_ROOM_EVERY: u32 = 10;
pub(in crate::engine) const ROOM: Duration = Duration::from_millis(1);

/// The connections that write. Whoever holds the slot's lease locks it, so the lock is never contended.
#[derive(Debug)]
pub(in crate::engine) struct Writer {
    connection: PlainConnection,
    /// The connection of exclusive transactions, while none is open.
    pub(in crate::engine) mixed: Option<MixedConnection>,
    watch: Arc<Watch>,
    /// What statements read and write, for sessions.
    accesses: Accesses,
    /// What the units of the open transaction changed; nothing if there never was a session when it began.
    changes: Option<Changes>,
    /// The schema's version when the stamped tables were last looked up.
    schema: Option<i64>,
    /// The connection's data version after its last commit, or when it last looked around.
    seen: u32,
    /// Whether an exclusive transaction committed since.
    committed_elsewhere: bool,
    foreign_commit: Option<Instant>,
    in_a_row: u32,
    /// How often in a row another process was in the way.
    looks: u32,
    /// When the open transaction began.
    began: Instant,
}

/// What waits in the queue.
#[derive(Debug)]
pub(in crate::engine) struct Unit {
    pub(in crate::engine) work: Work,
    /// Room in a bounded queue, given back when the save is answered or withdrawn.
    pub(in crate::engine) _room: Option<OwnedSemaphorePermit>,
    /// What asked for it.
    pub(in crate::engine) span: Span,
}

/// What is to be done.
#[derive(Debug)]
pub(in crate::engine) enum Work {
    /// A save.
    Save(Batch),
    /// A session is to be validated, and what it did done.
    Session(Box<Recording>),
}

/// A unit in the hands of the writer.
type Save = Running<Unit, Answer>;

impl Writer {
    pub(in crate::engine) fn new(
        connection: PlainConnection,
        watch: Arc<Watch>,
        authorizer: Arc<Authorizer>,
    ) -> Result<Self> {
        let mut schema = None;
        stamp::load(&connection, &watch, &mut schema)?;
        Ok(Self {
            seen: data_version(&connection),
            connection,
            mixed: None,
            watch,
            accesses: Accesses::new(authorizer),
            changes: None,
            schema,
            committed_elsewhere: false,
            foreign_commit: None,
            in_a_row: 0,
            looks: 0,
            began: Instant::now(),
        })
    }

    /// Closes both connections, and returns when that is done.
    pub(in crate::engine) fn close(self) {
        if let Some(mixed) = self.mixed
            && let Err(error) = block_on(mixed.close())
        {
            tracing::warn!(error = %Error::from(error).in_log(), "the connection of exclusive transactions was not closed");
        }
    }

    /// Reads, and so recovers the log if that is needed.
    pub(in crate::engine) fn read(&self) -> Result<()> {
        self.connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
            .map_err(from_rusqlite)
    }

    /// The connection, for work under the slot that is no save.
    pub(in crate::engine) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// An exclusive transaction ended.
    pub(in crate::engine) fn committed_elsewhere(&mut self) {
        self.committed_elsewhere = true;
    }

    /// After BEGIN IMMEDIATE: whether somebody else committed since this connection did.
    pub(in crate::engine) fn look_around(&mut self, core: &Core) -> Result<()> {
        let version = data_version(&self.connection);
        if version == self.seen && self.schema.is_some() {
            return Ok(());
        }
        self.watch.forget_keys();
        if version != self.seen && !std::mem::take(&mut self.committed_elsewhere) {
            core.counters.foreign_commits.add(1);
            self.foreign_commit = Some(Instant::now());
        }
        // What is noticed now is not noticed again if the transaction comes to nothing.
        self.seen = version;
        stamp::load(&self.connection, &self.watch, &mut self.schema)
    }

    /// An exclusive transaction began, on the other connection: what this one knows may be out of date.
    pub(in crate::engine) fn begun_elsewhere(
        &mut self,
        core: &Core,
        connection: &Connection,
    ) -> Result<()> {
        core.statements.note(core.history.is_wanted());
        if core.history.wants_rows() {
            self.watch.note_rows();
        }
        self.watch.forget_keys();
        stamp::load(connection, &self.watch, &mut self.schema)
    }

    /// What an exclusive transaction changed, by the statements that it ran; asked when it is about to commit.
    pub(in crate::engine) fn changes_elsewhere(&mut self, core: &Core) -> Changes {
        let notes_rows = self.watch.notes_rows();
        let rows = self.watch.take_rows();
        let Some(texts) = core.statements.take() else {
            return Changes::Unknown;
        };
        let mut changes = Changes::default();
        if self.accesses.look_at_schema(&self.connection).is_err() {
            return Changes::Unknown;
        }
        for text in texts {
            let access = self.accesses.of(&self.connection, &text);
            changes.add_writes(access.as_deref(), notes_rows);
        }
        changes.add_noted(rows);
        changes
    }

    /// Tables were changed by this connection: what is known of them is looked up anew.
    pub(in crate::engine) fn look_at_schema(&mut self) -> Result<()> {
        self.schema = None;
        stamp::load(&self.connection, &self.watch, &mut self.schema)
    }

    /// Commits, and remembers what the file looks like then.
    pub(in crate::engine) fn commit(&mut self, core: &Core) -> Result<()> {
        if core.whereabouts.is_moved() {
            self.end_transaction(core);
            return Err(core.moved());
        }
        let changes = self.changes.take().unwrap_or(Changes::Unknown);
        let committed = commit(core, &self.connection, changes);
        self.seen = data_version(&self.connection);
        if committed.is_err() {
            self.end_transaction(core);
        }
        committed
    }

    /// Makes sure that no transaction is open, whatever happened: SQLite is asked, not a counter.
    pub(in crate::engine) fn end_transaction(&mut self, core: &Core) {
        self.watch.rewind(&Mark::default());
        if self.changes.take() == Some(Changes::Unknown) {
            // What was found of a schema that is undone.
            self.accesses.forget();
            self.schema = None;
        }
        if self.connection.is_autocommit() {
            return;
        }
        let rolled_back = execute(&self.connection, "ROLLBACK");
        if self.connection.is_autocommit() {
            return;
        }
        tracing::error!(
            error = rolled_back
                .err()
                .as_ref()
                .map(|error| tracing::field::display(error.in_log())),
            "the writer's transaction could not be rolled back; the database takes no more writes"
        );
        core.slot.end(End::Poisoned);
    }

    /// Whether another process should get its turn now.
    pub(in crate::engine) fn makes_room(&mut self) -> bool {
        self.in_a_row += 1;
        if self.in_a_row < MAKE_ROOM_EVERY {
            return false;
        }
        self.in_a_row = 0;
        self.foreign_commit
            .is_some_and(|commit| commit.elapsed() < MAKE_ROOM_FOR)
    }

    /// For how long nobody should write after this: so that a checkpoint comes along, or another process.
    pub(in crate::engine) fn pause(&mut self, core: &Core, lead: u32) -> Option<Duration> {
        let makes_room = self.makes_room();
        // A checkpoint syncs the disk, and commits do not: unchecked they would grow the log many times over.
        let times = core.wal_size.lead(lead).or(makes_room.then_some(1));
        times.map(|times| ROOM * times)
    }

    /// Applies saves together; returns those that could not begin since another process holds the lock.
    fn group(&mut self, core: &Core, saves: Vec<Save>) -> Vec<Save> {
        match self.begin(core) {
            Ok(true) => {
                for save in &saves {
                    let wait = save.waited(self.began);
                    core.counters.told.queued(wait);
                    if let Some(unit) = save.unit() {
                        span::set_wait(&unit.span, wait);
                    }
                }
            }
            Ok(false) => return saves,
            Err(error) => {
                fail_all(core, saves, &error);
                return Vec::new();
            }
        }
        match <[Save; 1]>::try_from(saves) {
            Ok([save]) => {
                self.alone(core, save);
                Vec::new()
            }
            Err(saves) => self.together(core, saves),
        }
    }

    /// BEGIN IMMEDIATE; false if another process is in the way.
    fn begin(&mut self, core: &Core) -> Result<bool> {
        self.began = Instant::now();
        core.look_again(&self.connection, self.began)?;
        match execute(&self.connection, "BEGIN IMMEDIATE") {
            Ok(()) => self.looks = 0,
            Err(error) if error.kind() == ErrorKind::Busy => {
                core.counters.busy.add(1);
                self.foreign_commit = Some(Instant::now());
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        let looked = self
            .look_around(core)
            .and_then(|()| self.look_for_sessions(core));
        if looked.is_err() {
            self.end_transaction(core);
        }
        looked.map(|()| true)
    }

    /// Once there was a session, it is noted what is changed.
    fn look_for_sessions(&mut self, core: &Core) -> Result<()> {
        self.changes = core.history.is_wanted().then(Changes::default);
        if self.changes.is_some() {
            self.accesses
                .look_at_schema(&self.connection)
                .map_err(from_rusqlite)?;
        }
        Ok(())
    }

    /// Does what a unit asks for. On an error the caller undoes it.
    fn run(&mut self, core: &Core, unit: &Unit) -> Answer {
        // Who leads runs what others asked for, too.
        let _entered = unit.span.enter();
        match &unit.work {
            Work::Save(batch) => self.save(core, batch),
            Work::Session(recording) => self.session(core, recording),
        }
    }

    /// Begins a transaction for chunks; false, and none, if it is not wanted by then. Blocks while another process is in
    /// the way: on a thread only.
    pub(in crate::engine) fn begin_chunks(
        &mut self,
        core: &Core,
        is_wanted: impl Fn() -> bool,
    ) -> Result<bool> {
        busy::retrying(core.options.busy_timeout, || {
            let has_begun = self.begin(core)?;
            if !is_wanted() {
                self.end_transaction(core);
                return Ok(false);
            }
            if has_begun {
                return Ok(true);
            }
            Err(Error::new(ErrorKind::Busy, "another process writes"))
        })
    }

    /// Applies a chunk in the open transaction; with others, of which the commit number is this if it has one already.
    #[allow(
        clippy::option_option,
        reason = "alone, or among others with or without a number"
    )]
    pub(in crate::engine) fn chunk(
        &mut self,
        core: &Core,
        chunk: &Chunk,
        among: Option<Option<i64>>,
    ) -> Answer {
        let narrator = core.narrator(Label::new("a bulk operation"), true);
        let is_alone = among.is_none();
        self.noting(core, [&chunk.text], |writer| {
            let mut receipt =
                apply_chunk(narrator, &writer.connection, &writer.watch, chunk, is_alone)?;
            let number = among.flatten();
            receipt.commit_seq = stamp::stamp_on(&writer.connection, &writer.watch, number)?;
            Ok(receipt)
        })
    }

    fn save(&mut self, core: &Core, batch: &Batch) -> Answer {
        let texts = batch.steps.iter().map(|step| &step.text);
        let answer = self.noting(core, texts, |writer| {
            apply_save(core, &writer.connection, batch)
        });
        if answer.is_ok()
            && batch.token.is_some()
            && let Some(changes) = &mut self.changes
        {
            changes.add_rows(save_record::NAME, &Rows::All);
        }
        answer
    }

    /// Runs these statements, and notes what they change if there are sessions that want to know.
    fn noting<'t>(
        &mut self,
        core: &Core,
        texts: impl IntoIterator<Item = &'t Arc<str>>,
        apply: impl FnOnce(&Self) -> Answer,
    ) -> Answer {
        if self.changes.is_none() {
            return apply(self);
        }
        let notes_rows = core.history.wants_rows();
        if notes_rows {
            self.watch.note_rows();
        }
        let answer = apply(self);
        let rows = self.watch.take_rows();
        let Some(changes) = &mut self.changes else {
            return answer;
        };
        if let Ok(receipt) = &answer {
            for text in texts {
                let access = self.accesses.of(&self.connection, text);
                changes.add_writes(access.as_deref(), notes_rows);
            }
            changes.add_noted(rows);
            if receipt.commit_seq.is_some() {
                self.note_stamps(notes_rows);
            }
        }
        answer
    }

    /// Stamping is an update of its own, with its triggers.
    fn note_stamps(&mut self, notes_rows: bool) {
        let Some(changes) = &mut self.changes else {
            return;
        };
        for text in stamp::texts(&self.watch, changes.tables()) {
            let access = self.accesses.of(&self.connection, &text.into());
            changes.add_writes(access.as_deref(), notes_rows);
        }
    }

    fn session(&mut self, core: &Core, recording: &Recording) -> Answer {
        let began = Instant::now();
        let span = span::merge(core.counters.told.namespace(), recording.size());
        let _entered = span.enter();
        // It was open when the transaction began, but for a bug that would lose conflicts.
        let group = self.changes.get_or_insert(Changes::Unknown);
        let replay = Replay::new(core, &self.connection, &mut self.accesses, recording, group);
        let notes_rows = replay.notes_rows();
        let replayed = replay.run();
        core.counters.replay(began.elapsed());
        match replayed {
            Ok((receipt, changes)) => {
                let changes_schema = changes == Changes::Unknown;
                group.add(&changes);
                if changes_schema {
                    self.look_at_schema()?;
                }
                if receipt.commit_seq.is_some() {
                    self.note_stamps(notes_rows);
                }
                Ok(receipt)
            }
            Err(refusal) => {
                if let Some(error) = refusal.error() {
                    span::set_error(&span, error.kind());
                    core.counters
                        .session_conflicts
                        .add(error.is_conflict().into());
                }
                Err(refusal)
            }
        }
    }

    /// The one save of the open transaction.
    fn alone(&mut self, core: &Core, save: Save) {
        let Some(unit) = save.unit() else { return };
        let applied = self.run(core, unit);
        let answer = match applied {
            Ok(receipt) => match self.commit(core) {
                Ok(()) => {
                    let now = Instant::now();
                    core.counters.group(1);
                    core.counters.waited(save.waited(now));
                    self.tell_commit(core, 1, now);
                    Ok(receipt)
                }
                Err(error) => Err(Refusal::Whole(error)),
            },
            Err(refusal) => {
                self.end_transaction(core);
                Err(unit.as_undone(&self.connection, refusal))
            }
        };
        if let Err(refusal) = &answer {
            refused(core, refusal);
        }
        save.answer(answer);
    }

    /// How long the transaction took that was committed now.
    fn tell_commit(&self, core: &Core, units: usize, now: Instant) {
        let took = now.saturating_duration_since(self.began);
        let narrator = core.narrator(Label::new("a save"), false);
        narrator.committed(units, took);
    }

    /// The saves of the open transaction, a savepoint each.
    fn together(&mut self, core: &Core, saves: Vec<Save>) -> Vec<Save> {
        let mut applied: Vec<(Save, Answer)> = Vec::with_capacity(saves.len());
        let mut saves = saves.into_iter();
        while let Some(save) = saves.next() {
            let Some(unit) = save.unit() else { continue };
            let answer = self.run_in_savepoint(core, unit);
            if !self.connection.is_autocommit() {
                applied.push((save, answer));
                continue;
            }
            // ON CONFLICT ROLLBACK, RAISE(ROLLBACK), a full disk: the whole transaction is gone, and with it what
            // the neighbours did. They run again, each alone; the culprit has its answer.
            self.end_transaction(core);
            if let Err(refusal) = &answer {
                refused(core, refusal);
            }
            save.answer(answer);
            let again = applied.into_iter().map(|(save, _)| save).chain(saves);
            return self.one_by_one(core, again.collect());
        }
        let committed = self.commit(core);
        match committed {
            Ok(()) => {
                let good = applied.iter().filter(|(_, answer)| answer.is_ok()).count();
                core.counters.group(good);
                let now = Instant::now();
                self.tell_commit(core, applied.len(), now);
                for (save, answer) in applied {
                    core.counters.waited(save.waited(now));
                    if let Err(refusal) = &answer {
                        refused(core, refusal);
                    }
                    save.answer(answer);
                }
            }
            // What was refused before is told why; for the others it is the commit that failed. Where it was a
            // neighbour that had saved the same already, that is undone as well.
            Err(error) => {
                core.counters.refused.add(applied.len() as u64);
                for (save, answer) in applied {
                    save.answer(match answer {
                        Err(refusal) if !is_already_saved(&refusal) => Err(refusal),
                        _ => Err(Refusal::Whole(error.copy())),
                    });
                }
            }
        }
        Vec::new()
    }

    /// The same as [`Writer::run`], and undoes it on an error.
    fn run_in_savepoint(&mut self, core: &Core, unit: &Unit) -> Answer {
        let savepoint = Savepoint::begin(&self.connection, &core.watch)?;
        let answer = self.run(core, unit);
        savepoint
            .end(&self.connection, &core.watch, answer)
            .map_err(|refusal| unit.as_undone(&self.connection, refusal))
    }

    fn one_by_one(&mut self, core: &Core, saves: Vec<Save>) -> Vec<Save> {
        let mut waiting = Vec::new();
        for save in saves {
            waiting.extend(self.group(core, vec![save]));
        }
        waiting
    }
}

impl Unit {
    /// How much it is, in statements.
    pub(in crate::engine) fn size(&self) -> usize {
        match &self.work {
            Work::Save(batch) => batch.steps.len() + usize::from(batch.token.is_some()),
            Work::Session(recording) => recording.size(),
        }
    }

    fn as_undone(&self, connection: &Connection, refusal: Refusal) -> Refusal {
        match &self.work {
            Work::Save(batch) => as_undone(connection, batch, refusal),
            Work::Session(_) => refusal,
        }
    }
}

/// Leads: applies what is queued, group by group, and passes the slot on.
pub(in crate::engine) fn lead(core: &Core, lease: Lease<Unit, Answer>) {
    let began = Instant::now();
    loop {
        let mut steps = 0;
        let saves = lease.take_units(|unit| {
            steps += unit.size();
            steps <= MOST_STEPS
        });
        if saves.is_empty() {
            return;
        }
        core.pace.took(saves.len());
        let mut writer = core.writer();
        let group = catch_unwind(AssertUnwindSafe(|| writer.group(core, saves)));
        let waiting = match group {
            Ok(waiting) => waiting,
            Err(panic) => {
                drop(panic);
                writer.poison(core);
                return;
            }
        };
        if !waiting.is_empty() {
            let pause = busy::pause(writer.looks);
            writer.looks += 1;
            drop(writer);
            let late = lease.put_back(waiting, pause, core.options.busy_timeout);
            for (save, waited) in late {
                core.counters.refused.add(1);
                save.answer(Err(Refusal::Whole(busy::outlasted(waited))));
            }
            return;
        }
        let pause = writer.pause(core, SAVE_LEAD);
        drop(writer);
        if let Some(pause) = pause {
            lease.pause(pause);
            return;
        }
        if began.elapsed() > LEAD {
            return;
        }
    }
}

/// Applies the batch of a save that is a transaction's only one, or one of a group.
fn apply_save(core: &Core, connection: &Connection, batch: &Batch) -> Answer {
    let retention = core.options.save_token_retention;
    // Others are short, and the clock is looked at for the commit.
    let narrator = core.narrator(Label::new("a save"), is_long(batch));
    let mut receipt = apply_once(
        narrator,
        connection,
        Keys::Writer(&core.watch),
        batch,
        retention,
    )?;
    receipt.commit_seq = number(connection, &core.watch, batch.token.as_slice())?;
    Ok(receipt)
}

/// A unit was not written.
fn refused(core: &Core, refusal: &Refusal) {
    core.counters.refused.add(1);
    let is_conflict = matches!(refusal, Refusal::Mismatches(_));
    core.counters.conflicts.add(is_conflict.into());
}

fn is_already_saved(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Whole(error) if error.kind() == ErrorKind::AlreadySaved)
}

/// COMMIT; an I/O error leaves open whether it took place.
pub(in crate::engine) fn commit(
    core: &Core,
    connection: &Connection,
    changes: Changes,
) -> Result<()> {
    let committed = execute(connection, "COMMIT");
    // Also if it failed: it may have taken place.
    core.history.committed(changes);
    committed.map_err(|error| {
        if error.kind() == ErrorKind::Io {
            core.is_undecided.store(true, Ordering::Relaxed);
            let code = error.sqlite_code().unwrap_or_default();
            return Error::new(
                ErrorKind::OutcomeUnknown,
                "the commit may or may not have taken place: look before trying again",
            )
            .with_code(code)
            .with_source(error);
        }
        error
    })
}

fn fail_all(core: &Core, saves: impl IntoIterator<Item = Save>, error: &Error) {
    for save in saves {
        core.counters.refused.add(1);
        save.answer(Err(Refusal::Whole(error.copy())));
    }
}
