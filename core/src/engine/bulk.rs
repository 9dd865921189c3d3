//! A bulk operation: chunks of rows, each applied in a transaction of its own, on a thread.
//!
//! The thread waits for its turn at the writer's slot with each chunk, as a save does, so that others pass between them;
//! or it holds the slot until the end. Meanwhile the caller's task makes the next chunk, and one more may lie ready: the
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
        writer::{Answer, Unit},
    },
    error::{Error, ErrorKind, Result},
    sql::{Chunk, Receipt, Refusal},
};

/// Hands chunks to a thread that writes them, in order, until one fails. Dropped, it stops after the chunk at hand.
#[derive(Debug)]
pub(crate) struct BulkWriter {
    chunks: Option<mpsc::Sender<Chunk>>,
    answers: mpsc::UnboundedReceiver<Answer>,
    stopped: Arc<AtomicBool>,
}

impl BulkWriter {
    /// Starts the thread; with a label it holds the slot from now on.
    pub(in crate::engine) async fn begin(
        core: Arc<Core>,
        exclusive: Option<Label>,
    ) -> Result<Self> {
        nested::refuse(Arc::as_ptr(&core).addr())?;
        let mut exclusive = match exclusive {
            Some(label) => Some(Exclusive::begin(&core, label).await?),
            None => None,
        };
        let (chunks, mut waiting) = mpsc::channel(1);
        let (answer, answers) = mpsc::unbounded_channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let threads = Arc::clone(&core);
        threads.threads.run(move || {
            while let Some(chunk) = block_on(waiting.recv()) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let applied = match &mut exclusive {
                    Some(exclusive) => exclusive.apply(chunk),
                    None => apply(&core, chunk),
                };
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

    /// No more chunks come; those that were handed over are answered yet.
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
}

impl Exclusive {
    async fn begin(core: &Arc<Core>, label: Label) -> Result<Self> {
        let lease = turn(core, label).await?;
        core.wal_size.wake_at(u32::MAX);
        Ok(Self {
            core: Arc::clone(core),
            _lease: lease,
            restart_at: core.options.wal_autocheckpoint,
        })
    }

    fn apply(&mut self, chunk: Chunk) -> Answer {
        let core = &*self.core;
        let mut writer = core.writer();
        let applied = catch_unwind(AssertUnwindSafe(|| writer.chunk_alone(core, &chunk)));
        let Ok(applied) = applied else {
            writer.poison(core);
            return Err(Refusal::Whole(core.ended(End::Poisoned)));
        };
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
        applied
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.core
            .wal_size
            .wake_at(self.core.options.wal_autocheckpoint);
    }
}
