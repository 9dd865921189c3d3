//! Where a backup goes, and what may not be there.

use std::path::{Path, PathBuf};

use crate::{
    engine::{
        core::Core,
        location::{beside, check_path, file_id, spelled},
        open::is_open,
        options::Options,
    },
    error::{Error, ErrorKind, Result},
};

/// What SQLite has beside a database.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A path that may become a backup.
#[derive(Debug)]
pub(super) struct Target {
    /// Absolute, links resolved.
    pub(super) path: PathBuf,
    pub(super) replaces: bool,
}

impl Target {
    pub(super) fn new(core: &Core, path: &Path, replaces: bool) -> Result<Self> {
        let path = spelled(&check_path(path, &Options::default())?);
        let target = Self { path, replaces };
        target.refuse_the_database(core)?;
        target.check()?;
        Ok(target)
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Refuses what is there; asked again before the backup is put in its place.
    pub(super) fn check(&self) -> Result<()> {
        match self.path.symlink_metadata() {
            Ok(_) if !self.replaces => {
                return Err(refused("a file is there already; replace() replaces it"));
            }
            Ok(found) if !found.is_file() && !found.is_symlink() => {
                return Err(refused("it is no file"));
            }
            _ => {}
        }
        if is_open(&self.path) {
            return Err(refused(
                "it is a database that is open in this process: close it first",
            ));
        }
        for suffix in BESIDE {
            let rest = beside(&self.path, suffix);
            if rest.symlink_metadata().is_ok() {
                return Err(refused(&format!(
                    "{} is there, of a database that is in use or was not closed, and SQLite would take it for the \
                     backup's: open and close that database, or choose another name",
                    rest.display()
                )));
            }
        }
        Ok(())
    }

    /// Whatever name leads to it.
    fn refuse_the_database(&self, core: &Core) -> Result<()> {
        let database = &core.location.path;
        let is_there = std::iter::once("").chain(BESIDE).any(|suffix| {
            let file = beside(database, suffix);
            let same = file_id(&file).ok();
            file == self.path || (same.is_some() && same == file_id(&self.path).ok())
        });
        if is_there {
            return Err(refused("it is the database itself, or belongs to it"));
        }
        Ok(())
    }
}

pub(super) fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Refused, what.to_owned())
}
