//! Running reads: inline under a budget, or on a thread; all rows at once, as a stream, or several reads together.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, oneshot};

use crate::{
    engine::{
        core::Core,
        gate::SLOW,
        hold::{Hold, too_old},
        hooks::Run,
        narrator::Narrator,
        pool::{Lent, Reader},
        reads::InTransaction,
        slot::Label,
        sqlite_error::from_rusqlite,
        streaming::{self, Pages, lost},
    },
    error::{Error, ErrorKind, Result},
    sql::{Cost, Read, ReadTogether, Reads, Rows, Statement},
    value::Row,
};

/// How often SQLite may ask, every thousand steps, before an inline read moves to a thread.
const BUDGET: u32 = 8;
/// All items of a read.
pub(in crate::engine) async fn read<T: Send + 'static>(
    core: &Arc<Core>,
    label: Label,
    read: Read<T>,
) -> Result<Vec<T>> {
    let lent = core.lend(label).await?;
    if runs_inline(core, read.cost)
        && let Some(items) = read_inline(core, &lent, &read)?
    {
        return Ok(items);
    }
    let work = move |reader: &Reader, _: &Run| reader.collect(reader.voice.timed(), &read);
    on_thread(core, lent, work).await
}

/// What becomes of several reads, all on one snapshot.
pub(in crate::engine) async fn read_together<T: Send + 'static>(
    core: &Arc<Core>,
    label: Label,
    reads: ReadTogether<T>,
) -> Result<T> {
    let lent = core.lend(label).await?;
    if runs_inline(core, reads.cost)
        && let Some(value) = snapshot_inline(core, &lent, &reads)?
    {
        return Ok(value);
    }
    let work = move |reader: &Reader, run: &Run| {
        reader.begin()?;
        let value = (reads.work)(&mut reader.in_transaction(reader.voice.timed(), Some(run)));
        reader.end();
        value
    };
    on_thread(core, lent, work).await
}

/// Whether a read of this cost may run on the present task.
pub(in crate::engine) fn runs_inline(core: &Core, cost: Cost) -> bool {
    cost == Cost::Small && core.runs_inline()
}

/// Runs a read on the present task; `None` if it is to run on a thread instead.
pub(in crate::engine) fn read_inline<T>(
    core: &Core,
    reader: &Reader,
    read: &Read<T>,
) -> Result<Option<Vec<T>>> {
    if !core.gate.is_open_for(&read.statement.text) {
        return Ok(None);
    }
    inline(core, reader, |inline| {
        let items = reader.collect(reader.voice.untimed(), read);
        inline.rows = items.as_ref().ok().map(|items| items.len() as u64);
        inline.saw(&read.statement, items.as_ref().err());
        items
    })
}

/// The same with several reads, in a transaction of their own.
fn snapshot_inline<T>(core: &Core, reader: &Reader, reads: &ReadTogether<T>) -> Result<Option<T>> {
    let _run = reader.progress.begin(None);
    reader.begin()?;
    let value = together_inline(core, reader, reads);
    reader.end();
    value
}

/// The same in the transaction that is open.
pub(in crate::engine) fn together_inline<T>(
    core: &Core,
    reader: &Reader,
    reads: &ReadTogether<T>,
) -> Result<Option<T>> {
    inline(core, reader, |inline| (reads.work)(inline))
}

/// Work on the present task, which moves to a thread if it takes too long or would have to wait.
struct Inline<'a> {
    core: &'a Core,
    reader: &'a Reader,
    /// The first statement, by which it is remembered whether the work is slow.
    first: Option<Arc<str>>,
    /// How many rows there were, where it is a single statement.
    rows: Option<u64>,
    /// It is to start anew on a thread, whatever it makes of being stopped here.
    moves: bool,
}

fn inline<'a, R>(
    core: &'a Core,
    reader: &'a Reader,
    work: impl FnOnce(&mut Inline<'a>) -> Result<R>,
) -> Result<Option<R>> {
    let mut inline = Inline {
        core,
        reader,
        first: None,
        rows: None,
        moves: false,
    };
    core.counters.reads_inline.add(1);
    let began = Instant::now();
    let _run = reader.progress.begin(Some(BUDGET));
    let outcome = work(&mut inline);
    let took = began.elapsed();
    if took > SLOW
        && let Some(first) = &inline.first
    {
        core.counters.slow_inline.add(1);
        let number = core.counters.reads_inline.get();
        core.gate.was_slow(first, number);
    }
    if inline.moves {
        return Ok(None);
    }
    if let Some(first) = &inline.first {
        let error = outcome.as_ref().err().map(Error::kind);
        reader.voice.untimed().took(first, took, inline.rows, error);
    }
    outcome.map(Some)
}

impl Inline<'_> {
    /// A statement came to its end, or to an error.
    fn saw(&mut self, statement: &Statement, error: Option<&Error>) {
        self.first
            .get_or_insert_with(|| Arc::clone(&statement.text));
        match error.map(Error::kind) {
            Some(ErrorKind::Interrupted) if self.reader.progress.is_exhausted() => {
                self.core.counters.over_budget.add(1);
                self.moves = true;
            }
            // Another process recovers the log, or closes it. A thread can wait.
            Some(ErrorKind::Busy) => self.moves = true,
            _ => {}
        }
    }
}

