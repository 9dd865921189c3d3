//! Several queries on one state of the database.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    engine::{
        core::Core,
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
    /// With the transaction open; it is ended when it goes back. `None` while a thread has it, and for good once nobody
    /// waited for that any more.
    lent: Option<Lent>,
    /// Where it comes back from the thread of a stream.
    returning: Option<oneshot::Receiver<Lent>>,
    core: Arc<Core>,
}

impl ReadSnapshot {
    /// Waits for a connection, and takes the snapshot.
    pub(in crate::engine) async fn begin(core: Arc<Core>, label: Label) -> Result<Self> {
        let lent = core.lend_for_long(label).await?;
        let mut snapshot = Self {
            lent: Some(lent),
            returning: None,
            core,
        };
        if snapshot.core.runs_inline() {
            match begin(snapshot.reader()?) {
                // Another process recovers the log. A thread can wait.
                Err(error) if error.kind() == ErrorKind::Busy => {}
                begun => return begun.map(|()| snapshot),
            }
        }
        snapshot.on_thread(|reader, _| begin(reader)).await?;
        Ok(snapshot)
    }

    /// Waits for the connection, if a stream had it.
    async fn take_back(&mut self) -> Result<()> {
        if let Some(returning) = &mut self.returning {
            let returned = returning.await;
            self.returning = None;
            self.lent = Some(returned.map_err(|_| gone())?);
        }
        Ok(())
    }

    /// The connection, with the transaction open.
    fn reader(&self) -> Result<&Reader> {
        self.lent.as_deref().ok_or_else(gone)
    }

    /// Makes sure that the next statement sees what the last one did.
    fn go_on(&self) -> Result<&Reader> {
        if self.core.whereabouts.is_moved() {
            return Err(self.core.moved());
        }
        let reader = self.reader()?;
        reader.in_transaction(None).go_on()?;
        Ok(reader)
    }

    /// Runs work on a thread, which has the connection meanwhile.
    async fn on_thread<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Reader, &Run) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let lent = self.lent.take().ok_or_else(gone)?;
        let (lent, outcome) = borrowing(&self.core, lent, work).await;
        self.lent = lent;
        outcome
    }

    /// What can be had on this task; `None` if it is for a thread.
    fn try_inline<R>(
        &self,
        cost: Cost,
        run: impl FnOnce(&Core, &Reader) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let reader = self.go_on()?;
        if runs_inline(&self.core, cost) {
            return run(&self.core, reader);
        }
        Ok(None)
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
        self.take_back().await?;
        let here = self.try_inline(read.cost, |core, reader| read_inline(core, reader, &read))?;
        match here {
            Some(items) => Ok(items),
            None => self.on_thread(move |reader, _| reader.collect(&read)).await,
        }
    }

    async fn read_together<T: Send + 'static>(self, reads: ReadTogether<T>) -> Result<T> {
        self.take_back().await?;
        let here = self.try_inline(reads.cost, |core, reader| {
            together_inline(core, reader, &reads)
        })?;
        let work =
            move |reader: &Reader, run: &Run| (reads.work)(&mut reader.in_transaction(Some(run)));
        match here {
            Some(value) => Ok(value),
            None => self.on_thread(work).await,
        }
    }

    /// A thread has the connection meanwhile; what comes next waits until it is back.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        streaming::items(async move {
            self.take_back().await?;
            self.go_on()?;
            let lent = self.lent.take().ok_or_else(gone)?;
            let (pages, returned, stop) = lend_for_stream(&self.core, lent, read)?;
            self.returning = Some(returned);
            Ok((pages, stop))
        })
    }
}
