//! Streams: the rows of a read cross from a thread in pages, few of which wait for who takes them.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
};

use futures_util::{StreamExt, stream};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    engine::{
        connection::PresentRow,
        core::Core,
        hooks::Authorizer,
        narrator::{Narrator, Telling},
        reads::{Stopped, each_row_told},
    },
    error::{Error, ErrorKind, Result},
    sql::{Read, Rows},
};

/// Rows that cross from a thread at once: few first, so that the first come soon.
const FIRST_PAGE: usize = 16;
const PAGE: usize = 256;
/// Pages that wait for the consumer of a stream.
const PAGES: usize = 2;

/// Where pages are sent to.
pub(in crate::engine) type Pages<T> = mpsc::Sender<Result<Vec<T>>>;

/// The pages of a stream that runs, and what belongs to it.
pub(in crate::engine) type Running<T, S> = (mpsc::Receiver<Result<Vec<T>>>, S);

/// Has a thread send the pages of a read, while it holds what has the connection; that comes back when there are no more
/// rows, when the consumer is gone, and after an error. If nobody waits for it, it is dropped.
pub(in crate::engine) fn start<T: Send + 'static, H: Send + 'static>(
    core: &Core,
    mut held: H,
    produce: impl FnOnce(&mut H, &Pages<T>) -> Result<()> + Send + 'static,
) -> Result<Running<T, oneshot::Receiver<H>>> {
    let (send, receive) = mpsc::channel(PAGES);
    let (back, returned) = oneshot::channel();
    core.threads.run(move || {
        let produced = catch_unwind(AssertUnwindSafe(|| produce(&mut held, &send)));
        // The statement has ended before the consumer learns of it.
        drop(back.send(held));
        match produced {
            Ok(Ok(())) => {}
            Ok(Err(error)) => drop(send.blocking_send(Err(error))),
            Err(_) => drop(send.blocking_send(Err(lost()))),
        }
    })?;
    Ok((receive, returned))
}

/// The items of pages that come once the stream is started.
pub(in crate::engine) fn items<'c, T: Send + 'static, S: Send + 'c>(
    start: impl Future<Output = Result<Running<T, S>>> + Send + 'c,
) -> Rows<'c, T> {
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

fn pages<T: Send, S: Send>(
    running: Running<T, S>,
) -> impl stream::Stream<Item = Result<Vec<T>>> + Send {
    stream::unfold(running, |(mut receive, stop)| async move {
        receive.recv().await.map(|page| (page, (receive, stop)))
    })
}

/// Sends pages until the rows or the consumer end.
pub(in crate::engine) fn produce<T: Send>(
    narrator: Narrator<'_>,
    connection: &Connection,
    authorizer: &Authorizer,
    read: &Read<T>,
    mut send: impl FnMut(Vec<T>) -> bool,
) -> Result<()> {
    let mut page = Vec::with_capacity(FIRST_PAGE);
    let mut size = FIRST_PAGE;
    let telling = narrator.begin(&read.statement.text);
    let ended = for_each(&telling, connection, authorizer, read, |item| {
        page.push(item);
        if page.len() < size {
            return true;
        }
        size = PAGE;
        let full = std::mem::replace(&mut page, Vec::with_capacity(PAGE));
        telling.paused(|| send(full))
    });
    told(telling, ended, read)?;
    if !page.is_empty() {
        send(page);
    }
    Ok(())
}

/// Runs a read and hands out each item, until `each` has enough.
fn for_each<T>(
    telling: &Telling<'_>,
    connection: &Connection,
    authorizer: &Authorizer,
    read: &Read<T>,
    mut each: impl FnMut(T) -> bool,
) -> Result<(), Stopped> {
    let decoded = |row: &PresentRow<'_, '_>, _| Ok(each((read.decode)(row)?));
    each_row_told(telling, connection, authorizer, &read.statement, decoded)
}

/// Runs a read and makes its items.
pub(in crate::engine) fn collect<T>(
    narrator: Narrator<'_>,
    connection: &Connection,
    authorizer: &Authorizer,
    read: &Read<T>,
) -> Result<Vec<T>> {
    let mut items = Vec::new();
    let telling = narrator.begin(&read.statement.text);
    let ended = for_each(&telling, connection, authorizer, read, |item| {
        items.push(item);
        true
    });
    told(telling, ended, read)?;
    Ok(items)
}

fn told<T>(telling: Telling<'_>, ended: Result<(), Stopped>, read: &Read<T>) -> Result<()> {
    telling.end(ended.as_ref().err().map(Stopped::kind));
    ended.map_err(|stopped| stopped.into_error(&read.statement))
}

/// A job ended without an answer: its decoding panicked.
pub(in crate::engine) fn lost() -> Error {
    Error::new(
        ErrorKind::Interrupted,
        "the read ended without a result, for a panic while a row was decoded",
    )
}
