//! What an exclusive transaction holds: the slot's lease and a connection. Neither is ever let go of with a
//! transaction open.

use std::{future::poll_fn, sync::Arc};

use rusqlite::Connection;

use crate::{
    engine::{
        block_on::block_on,
        connection::execute,
        core::Core,
        dual::{self, Particulars},
        exchange::Holds,
        ffi::{Hooks, MixedConnection},
        hooks::Mark,
        nested,
        slot::{Label, Lease, Ticket},
        submission::unserved_error,
        writer::{Answer, ROOM, Unit},
    },
    error::{Error, Result},
};

/// A lease and a connection, undone and given back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    core: Arc<Core>,
    /// Both `None` once given back.
    connection: Option<MixedConnection>,
    lease: Option<Lease<Unit, Answer>>,
}

/// A place in the queue, given up when dropped.
struct Queued<'a> {
    core: &'a Arc<Core>,
    ticket: Arc<Ticket<Unit, Answer>>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.core.slot.withdraw(&self.ticket);
    }
}

/// Waits for a turn. Cancel safe: dropped, the place in the queue is given up.
pub(in crate::engine) async fn turn(core: &Arc<Core>, label: Label) -> Result<Lease<Unit, Answer>> {
    nested::refuse(Arc::as_ptr(core).addr())?;
    let queued = Queued {
        core,
        ticket: core
            .slot
            .request_turn(label)
            .map_err(|end| core.ended(end))?,
    };
    poll_fn(|context| core.slot.poll_turn(&queued.ticket, context))
        .await
        .map_err(|unserved| unserved_error(core, &unserved))
}

impl Held {
    /// Waits for the slot, and takes the connection, made at the first use.
    pub(super) async fn acquire(core: &Arc<Core>, label: Label) -> Result<Self> {
        let lease = turn(core, label).await?;
        core.look(core.writer().connection())?;
        let kept = core.writer().mixed.take();
        let connection = match kept {
            Some(connection) => connection,
            None => connect(core).await?,
        };
        Ok(Self {
            core: Arc::clone(core),
            connection: Some(connection),
            lease: Some(lease),
        })
    }

    /// Gives both back after the transaction has ended.
    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            keep_if_ended(&self.core, connection);
        }
        if let Some(lease) = self.lease.take()
            && self.core.writer().makes_room()
        {
            lease.pause(ROOM);
        }
    }
}

impl Holds for Held {
    fn connection(&mut self) -> Option<&mut MixedConnection> {
        self.connection.as_mut()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(connection), Some(lease)) = (self.connection.take(), self.lease.take()) else {
            return;
        };
        let core = Arc::clone(&self.core);
        lease.relabel(Label::new("the roll-back of a dropped transaction"));
        let mut undo = Undo {
            core,
            connection: Some(connection),
            _lease: lease,
        };
        let threads = Arc::clone(&self.core);
        // Without a thread to be had the job is dropped right here, which does the same on this one.
        if let Err(error) = threads.threads.run(move || undo.run()) {
            tracing::error!(error = %error.in_log(), "a dropped transaction was rolled back on the task that dropped it");
        }
    }
}

/// The end of a dropped transaction.
struct Undo {
    core: Arc<Core>,
    connection: Option<MixedConnection>,
    /// Passed on when all is done.
    _lease: Lease<Unit, Answer>,
}

impl Undo {
    fn run(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        if let Err(error) = block_on(connection.stop()) {
            tracing::error!(error = %Error::from(error).in_log(), "the connection of a dropped transaction is lost");
            return;
        }
        match connection.view() {
            Some(view) if !view.is_autocommit() => {
                self.core.counters.rolled_back.add(1);
                if let Err(error) = self.core.authorizer.ours(|| execute(view, "ROLLBACK")) {
                    tracing::error!(error = %error.in_log(), "a dropped transaction could not be rolled back");
                }
            }
            // Its COMMIT may have been under way when it was dropped.
            _ => self.core.writer().committed_elsewhere(),
        }
        self.core.watch.rewind(&Mark::default());
        keep_if_ended(&self.core, connection);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.run();
    }
}

/// Keeps a connection for the next transaction, unless SQLite says that one is still open on it.
fn keep_if_ended(core: &Core, mut connection: MixedConnection) {
    if connection.view().is_some_and(Connection::is_autocommit) {
        core.writer().mixed = Some(connection);
    }
}

/// Opens the connection of exclusive transactions.
async fn connect(core: &Core) -> Result<MixedConnection> {
    let hooks = Hooks {
        watch: Some(Arc::clone(&core.watch)),
        wal_size: Some(Arc::clone(&core.wal_size)),
        progress: None,
        pages: None,
        statements: Some(Arc::clone(&core.statements)),
        authorizer: Some(Arc::clone(&core.authorizer)),
    };
    let particulars = Particulars {
        vfs: core.vfs.name(),
        hooks,
        authorizer: &core.authorizer,
        watch: &core.watch,
        draws: &core.draws,
        pragmas: &[],
    };
    dual::connect(core, particulars).await
}
