//! The connections of sessions, and whether there can be any.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    engine::{
        block_on::block_on,
        busy,
        core::Core,
        dual::{self, Particulars},
        ffi::{
            Hooks, MixedConnection, PageLimit,
            session_vfs::{SessionVfs, guard, supports_sessions},
        },
        hooks::{Authorizer, Draws, Watch},
        options::Options,
        pool::{Lent, Pool, Pooled},
        slot::Label,
        transaction::turn,
    },
    error::{Error, ErrorKind, Result},
    observe::PoolTold,
};

/// All session connections of a file.
#[derive(Debug)]
pub(in crate::engine) struct Sessions {
    pub(in crate::engine) pool: Arc<Pool<Place>>,
    /// Why there can be none, once that was found.
    unsupported: OnceLock<String>,
}

/// A place for a session; its connection is made at the first use.
#[derive(Debug, Default)]
pub(in crate::engine) struct Place(Option<SessionConnection>);

/// A connection through the VFS of sessions.
#[derive(Debug)]
pub(in crate::engine) struct SessionConnection {
    /// Taken out when it is closed.
    mixed: Option<MixedConnection>,
    /// Taken out then as well.
    instruments: Option<Arc<Instruments>>,
    /// What is known of texts that were sent through it.
    checked: HashMap<Arc<str>, Checked>,
}

/// What is known of a text.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Checked {
    pub(in crate::engine) text: Arc<str>,
    /// Whether SQLite takes it.
    pub(in crate::engine) is_taken: bool,
    /// Whether it writes nothing.
    pub(in crate::engine) reads_only: bool,
    /// Which argument each parameter takes, counted from 1.
    pub(in crate::engine) parameters: Arc<[usize]>,
}

/// More texts than this are not remembered.
const MOST_CHECKED: usize = 1024;

/// What listens to a session's connection.
#[derive(Debug)]
pub(in crate::engine) struct Instruments {
    pub(in crate::engine) vfs: SessionVfs,
    pub(in crate::engine) authorizer: Arc<Authorizer>,
    pub(in crate::engine) watch: Arc<Watch>,
    pub(in crate::engine) draws: Arc<Draws>,
    pub(in crate::engine) pages: Arc<PageLimit>,
}

impl Sessions {
    pub(in crate::engine) fn new(options: &Options, told: PoolTold) -> Self {
        let places = (0..options.sessions.count)
            .map(|_| Place::default())
            .collect();
        Self {
            pool: Arc::new(Pool::new(places, options.queue_timeout, told)),
            unsupported: OnceLock::new(),
        }
    }

    /// Whether it was found that there can be none.
    pub(in crate::engine) fn are_unsupported(&self) -> bool {
        self.unsupported.get().is_some()
    }

    /// Lends a connection; nothing if there can be none. Cancel safe.
    pub(in crate::engine) async fn lend(
        &self,
        core: &Arc<Core>,
        label: Label,
    ) -> Result<Option<Lent<Place>>> {
        if self.are_unsupported() {
            return Ok(None);
        }
        let mut lent = match self.pool.lend(label).await {
            Err(_) if core.whereabouts.is_moved() => return Err(core.moved()),
            lent => lent?,
        };
        if lent.0.is_none() {
            lent.0 = match self.connect(core).await {
                Err(error) if error.kind() == ErrorKind::Busy => self.connect_alone(core).await?,
                connected => connected?,
            };
        }
        Ok(lent.0.is_some().then_some(lent))
    }

    /// The same where commits come too fast for a connection to read the schema, or the log is to be recovered: with the
    /// writer's slot held, and again and again while other processes commit too. On a thread, for SQLite waits ten
    /// seconds for one that hangs in the middle of a commit.
    async fn connect_alone(&self, core: &Arc<Core>) -> Result<Option<SessionConnection>> {
        let lease = turn(core, Label::new("the connection of a session")).await?;
        let (answer, answered) = oneshot::channel();
        let owner = Arc::clone(core);
        core.threads.run(move || {
            let connected = busy::retrying(owner.options.busy_timeout, || {
                if answer.is_closed() {
                    return Err(lost());
                }
                owner.writer().read()?;
                block_on(owner.sessions.connect(&owner))
            });
            drop(lease);
            drop(answer.send(connected));
        })?;
        answered.await.map_err(|_| lost())?
    }

