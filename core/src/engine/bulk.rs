//! A bulk operation: chunks of rows, written on a thread.
//!
//! The thread waits for its turn at the writer's slot with each chunk, as a save does, so that others pass between them;
//! or it holds the slot until the end, with a transaction for each chunk or one for all. Meanwhile the caller's task makes the next chunk, and one more may lie ready: the
//! thread never waits for a caller that is as fast.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::sync::mpsc;

use crate::{
    engine::{
        block_on::block_on,
        checkpoint::restart,
        core::Core,
        nested,
        passes::Pass,
        slot::{End, Label, Lease},
        submission::{Outcome, Submission},
        transaction::turn,
        writer::{Answer, Unit, Writer},
    },
    error::{Error, ErrorKind, Result},
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

/// Hands chunks to a thread that writes them, in order, until one fails. Dropped, it stops after the chunk at hand.
#[derive(Debug)]
pub(crate) struct BulkWriter {
    chunks: Option<mpsc::Sender<Chunk>>,
    answers: mpsc::UnboundedReceiver<Answer>,
    stopped: Arc<AtomicBool>,
}

impl BulkWriter {
    /// Starts the thread.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        hold: Hold,
        label: Label,
    ) -> Result<Self> {
        nested::refuse(Arc::as_ptr(&core).addr())?;
        let mut exclusive = match hold {
            Hold::Chunk => None,
            Hold::Slot | Hold::Transaction => {
                let is_atomic = hold == Hold::Transaction;
                Some(Exclusive::begin(&core, label, is_atomic).await?)
            }
        };
        let (chunks, mut waiting) = mpsc::channel(1);
        let (answer, answers) = mpsc::unbounded_channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let threads = Arc::clone(&core);
        let counted = Arc::clone(&core);
        threads.threads.run(move || {
            loop {
                let chunk = block_on(waiting.recv());
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let applied = match (chunk, &mut exclusive) {
                    (Some(chunk), Some(exclusive)) => exclusive.apply(&chunk),
                    (Some(chunk), None) => apply(&core, chunk),
                    (None, Some(exclusive)) if exclusive.is_open => {
                        drop(answer.send(exclusive.commit()));
                        return;
                    }
                    (None, _) => return,
                };
                let is_committed = exclusive.as_ref().is_none_or(|held| !held.is_atomic);
                if let (Ok(receipt), true) = (&applied, is_committed) {
                    counted.counters.bulk_rows.add(rows_of(receipt));
                }
                let failed = applied.is_err();
                if answer.send(applied).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self {
            chunks: Some(chunks),
            answers,
            stopped,
        })
    }

    /// Hands over a chunk, once there is room. Whether it was taken: no more are once one failed.
    pub(crate) async fn send(&self, chunk: Chunk) -> bool {
        match &self.chunks {
            Some(chunks) => chunks.send(chunk).await.is_ok(),
            None => false,
        }
    }

    /// Begins no further chunk; one that is being written is answered yet.
    pub(crate) fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
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

/// Applies a chunk in its turn.
fn apply(core: &Arc<Core>, chunk: Chunk) -> Answer {
    match block_on(Submission::of_chunk(Arc::clone(core), chunk).outcome()) {
        Outcome::Committed(receipt) => Ok(receipt),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::Withdrawn => Err(Refusal::Whole(Error::new(
            ErrorKind::Interrupted,
            "the rows were taken out of the queue before they were written",
        ))),
    }
}

/// Holds the slot. The checkpointer would wait for it in vain, so the log is moved here.
struct Exclusive {
    core: Arc<Core>,
    _lease: Lease<Unit, Answer>,
    /// From how many frames on the log is moved next.
    restart_at: u32,
    /// Whether all chunks are one transaction.
    is_atomic: bool,
    /// Whether it is open.
    is_open: bool,
    /// Its number, once it has one.
    commit_seq: Option<i64>,
    /// How many rows were written.
    rows: u64,
}

/// How many rows a chunk wrote.
fn rows_of(receipt: &Receipt) -> u64 {
    receipt.changed.iter().map(|(_, rows)| rows).sum()
}

impl Exclusive {
    async fn begin(core: &Arc<Core>, label: Label, is_atomic: bool) -> Result<Self> {
        let lease = turn(core, label).await?;
        core.wal_size.wake_at(u32::MAX);
        Ok(Self {
            core: Arc::clone(core),
            _lease: lease,
            restart_at: core.options.wal_autocheckpoint,
            is_atomic,
            is_open: false,
            commit_seq: None,
            rows: 0,
        })
    }

    fn apply(&mut self, chunk: &Chunk) -> Answer {
        self.guarded(|this, writer| {
            if !this.is_open {
                writer.begin_chunks(&this.core)?;
                this.is_open = true;
            }
            let receipt =
                writer.chunk(&this.core, chunk, this.is_atomic.then_some(this.commit_seq))?;
            this.commit_seq = receipt.commit_seq;
            this.rows += rows_of(&receipt);
            if !this.is_atomic {
                this.end(writer)?;
            }
            Ok(receipt)
        })
    }

    fn commit(&mut self) -> Answer {
        self.guarded(|this, writer| {
            this.end(writer)?;
            this.core.counters.bulk_rows.add(this.rows);
            Ok(Receipt::default())
        })
    }

    fn end(&mut self, writer: &mut Writer) -> Result<()> {
        let core = &*self.core;
        if self.is_atomic {
            core.look(writer.connection())?;
        }
        self.is_open = false;
        self.commit_seq = None;
        writer.commit(core)?;
        core.counters.group(1);
        // A pass that was under way may have set it.
        core.wal_size.wake_at(u32::MAX);
        let frames = core.wal_size.frames();
        if frames >= self.restart_at {
            core.counters.checkpoints_in_slot.add(1);
            // A reader may be in the way: not again before the log has grown by as much.
            let moved = restart(writer.connection()).is_ok_and(Pass::is_complete);
            let threshold = core.options.wal_autocheckpoint;
            self.restart_at = if moved { threshold } else { frames + threshold };
        }
        Ok(())
    }

    /// Works with the writer; what fails is undone.
    fn guarded(&mut self, work: impl FnOnce(&mut Self, &mut Writer) -> Answer) -> Answer {
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

impl Drop for Exclusive {
    fn drop(&mut self) {
        if self.is_open {
            self.core.writer().end_transaction(&self.core);
        }
        self.core
            .wal_size
            .wake_at(self.core.options.wal_autocheckpoint);
    }
}
