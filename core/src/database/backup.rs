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
///
/// ```
/// # use anabranch::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # let path = db.path().with_file_name("backup.db");
/// let report = db.backup_to(&path).compact().await?;
/// assert_eq!(report.bytes, std::fs::metadata(&path).unwrap().len());
/// # Ok(()) }
/// ```
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
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # let path = db.path().with_file_name("backup.db");
    /// db.backup_to(&path).await?;
    /// assert_eq!(db.backup_to(&path).await.unwrap_err().kind(), ErrorKind::Refused);
    /// db.backup_to(&path).replace().await?;
    /// # Ok(()) }
    /// ```
    pub const fn replace(mut self) -> Self {
        self.options.replaces = true;
        self
    }

    /// Leaves out free pages, as a VACUUM of the copy: the database itself stays as it is. Needs room for two copies
    /// meanwhile. In tables without an integer key rows may have other rowids.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
    /// # let path = db.path().with_file_name("backup.db");
    /// db.bulk_insert_optimized(items(10_000)).await?;
    /// Item::query().delete().execute(&db).await?;
    /// let report = db.backup_to(&path).compact().await?;
    /// assert!(report.pages < 10);
    /// # Ok(()) }
    /// ```
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
