//! Backups: a copy of one state of the database, made while others write.
//!
//! SQLite's backup functions copy pages from a snapshot that is held until the last one, so that no commit makes them
//! begin anew. The copy has a name of its own until it was read back, checked and has reached the disk; then it is renamed. Whatever
//! goes wrong before, it is removed.

mod copy;
mod part;
mod target;
mod verify;

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use tokio::sync::{mpsc, oneshot};

use crate::{
    engine::{
        backup::{part::Part, target::Target},
        core::Core,
        long_read::{self, LongRead, stopped},
        room,
        slot::Label,
    },
    error::{Error, Result},
};

/// How a backup is made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BackupOptions {
    /// Whether a file that is there is replaced.
    pub(crate) replaces: bool,
    /// Whether free pages are left out.
    pub(crate) compacts: bool,
}

/// What a backup is at.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::engine::BackupStep;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # let path = db.path().with_file_name("backup.db");
/// let mut steps = Vec::new();
/// let backup = db.backup_to(&path).on_progress(|progress| {
///     steps.push(progress.step);
///     std::ops::ControlFlow::Continue(())
/// });
/// backup.await?;
/// assert_eq!(steps, [BackupStep::Copying, BackupStep::Verifying]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackupStep {
    /// It copies pages, and holds a snapshot of the database for it.
    Copying,
    /// It leaves out free pages. From here on the database is not needed any more.
    Compacting,
    /// It reads the copy back, and checks it.
    Verifying,
}

/// How far a backup is.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # let path = db.path().with_file_name("backup.db");
/// let backup = db.backup_to(&path).on_progress(|progress| {
///     println!("{:?}: {} of {} pages, {:?}", progress.step, progress.pages, progress.total, progress.elapsed);
///     std::ops::ControlFlow::Continue(())
/// });
/// backup.await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// What it is at.
    pub step: BackupStep,
    /// The pages that are copied.
    pub pages: u64,
    /// All pages of the database.
    pub total: u64,
    /// Since the beginning.
    pub elapsed: Duration,
}

/// A backup that is complete, checked, and on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Where it is: an absolute path, links resolved.
    pub path: PathBuf,
    /// Its pages.
    pub pages: u64,
    /// Its size.
    pub bytes: u64,
    /// Its tables, but for those of SQLite's own.
    pub tables: u64,
    /// The rows of all of them: as many as were in the database. Of a table that SQLite cannot read here they are not
    /// counted; [`unchecked`](Self::unchecked) names it.
    pub rows: u64,
    /// References that lead nowhere, a hundred at most: as in the database, where a program wrote them with foreign keys switched off.
    pub broken_references: u64,
    /// What of the copy could not be checked, and why, as [`Integrity::unchecked`](crate::engine::Integrity::unchecked) tells it
    /// of the database.
    pub unchecked: Vec<String>,
    /// From the beginning to the end.
    pub elapsed: Duration,
}

/// Told how far it is; decides whether it goes on.
pub(crate) type OnProgress<'p> = Box<dyn FnMut(BackupProgress) -> ControlFlow<()> + Send + 'p>;

/// Makes a backup. It is told of progress on the task that waits, and the thread waits for the answer meanwhile.
pub(in crate::engine) async fn run(
    core: &Arc<Core>,
    path: &Path,
    options: BackupOptions,
    label: Label,
    mut on_progress: Option<OnProgress<'_>>,
) -> Result<BackupReport> {
    let began = Instant::now();
    let named = |error: Error| error.between(&format!("backup to {}: ", path.display()), "");
    let target = Target::new(core, path, options.replaces).map_err(named)?;
    let (send, mut questions) = mpsc::channel(1);
    let teller = Teller {
        questions: on_progress.is_some().then_some(send),
        began,
    };
    let mut outcome = long_read::start(core, label, move |read| {
        Work {
            target,
            options,
            teller,
        }
        .run(read)
    })?;
    while let Some(on_progress) = &mut on_progress {
        let question = std::pin::pin!(questions.recv());
        match select(question, &mut outcome).await {
            Either::Left((Some(Question { progress, go_on }), _)) => {
                // What was stopped does not wait for the answer.
                let _ = go_on.send(on_progress(progress));
            }
            Either::Left((None, _)) => break,
            Either::Right((report, _)) => return report.map_err(named),
        }
    }
    outcome.await.map_err(named)
}

/// What the task is asked.
struct Question {
    progress: BackupProgress,
    go_on: oneshot::Sender<ControlFlow<()>>,
}

/// Tells the task how far it is.
struct Teller {
    questions: Option<mpsc::Sender<Question>>,
    began: Instant,
}

impl Teller {
    /// An error if it is not to go on, or nobody waits for it any more.
    fn tell(&self, step: BackupStep, pages: u64, total: u64) -> Result<()> {
        let Some(questions) = &self.questions else {
            return Ok(());
        };
        let progress = BackupProgress {
            step,
            pages,
            total,
            elapsed: self.began.elapsed(),
        };
        let (go_on, answer) = oneshot::channel();
        let question = Question { progress, go_on };
        let is_asked = questions.blocking_send(question).is_ok();
        match answer.blocking_recv() {
            Ok(ControlFlow::Continue(())) if is_asked => Ok(()),
            _ => Err(stopped()),
        }
    }
}

/// The work on the thread.
struct Work {
    target: Target,
    options: BackupOptions,
    teller: Teller,
}

impl Work {
    fn run(self, read: LongRead) -> Result<BackupReport> {
        let core = Arc::clone(read.core());
        read.begin()?;
        let total = copy::size(read.connection())?;
        let needed = if self.options.compacts {
            total.bytes.saturating_mul(2)
        } else {
            total.bytes
        };
        room::make_sure_of(needed, self.target.folder(), "the copy")?;
        let mut part = Part::new(&self.target, &core.location.path)?;
        copy::pages(&read, &part, |pages| {
            self.teller.tell(BackupStep::Copying, pages, total.pages)
        })?;
        let tables = verify::tables(read.connection())?;
        read.go_on()?;
        // The log may start anew from here on.
        let (progress, run) = read.close();
        let tell = |step| self.teller.tell(step, total.pages, total.pages);
        if self.options.compacts {
            tell(BackupStep::Compacting)?;
            part = copy::compact(&part, &self.target, &core.location.path, &progress)?;
        }
        tell(BackupStep::Verifying)?;
        let verified = verify::read_back(&part, &progress, &tables)?;
        if run.is_stopped() {
            return Err(stopped());
        }
        part.put_in_place(&self.target, &core)?;
        let counted: Vec<Option<u64>> = tables
            .iter()
            .filter(|(name, _)| !name.starts_with("sqlite_"))
            .map(|(_, rows)| *rows)
            .collect();
        Ok(BackupReport {
            path: self.target.path,
            pages: verified.size.pages,
            bytes: verified.size.bytes,
            tables: counted.len() as u64,
            rows: counted.iter().flatten().sum(),
            broken_references: verified.broken_references,
            unchecked: verified.unchecked,
            elapsed: self.teller.began.elapsed(),
        })
    }
}