    /// Opens a connection; nothing if there can be none.
    async fn connect(&self, core: &Core) -> Result<Option<SessionConnection>> {
        let vfs = match SessionVfs::register() {
            Ok(vfs) => vfs,
            Err(reason) => return Ok(self.announce(core, &reason.to_string())),
        };
        let instruments = Arc::new(Instruments {
            vfs,
            authorizer: Arc::new(Authorizer::of_session()),
            watch: Arc::default(),
            draws: Arc::default(),
            pages: Arc::new(PageLimit::new(core.options.most_session_pages())),
        });
        let hooks = Hooks {
            watch: Some(Arc::clone(&instruments.watch)),
            authorizer: Some(Arc::clone(&instruments.authorizer)),
            pages: Some(Arc::clone(&instruments.pages)),
            ..Hooks::default()
        };
        let particulars = Particulars {
            vfs: instruments.vfs.name(),
            hooks,
            authorizer: &instruments.authorizer,
            watch: &instruments.watch,
            draws: &instruments.draws,
            // What a session changes stays in memory: nothing of it is ever written.
            pragmas: &[("cache_spill", "0")],
        };
        let mut connection = SessionConnection {
            mixed: Some(dual::connect(core, particulars).await?),
            instruments: Some(instruments),
            checked: HashMap::new(),
        };
        let view = connection.view()?;
        guard(view);
        match supports_sessions(view) {
            Ok(()) => Ok(Some(connection)),
            Err(reason) => Ok(self.announce(core, &reason.to_string())),
        }
    }

    /// Says, once, that `db.concurrent` runs one after the other here.
    fn announce(&self, core: &Core, reason: &str) -> Option<SessionConnection> {
        if self.unsupported.set(reason.to_owned()).is_ok() {
            tracing::warn!(
                path = %core.location.path.display(),
                reason,
                "sessions cannot run side by side on this file: they run as exclusive transactions"
            );
        }
        None
    }
}

impl Place {
    /// The connection, which there is in a place that was lent.
    pub(in crate::engine) fn connection(&mut self) -> Option<&mut SessionConnection> {
        self.0.as_mut()
    }

    /// What is known of a text.
    pub(in crate::engine) fn checked(&self, text: &str) -> Option<Checked> {
        self.0.as_ref()?.checked.get(text).cloned()
    }

    /// Remembers what was found of a text.
    pub(in crate::engine) fn remember(&mut self, checked: &Checked) {
        if let Some(SessionConnection { checked: known, .. }) = &mut self.0 {
            if known.len() >= MOST_CHECKED {
                known.clear();
            }
            known.insert(Arc::clone(&checked.text), checked.clone());
        }
    }
}

impl Pooled for Place {
    const NAME: &'static str = "place for a session";

    fn clean(&mut self) -> bool {
        let Some(connection) = &mut self.0 else {
            return true;
        };
        let is_ended = connection.view().is_ok_and(Connection::is_autocommit);
        if !is_ended {
            // It may have a transaction open, or its worker is lost.
            self.0 = None;
        }
        // The place stays: its next user makes another connection.
        true
    }
}

impl SessionConnection {
    pub(in crate::engine) fn mixed(&mut self) -> Option<&mut MixedConnection> {
        self.mixed.as_mut()
    }

    pub(in crate::engine) fn instruments(&self) -> Option<Arc<Instruments>> {
        self.instruments.clone()
    }

    fn view(&mut self) -> Result<&Connection> {
        let view = self.mixed.as_mut().and_then(MixedConnection::view);
        view.ok_or_else(lost)
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Closed, "the connection of a session is lost")
}

impl Drop for SessionConnection {
    fn drop(&mut self) {
        let Some(mixed) = self.mixed.take() else {
            return;
        };
        match block_on(mixed.close()) {
            // Nobody else has it: a session that is open has the whole connection.
            Ok(()) => {
                if let Some(instruments) = self.instruments.take().and_then(Arc::into_inner) {
                    instruments.vfs.release();
                }
            }
            Err(error) => {
                tracing::warn!(error = %Error::from(error).in_log(), "the connection of a session was not closed")
            }
        }
    }
}
