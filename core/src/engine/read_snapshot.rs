//! Several queries on one state of the database.

use std::sync::Arc;

use futures_util::future::Either;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    engine::{
        core::Core,
        hold::Hold,
        hooks::Run,
        pool::{Lent, Reader},
        reader::{borrowing, lend_for_stream, read_inline, runs_inline, together_inline},
        slot::Label,
        sqlite_error::from_rusqlite,
        streaming,
    },
    error::{Error, ErrorKind, Result},
    sql::{Cost, Executor, Read, ReadTogether, Rows},
};

/// One state of the database, which only can be read: what others commit meanwhile is not in it.
///
/// [`Database::read`](crate::database::Database::read) gives one. It takes typed queries as `&mut *snapshot`, and has a
/// read connection for as long as it lives.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{engine::ReadSnapshot, error::Result};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// async fn report(snapshot: &mut ReadSnapshot) -> Result<(u64, Vec<Item>)> {
///     let count = Item::query().count(&mut *snapshot).await?;
///     Ok((count, Item::query().all(&mut *snapshot).await?)) // as many as were counted
/// }
/// let (count, items) = db.read(async |snapshot| report(snapshot).await).await?;
/// assert_eq!(count as usize, items.len());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ReadSnapshot {
    /// Where the connection lies between two statements, with the transaction open; it is ended when it goes back. There
    /// is none while a thread has it, and for good once nobody waited for that any more.
    hold: Arc<Hold>,
    /// Where it comes back from the thread of a stream.
    returning: Option<oneshot::Receiver<Lent>>,
    core: Arc<Core>,
}

impl ReadSnapshot {
    /// Waits for a connection, and takes the snapshot.
    pub(in crate::engine) async fn begin(core: Arc<Core>, label: Label) -> Result<Self> {
        let lent = core.lend_for_long(label).await?;
        let snapshot = Self {
            hold: Hold::of(&lent),
            returning: None,
            core,
        };
        if snapshot.core.runs_inline() {
            match begin(&lent) {
                // Another process recovers the log. A thread can wait.
                Err(error) if error.kind() == ErrorKind::Busy => {}
                begun => {
                    snapshot.hold.put(lent);
                    return begun.map(|()| snapshot);
                }
            }
        }
        snapshot.on_thread(lent, |reader, _| begin(reader)).await?;
        Ok(snapshot)
    }

    /// The connection, with the transaction open, for a statement that sees what the last one did. Waits for it, if a
    /// stream had it.
    async fn take(&mut self) -> Result<Lent> {
        if let Some(returning) = &mut self.returning {
            let returned = returning.await;
            self.returning = None;
            self.hold.put(returned.map_err(|_| gone())?);
        }
        if self.core.whereabouts.is_moved() {
            return Err(self.core.moved());
        }
        let lent = self.hold.take()?.ok_or_else(gone)?;
        match lent.in_transaction(lent.voice.untimed(), None).go_on() {
            Ok(()) => Ok(lent),
            Err(error) => {
                self.hold.put(lent);
                Err(error)
            }
        }
    }

    /// Runs work on a thread, which has the connection meanwhile.
    async fn on_thread<R: Send + 'static>(
        &self,
        lent: Lent,
        work: impl FnOnce(&Reader, &Run) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (lent, outcome) = borrowing(&self.core, lent, work).await;
        if let Some(lent) = lent {
            self.hold.put(lent);
        }
        self.hold.told(outcome)
    }

    /// Runs what can be run on this task; what cannot is left with the connection, for a thread.
    fn try_inline<R>(
        &self,
        lent: Lent,
        cost: Cost,
        run: impl FnOnce(&Core, &Reader) -> Result<Option<R>>,
    ) -> Result<Either<R, Lent>> {
        if !runs_inline(&self.core, cost) {
            return Ok(Either::Right(lent));
        }
        match run(&self.core, &lent) {
            Ok(None) => Ok(Either::Right(lent)),
            ran => {
                self.hold.put(lent);
                self.hold
                    .told(ran)
                    .map(|ran| ran.map(Either::Left))?
                    .ok_or_else(gone)
            }
        }
    }
}

/// Begins the transaction, and reads, for that is when the snapshot is taken.
fn begin(reader: &Reader) -> Result<()> {
    reader.end();
    let _run = reader.progress.begin(None);
    reader.begin()?;
    look(&reader.connection)
}

fn look(connection: &Connection) -> Result<()> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema)")
        .and_then(|mut look| look.query_row([], |_| Ok(())))
        .map_err(from_rusqlite)
}

fn gone() -> Error {
    Error::new(
        ErrorKind::TransactionEnded,
        "the snapshot ended, since one of its queries was dropped or panicked: begin it anew",
    )
}

impl<'c> Executor<'c> for &'c mut ReadSnapshot {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        let lent = self.take().await?;
        let here = self.try_inline(lent, read.cost, |core, reader| {
            read_inline(core, reader, &read)
        })?;
        match here {
            Either::Left(items) => Ok(items),
            Either::Right(lent) => {
                let work =
                    move |reader: &Reader, _: &Run| reader.collect(reader.voice.timed(), &read);
                self.on_thread(lent, work).await
            }
        }
    }

    async fn read_together<T: Send + 'static>(self, reads: ReadTogether<T>) -> Result<T> {
        let lent = self.take().await?;
        let here = self.try_inline(lent, reads.cost, |core, reader| {
            together_inline(core, reader, &reads)
        })?;
        let work = move |reader: &Reader, run: &Run| {
            (reads.work)(&mut reader.in_transaction(reader.voice.timed(), Some(run)))
        };
        match here {
            Either::Left(value) => Ok(value),
            Either::Right(lent) => self.on_thread(lent, work).await,
        }
    }

    /// A thread has the connection meanwhile; what comes next waits until it is back.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        streaming::items(async move {
            let lent = self.take().await?;
            let hold = Arc::clone(&self.hold);
            let (pages, returned, stop) = lend_for_stream(&self.core, lent, hold, read)?;
            self.returning = Some(returned);
            Ok((pages, stop))
        })
    }
}
