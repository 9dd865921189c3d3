//! `anabranch backup`.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    ops::ControlFlow,
    path::PathBuf,
};

use anabranch::{
    engine::{BackupProgress, BackupStep},
    error::{Error, ErrorKind, Result},
    prelude::Database,
};
use anabranch_migrations::log::Watch;
use clap::Args;

use crate::command::{note, print};

/// Copy a database to another file while others use it: one state, checked before it gets its name.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The database file, in mode WAL.
    file: PathBuf,
    /// Where to.
    target: PathBuf,
    /// Replace a file that is there.
    #[arg(long)]
    replace: bool,
    /// Leave out free pages.
    #[arg(long)]
    compact: bool,
}

impl Backup {
    pub(crate) fn run(self) -> Result<()> {
        // Opening it as a database would change its mode.
        if !Watch::new(&self.file)?.is_wal() {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{} is not in mode WAL, and a backup would make it so: if nobody has it open, copy the file",
                    self.file.display()
                ),
            ));
        }
        if !self.replace && self.target.symlink_metadata().is_ok() {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{} is there already: --replace replaces it",
                    self.target.display()
                ),
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| Error::new(ErrorKind::Io, "no runtime").with_source(error))?;
        let report = runtime.block_on(async {
            let db = Database::builder(self.file).create(false).open().await?;
            let mut backup = db.backup_to(self.target).on_progress(shown());
            if self.replace {
                backup = backup.replace();
            }
            if self.compact {
                backup = backup.compact();
            }
            let report = backup.await;
            if stderr().is_terminal() {
                note("");
            }
            let closed = db.close().await;
            report.and_then(|report| closed.map(|_| report))
        })?;
        if report.broken_references > 0 {
            note(
                "note: references lead nowhere, as in the database: `anabranch doctor` lists them",
            );
        }
        for unchecked in &report.unchecked {
            note(&format!("note: not checked: {unchecked}"));
        }
        print(&format!(
            "{}: {} row{} in {} table{}, {} bytes, {:.1?}",
            report.path.display(),
            report.rows,
            if report.rows == 1 { "" } else { "s" },
            report.tables,
            if report.tables == 1 { "" } else { "s" },
            report.bytes,
            report.elapsed
        ))
        .map(drop)
    }
}

/// Shows progress on standard error: on one line in a terminal, else a line for each step.
fn shown() -> impl FnMut(BackupProgress) -> ControlFlow<()> + Send {
    let mut last = None;
    move |progress| {
        let step = match progress.step {
            BackupStep::Copying => "copying",
            BackupStep::Compacting => "compacting",
            _ => "verifying",
        };
        let percent = progress.pages * 100 / progress.total.max(1);
        if stderr().is_terminal() {
            let total = progress.total;
            // What cannot be shown is not needed.
            drop(write!(
                stderr(),
                "\r{step:<10} {percent:>3} % of {total} pages"
            ));
        } else if last.replace(step) != Some(step) {
            note(&format!("{step} {} pages", progress.total));
        }
        ControlFlow::Continue(())
    }
}
