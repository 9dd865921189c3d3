//! A backup that is being described.

use std::{
    fmt,
    future::{Future, IntoFuture},
    ops::ControlFlow,
    panic::Location,
    path::PathBuf,
    pin::Pin,
};

use crate::{
    engine::{BackupOptions, BackupProgress, BackupReport, Engine, OnProgress},
    error::Result,
};

/// A backup that is being described; awaiting it makes it. See [`Database::backup_to`](super::Database::backup_to).
#[must_use = "a backup is made when it is awaited"]
pub struct Backup<'p> {
    engine: Engine,
    at: &'static Location<'static>,
    path: PathBuf,
    options: BackupOptions,
    on_progress: Option<OnProgress<'p>>,
}

impl<'p> Backup<'p> {
    pub(super) fn new(engine: Engine, at: &'static Location<'static>, path: PathBuf) -> Self {
        Self {
            engine,
            at,
            path,
            options: BackupOptions::default(),
            on_progress: None,
        }
    }

    /// Replaces a file that is there, at once, when the backup is complete and checked: there always is a whole one. A
    /// database that is open, or beside which a log lies, is not replaced.
    pub const fn replace(mut self) -> Self {
        self.options.replaces = true;
        self
    }

    /// Leaves out free pages, as a VACUUM of the copy: the database itself stays as it is. Needs room for two copies
    /// meanwhile. In tables without an integer key rows may have other rowids.
    pub const fn compact(mut self) -> Self {
        self.options.compacts = true;
        self
    }

    /// Calls this as the backup goes on, after each megabyte, on the calling task; the backup waits until it has returned.
    /// `ControlFlow::Break` stops it, with an error of kind `Interrupted`, and nothing of it stays.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use std::ops::ControlFlow;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # let folder = db.path().parent().unwrap();
    /// let copied = db
    ///     .backup_to(folder.join("copy.db"))
    ///     .on_progress(|progress| {
    ///         println!("{:?}: {} of {} pages", progress.step, progress.pages, progress.total);
    ///         ControlFlow::Continue(())
    ///     })
    ///     .await?;
    /// assert!(copied.pages > 0);
    /// # Ok(()) }
    /// ```
    pub fn on_progress(
        mut self,
        progress: impl FnMut(BackupProgress) -> ControlFlow<()> + Send + 'p,
    ) -> Self {
        self.on_progress = Some(Box::new(progress));
        self
    }
}

impl<'p> IntoFuture for Backup<'p> {
    type Output = Result<BackupReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'p>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.engine
                .backup(&self.path, self.options, self.at, self.on_progress)
                .await
        })
    }
}

impl fmt::Debug for Backup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup")
            .field("path", &self.path)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
