//! Running reads: inline under a budget, or on a thread; all rows at once, or as a stream.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use futures_util::{StreamExt, stream};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    engine::{
        connection::{PresentRow, bind},
        core::Core,
        gate::SLOW,
        hooks::Run,
        pool::{Lent, Reader},
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
    sql::{Cost, Read, Rows},
};

/// How often SQLite may ask, every thousand steps, before an inline read moves to a thread.
const BUDGET: u32 = 8;
/// Rows that cross from a thread at once: few first, so that the first come soon.
const FIRST_PAGE: usize = 16;
const PAGE: usize = 256;
/// Pages that wait for the consumer of a stream.
const PAGES: usize = 2;

/// All items of a read.
pub(in crate::engine) async fn read<T: Send + 'static>(
    core: &Arc<Core>,
    read: Read<T>,
) -> Result<Vec<T>> {
    let lent = core.lend("a query").await?;
    let inline = read.cost == Cost::Small
        && core.runs_inline()
        && core.gate.is_open_for(&read.statement.text);
    if inline && let Some(items) = read_inline(core, &lent, &read)? {
        return Ok(items);
    }
    read_on_thread(core, lent, read).await
}

/// Runs a read on the present task; `None` if it is to run on a thread instead.
fn read_inline<T>(core: &Core, lent: &Lent, read: &Read<T>) -> Result<Option<Vec<T>>> {
    core.counters.reads_inline.add(1);
    let began = Instant::now();
    let _run = lent.progress.begin(Some(BUDGET));
    let outcome = collect(&lent.connection, read);
    if began.elapsed() > SLOW {
        core.counters.slow_inline.add(1);
        let number = core.counters.reads_inline.get();
        core.gate.was_slow(&read.statement.text, number);
    }
    match outcome {
        Ok(items) => Ok(Some(items)),
        Err(error) if error.kind() == ErrorKind::Interrupted && lent.progress.is_exhausted() => {
            core.counters.over_budget.add(1);
            Ok(None)
        }
        // Another process recovers the log, or closes it. A thread can wait.
        Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
        Err(error) => Err(error),
    }
}

async fn read_on_thread<T: Send + 'static>(
    core: &Arc<Core>,
    lent: Lent,
    read: Read<T>,
) -> Result<Vec<T>> {
    core.counters.reads_threaded.add(1);
    let run = lent.progress.begin(None);
    let _stop = StopOnDrop(run);
    let (answer, answered) = oneshot::channel();
    let timeout = core.options.busy_timeout;
    core.threads.run(move || {
        let outcome = waiting(&lent, timeout, |reader| collect(&reader.connection, &read));
        // The connection goes back before its user goes on: who reads next may take it.
        drop(lent);
        drop(answer.send(outcome));
    })?;
    answered.await.unwrap_or_else(|_| Err(lost()))
}

/// Stops the statement when whoever waits for it goes away.
struct StopOnDrop(Run);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a read on a thread, where it may wait for another process.
fn waiting<T>(
    reader: &Reader,
    timeout: std::time::Duration,
    run: impl FnOnce(&Reader) -> Result<T>,
) -> Result<T> {
    reader
        .connection
        .busy_timeout(timeout)
        .map_err(from_rusqlite)?;
    let outcome = run(reader);
    reader
        .connection
        .busy_timeout(std::time::Duration::ZERO)
        .map_err(from_rusqlite)?;
    outcome
}

/// Runs a read and makes its items.
pub(in crate::engine) fn collect<T>(connection: &Connection, read: &Read<T>) -> Result<Vec<T>> {
    let mut items = Vec::new();
    for_each(connection, read, |item| {
        items.push(item);
        true
    })?;
    Ok(items)
}

/// Runs a read and hands out each item, until `each` has enough.
fn for_each<T>(
    connection: &Connection,
    read: &Read<T>,
    mut each: impl FnMut(T) -> bool,
) -> Result<()> {
    let failed = |error: rusqlite::Error| {
        from_rusqlite(error).with_statement(read.statement.text.to_string())
    };
    let mut statement = connection
        .prepare_cached(&read.statement.text)
        .map_err(failed)?;
    bind(&mut statement, read.statement.args.iter())
        .map_err(|error| error.with_statement(read.statement.text.to_string()))?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        if !each((read.decode)(&PresentRow(row))?) {
            break;
        }
    }
    Ok(())
}

/// The items of a read as they arrive.
pub(in crate::engine) fn stream<T: Send + 'static>(core: &Arc<Core>, read: Read<T>) -> Rows<'_, T> {
    let start = async move {
        let lent = core.lend("a stream").await?;
        core.counters.reads_threaded.add(1);
        let stop = StopOnDrop(lent.progress.begin(None));
        let (send, receive) = mpsc::channel::<Result<Vec<T>>>(PAGES);
        let timeout = core.options.busy_timeout;
        core.threads.run(move || {
            let produced = catch_unwind(AssertUnwindSafe(|| {
                waiting(&lent, timeout, |reader| produce(reader, &read, &send))
            }));
            // The snapshot ends before the consumer learns of the end.
            drop(lent);
            match produced {
                Ok(Ok(())) => {}
                Ok(Err(error)) => drop(send.blocking_send(Err(error))),
                Err(_) => drop(send.blocking_send(Err(lost()))),
            }
        })?;
        Ok((receive, stop))
    };
    let pages = stream::once(start).flat_map(|started: Result<_>| match started {
        Ok(running) => pages(running).left_stream(),
        Err(error) => stream::iter([Err(error)]).right_stream(),
    });
    pages
        .flat_map(|page| match page {
            Ok(items) => stream::iter(items).map(Ok).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        })
        .boxed()
}

type Running<T> = (mpsc::Receiver<Result<Vec<T>>>, StopOnDrop);

fn pages<T: Send>(running: Running<T>) -> impl stream::Stream<Item = Result<Vec<T>>> + Send {
    stream::unfold(running, |(mut receive, stop)| async move {
        receive.recv().await.map(|page| (page, (receive, stop)))
    })
}

/// Sends pages until the rows or the consumer end.
fn produce<T: Send>(
    reader: &Reader,
    read: &Read<T>,
    send: &mpsc::Sender<Result<Vec<T>>>,
) -> Result<()> {
    let mut page = Vec::with_capacity(FIRST_PAGE);
    let mut size = FIRST_PAGE;
    for_each(&reader.connection, read, |item| {
        page.push(item);
        if page.len() < size {
            return true;
        }
        size = PAGE;
        let full = std::mem::replace(&mut page, Vec::with_capacity(PAGE));
        send.blocking_send(Ok(full)).is_ok()
    })?;
    if !page.is_empty() {
        drop(send.blocking_send(Ok(page)));
    }
    Ok(())
}

/// A job ended without an answer: its decoding panicked.
fn lost() -> Error {
    Error::new(
        ErrorKind::Interrupted,
        "the read ended without a result, for a panic while a row was decoded",
    )
}
