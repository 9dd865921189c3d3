//! Where a backup goes, and what may not be there.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{
    engine::{
        core::Core,
        location::{LONGEST, beside, cannot_open, check_path, file_id, spelled},
        open::is_open,
        options::Options,
    },
    error::{Error, ErrorKind, Result},
};

/// What SQLite has beside a database.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The longest name that a folder takes, less room for what SQLite adds to it.
const LONGEST_NAME: usize = 255 - "-journal".len();
/// What the name of a partial file has beside its stem: six letters that are drawn.
const PARTIAL: usize = ".".len() + 6 + ".partial".len();

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
        target.refuse_what_is_too_long()?;
        target.refuse_the_database(core)?;
        target.check()?;
        Ok(target)
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// How the name begins under which it is written: with as much of its own as leaves room for the rest.
    pub(super) fn stem(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let folder = self.folder().as_os_str().len() + 1;
        let room = LONGEST_NAME.min(LONGEST.saturating_sub(folder));
        let end = name.floor_char_boundary(room.saturating_sub(PARTIAL));
        name[..end].to_owned()
    }

    /// What would fail only at the end, when all is copied.
    fn refuse_what_is_too_long(&self) -> Result<()> {
        let name = self.path.file_name().unwrap_or_default().len();
        let folder = self.folder().as_os_str().len() + 1;
        if name > LONGEST_NAME || folder + PARTIAL > LONGEST {
            return Err(cannot_open(format!(
                "its name has {name} bytes, and its folder {folder}: SQLite takes no more than {LONGEST_NAME}, and {} with what a \
                 backup has to its name until it is complete",
                LONGEST - PARTIAL
            )));
        }
        Ok(())
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
        self.refuse_the_name_of_a_log()?;
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

    /// Whoever opens the database of that name would have SQLite remove the backup.
    fn refuse_the_name_of_a_log(&self) -> Result<()> {
        let name = self.path.file_name().and_then(OsStr::to_str);
        let whose = BESIDE
            .into_iter()
            .filter_map(|suffix| name?.strip_suffix(suffix))
            .map(|name| self.path.with_file_name(name))
            .find(|whose| whose.is_file());
        match whose {
            None => Ok(()),
            Some(whose) => Err(refused(&format!(
                "SQLite would take it for what belongs to {}, and remove it: choose another name",
                whose.display()
            ))),
        }
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
