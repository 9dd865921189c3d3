//! A bulk operation: chunks of rows, written on a thread.
//!
//! The thread takes a turn at the writer's slot for each chunk, so that saves pass between them, and no task has to write
//! rows of others; or it keeps the slot until the end, with a transaction for each chunk or one for all. Meanwhile the
//! caller's task makes the next chunk, and one more may lie ready: the thread never waits for a caller that is as fast.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use futures_util::future::{Either, select};
use rusqlite::Connection;
use tokio::sync::{mpsc, watch};

use crate::{
    engine::{
        back_pressure::BackPressure,
        block_on::block_on,
        checkpoint::restart,
        core::Core,
        nested,
        passes::Pass,
        slot::{End, Label, Lease},
        transaction::turn,
        writer::{Answer, CHUNK_LEAD, Unit, Writer},
    },
    error::Result,
    sql::{Chunk, Receipt, Refusal},
};

/// What a bulk operation keeps others from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing: each chunk is a transaction in the queue.
    Chunk,
    /// The slot is held; each chunk is a transaction.
    Slot,
    /// The slot is held, and all is one transaction.
    Transaction,
}

/// Hands chunks to a thread that writes them, in order, until one fails. Dropped, it stops after the chunk at hand; one
/// that has not begun is not written.
#[derive(Debug)]
pub(crate) struct BulkWriter {
    chunks: Option<mpsc::Sender<Chunk>>,
    answers: mpsc::UnboundedReceiver<Answer>,
    stopped: watch::Sender<bool>,
    /// The database of which it keeps the writer, if it does.
    keeps: Option<usize>,
}

impl BulkWriter {
    /// Starts the thread.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        hold: Hold,
        label: Label,
    ) -> Result<Self> {
        let database = Arc::as_ptr(&core).addr();
        nested::refuse(database)?;
        let kept = match hold {
            Hold::Chunk => None,
            Hold::Slot | Hold::Transaction => Some(Turn::begin(&core, label, hold).await?),
        };
        let (chunks, mut waiting) = mpsc::channel(1);
        let (answer, answers) = mpsc::unbounded_channel();
        let (stopped, stop) = watch::channel(false);
        let threads = Arc::clone(&core);
        let mut writing = Writing {
            core,
            label,
            kept,
            stop,
        };
        threads.threads.run(move || {
            loop {
                let chunk: Option<Chunk> = block_on(waiting.recv());
                let is_last = chunk.is_none();
                let answered = match chunk {
                    _ if *writing.stop.borrow() => None,
                    Some(chunk) => writing.chunk(&chunk),
                    None => writing.end(),
                };
                let Some(answered) = answered else { return };
                let failed = answered.is_err();
                if answer.send(answered).is_err() || failed || is_last {
                    return;
                }
            }
        })?;
        Ok(Self {
            chunks: Some(chunks),
            answers,
            stopped,
            keeps: (hold != Hold::Chunk).then_some(database),
        })
    }

    /// Asks the source for a row. If the writer is kept, the source must not wait for it.
    pub(crate) fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        match self.keeps {
            Some(database) => nested::asking_source(database, ask),
            None => ask(),
        }
    }

    /// Hands over a chunk, once there is room. Whether it was taken: no more are once one failed.
    pub(crate) async fn send(&self, chunk: Chunk) -> bool {
        match &self.chunks {
            Some(chunks) => chunks.send(chunk).await.is_ok(),
            None => false,
        }
    }

    /// Begins no further chunk; one that is being written is answered yet, and one that waits for its turn is not.
    pub(crate) fn stop(&mut self) {
        self.stopped.send_replace(true);
        self.chunks = None;
    }

    /// No more chunks come; those that were handed over are answered yet, and then the commit of a transaction for all.
    pub(crate) fn finish(&mut self) {
        self.chunks = None;
    }

    /// The answer to the next chunk, if it is there.
    pub(crate) fn try_answer(&mut self) -> Option<Result<Receipt, Refusal>> {
        self.answers.try_recv().ok()
    }

    /// The same, and wakes the task when it comes.
    pub(crate) fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Receipt, Refusal>>> {
        self.answers.poll_recv(context)
    }

    /// The answer to the next chunk; nothing when there is none to come.
    pub(crate) async fn answer(&mut self) -> Option<Result<Receipt, Refusal>> {
        self.answers.recv().await
    }
}

impl Drop for BulkWriter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread's side.
struct Writing {
    core: Arc<Core>,
    label: Label,
    /// The slot, where it is kept until the end.
    kept: Option<Turn>,
    stop: watch::Receiver<bool>,
}

impl Writing {
    /// Writes a chunk; no answer if it is no longer wanted when its turn comes.
    fn chunk(&mut self, chunk: &Chunk) -> Option<Answer> {
        if let Some(kept) = &mut self.kept {
            return kept.apply(chunk, &self.stop);
        }
        match self.turn()? {
            Ok(mut turn) => turn.apply(chunk, &self.stop),
            Err(error) => Some(Err(Refusal::Whole(error))),
        }
    }