impl Reads for Inline<'_> {
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.moves |= self.first.is_none() && !self.core.gate.is_open_for(&statement.text);
        if self.moves {
            return Err(Error::new(
                ErrorKind::Interrupted,
                "the query starts anew on a thread",
            ));
        }
        let ran = self
            .reader
            .in_transaction(self.reader.voice.untimed(), None)
            .rows(statement, each);
        self.saw(statement, ran.as_ref().err());
        ran
    }
}

impl Reader {
    /// Runs a read and makes its items.
    pub(in crate::engine) fn collect<T>(
        &self,
        narrator: Narrator<'_>,
        read: &Read<T>,
    ) -> Result<Vec<T>> {
        streaming::collect(narrator, &self.connection, &self.authorizer, read)
    }

    /// The statements of the transaction that is open.
    pub(in crate::engine) fn in_transaction<'a>(
        &'a self,
        narrator: Narrator<'a>,
        run: Option<&'a Run>,
    ) -> InTransaction<'a> {
        InTransaction {
            narrator,
            connection: &self.connection,
            authorizer: &self.authorizer,
            run,
        }
    }
}

/// Runs work on a thread, where it may wait for another process; it is stopped when whoever waits for it goes away.
async fn on_thread<R: Send + 'static>(
    core: &Arc<Core>,
    lent: Lent,
    work: impl FnOnce(&Reader, &Run) -> Result<R> + Send + 'static,
) -> Result<R> {
    core.counters.reads_threaded.add(1);
    let hold = Hold::of(&lent);
    let run = lent.progress.begin(None);
    let _stop = StopOnDrop(run.clone());
    let (answer, answered) = oneshot::channel();
    let timeout = core.options.busy_timeout;
    core.threads.run(move || {
        let outcome = waiting(&lent, timeout, |reader| work(reader, &run));
        // The connection goes back before its user goes on: who reads next may take it.
        drop(lent);
        drop(answer.send(outcome));
    })?;
    hold.told(answered.await.unwrap_or_else(|_| Err(lost())))
}

/// The same with a connection that its user keeps: it comes back with the answer, unless the work panicked.
pub(in crate::engine) async fn borrowing<R: Send + 'static>(
    core: &Arc<Core>,
    lent: Lent,
    work: impl FnOnce(&Reader, &Run) -> Result<R> + Send + 'static,
) -> (Option<Lent>, Result<R>) {
    core.counters.reads_threaded.add(1);
    let run = lent.progress.begin(None);
    let _stop = StopOnDrop(run.clone());
    let (answer, answered) = oneshot::channel();
    let timeout = core.options.busy_timeout;
    let started = core.threads.run(move || {
        let outcome = waiting(&lent, timeout, |reader| work(reader, &run));
        // Not received: the connection goes back with the answer.
        drop(answer.send((lent, outcome)));
    });
    if let Err(error) = started {
        return (None, Err(error));
    }
    match answered.await {
        Ok((lent, outcome)) => (Some(lent), outcome),
        Err(_) => (None, Err(lost())),
    }
}

/// Stops the statement when whoever waits for it goes away.
pub(in crate::engine) struct StopOnDrop(Run);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs work on a thread, where it may wait for another process.
fn waiting<T>(
    reader: &Reader,
    timeout: Duration,
    run: impl FnOnce(&Reader) -> Result<T>,
) -> Result<T> {
    let patience = |timeout| {
        let set = reader.connection.busy_timeout(timeout);
        set.map_err(from_rusqlite)
    };
    patience(timeout)?;
    let outcome = catch_unwind(AssertUnwindSafe(|| run(reader)));
    patience(Duration::ZERO)?;
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The items of a read as they arrive.
pub(in crate::engine) fn stream<T: Send + 'static>(
    core: &Arc<Core>,
    label: Label,
    read: Read<T>,
) -> Rows<'_, T> {
    streaming::items(async move {
        let lent = core.lend_for_long(label).await?;
        let hold = Hold::of(&lent);
        let (receive, _, stop) = lend_for_stream(core, lent, hold, read)?;
        Ok((receive, stop))
    })
}

/// Has a thread send the rows of a read; the connection comes back when it is done, or goes back to its pool.
pub(in crate::engine) fn lend_for_stream<T: Send + 'static>(
    core: &Core,
    lent: Lent,
    hold: Arc<Hold>,
    read: Read<T>,
) -> Result<Streamed<T>> {
    core.counters.reads_threaded.add(1);
    let stop = StopOnDrop(lent.progress.begin(None));
    let timeout = core.options.busy_timeout;
    let produce = move |lent: &mut Lent, send: &Pages<T>| {
        let produced = waiting(lent, timeout, |reader| {
            let narrator = reader.voice.timed();
            streaming::produce(
                narrator,
                &reader.connection,
                &reader.authorizer,
                &read,
                |page| hold.waits_for(async { send.send(Ok(page)).await.is_ok() }),
            )
        });
        if hold.is_ended() {
            // Of a snapshot, whose next statement would be on another state.
            lent.end();
            return Err(too_old());
        }
        produced
    };
    let (receive, returned) = streaming::start(core, lent, produce)?;
    Ok((receive, returned, stop))
}

/// The pages of a stream, where its connection comes back, and what stops it.
pub(in crate::engine) type Streamed<T> = (
    mpsc::Receiver<Result<Vec<T>>>,
    oneshot::Receiver<Lent>,
    StopOnDrop,
);