    /// Waits for a turn, as long as it is wanted.
    fn turn(&self) -> Option<Result<Turn>> {
        let mut stop = self.stop.clone();
        let turn = pin!(Turn::begin(&self.core, self.label, Hold::Chunk));
        let stopped = pin!(stop.wait_for(|stopped| *stopped));
        match block_on(select(turn, stopped)) {
            Either::Left((turn, _)) => Some(turn),
            Either::Right(_) => None,
        }
    }

    /// No more chunks come: commits a transaction for all.
    fn end(&mut self) -> Option<Answer> {
        let kept = self.kept.as_mut()?;
        kept.is_open.then(|| kept.commit())
    }
}

/// A turn at the slot, for a chunk or for all of them. Where it is kept the checkpointer would wait for it in vain, so the
/// log is moved here.
struct Turn {
    core: Arc<Core>,
    hold: Hold,
    queued: Instant,
    /// Until it is over.
    lease: Option<Lease<Unit, Answer>>,
    /// From how many frames on the log is moved next.
    restart_at: u32,
    /// Made when it is needed first.
    back_pressure: Option<BackPressure>,
    /// Whether a transaction is open.
    is_open: bool,
    /// Its number, once it has one.
    commit_seq: Option<i64>,
    /// How many rows were written, and are not committed.
    rows: u64,
}

/// How many rows a chunk wrote.
fn rows_of(receipt: &Receipt) -> u64 {
    receipt.changed.iter().map(|(_, rows)| rows).sum()
}

impl Turn {
    async fn begin(core: &Arc<Core>, label: Label, hold: Hold) -> Result<Self> {
        let queued = Instant::now();
        let lease = turn(core, label).await?;
        if hold != Hold::Chunk {
            core.wal_size.wake_at(u32::MAX);
        }
        Ok(Self {
            core: Arc::clone(core),
            hold,
            queued,
            lease: Some(lease),
            restart_at: core.options.wal_autocheckpoint,
            back_pressure: None,
            is_open: false,
            commit_seq: None,
            rows: 0,
        })
    }

    fn is_atomic(&self) -> bool {
        self.hold == Hold::Transaction
    }

    /// Applies a chunk, unless it is stopped before its transaction has begun.
    fn apply(&mut self, chunk: &Chunk, stop: &watch::Receiver<bool>) -> Option<Answer> {
        let applied = self.guarded(|this, writer| {
            if !this.is_open && !writer.begin_chunks(&this.core, || !*stop.borrow())? {
                return Ok(None);
            }
            this.is_open = true;
            let among = this.is_atomic().then_some(this.commit_seq);
            let receipt = writer.chunk(&this.core, chunk, among)?;
            this.commit_seq = receipt.commit_seq;
            this.rows += rows_of(&receipt);
            if !this.is_atomic() {
                this.end(writer)?;
            }
            Ok(Some(receipt))
        });
        applied.transpose()
    }

    fn commit(&mut self) -> Answer {
        self.guarded(|this, writer| {
            this.end(writer)?;
            Ok(Receipt::default())
        })
    }

    fn end(&mut self, writer: &mut Writer) -> Result<()> {
        let core = &*self.core;
        if self.is_atomic() {
            core.look(writer.connection())?;
        }
        self.is_open = false;
        self.commit_seq = None;
        writer.commit(core)?;
        core.counters.group(1);
        core.counters.bulk_rows.add(std::mem::take(&mut self.rows));
        if self.hold == Hold::Chunk {
            core.counters.waited(self.queued.elapsed());
            return Ok(());
        }
        // A pass that was under way may have set it.
        core.wal_size.wake_at(u32::MAX);
        if core.wal_size.frames() >= self.restart_at {
            self.restart_log(writer.connection());
        }
        Ok(())
    }

    /// What fails here is no failure of what is committed.
    fn restart_log(&mut self, connection: &Connection) {
        let core = &*self.core;
        core.counters.checkpoints_in_slot.add(1);
        let known = self.back_pressure.take();
        let Ok(mut back_pressure) = known.map_or_else(|| BackPressure::new(connection), Ok) else {
            return;
        };
        let restarted = restart(connection);
        let restarted = back_pressure.hold_back(&self.core, connection, restarted);
        core.note_pass(restarted.as_ref().copied());
        self.restart_at = if restarted.is_ok_and(Pass::is_done) {
            core.options.wal_autocheckpoint
        } else {
            back_pressure.next_try(core)
        };
        self.back_pressure = Some(back_pressure);
    }

    /// Works with the writer; what fails is undone.
    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Writer) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let core = Arc::clone(&self.core);
        let mut writer = core.writer();
        let answer = catch_unwind(AssertUnwindSafe(|| work(self, &mut writer)));
        let Ok(answer) = answer else {
            self.is_open = false;
            writer.poison(&core);
            return Err(Refusal::Whole(core.ended(End::Poisoned)));
        };
        if answer.is_err() {
            self.is_open = false;
            writer.end_transaction(&core);
            core.counters.refused.add(1);
        }
        answer
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut writer = self.core.writer();
        if self.is_open {
            writer.end_transaction(&self.core);
        }
        if self.hold != Hold::Chunk {
            self.core
                .wal_size
                .wake_at(self.core.options.wal_autocheckpoint);
        } else if let Some(pause) = writer.pause(&self.core, CHUNK_LEAD)
            && let Some(lease) = self.lease.take()
        {
            drop(writer);
            lease.pause(pause);
        }
    }
}
