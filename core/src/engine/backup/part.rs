//! A backup before it has its name: removed unless it gets it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use tempfile::TempPath;

use crate::{
    engine::{
        backup::target::{BESIDE, Target, refused},
        core::Core,
        location::beside,
        open::while_nobody_opens,
    },
    error::{Error, ErrorKind, Result},
};

/// A file in the folder of the target.
#[derive(Debug)]
pub(super) struct Part {
    path: Option<TempPath>,
}

impl Part {
    /// Makes an empty file, which may be read by whoever may read the database.
    pub(super) fn new(target: &Target, database: &Path) -> Result<Self> {
        let name = target.stem() + ".";
        let make = || {
            let permissions = fs::metadata(database)?.permissions();
            tempfile::Builder::new()
                .prefix(&name)
                .suffix(".partial")
                .permissions(permissions)
                .tempfile_in(target.folder())
        };
        let file = make().map_err(|error| failed("no file can be made in the folder", error))?;
        // Closed before SQLite opens it: afterwards its locks would be gone.
        Ok(Self {
            path: Some(file.into_temp_path()),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or_else(|| Path::new(""))
    }

    /// Gives it its name, once it has reached the disk. To be called when no connection has it open.
    pub(super) fn put_in_place(mut self, target: &Target, core: &Core) -> Result<()> {
        let Some(path) = self.path.take() else {
            return Ok(());
        };
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .and_then(|file| file.sync_all())
            .map_err(|error| failed("the copy did not reach the disk", error))?;
        while_nobody_opens(&target.path, || {
            target.check()?;
            if core.whereabouts.is_moved() {
                return Err(core.moved());
            }
            let renamed = if target.replaces {
                path.persist(&target.path)
            } else {
                path.persist_noclobber(&target.path)
            };
            renamed.map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => {
                    refused("a file has come to be there meanwhile; replace() replaces it")
                }
                _ => failed("the copy could not be renamed", error.error),
            })
        })?;
        sync_folder(target.folder())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else {
            return;
        };
        for suffix in BESIDE {
            // Mostly there is none.
            drop(fs::remove_file(beside(&path, suffix)));
        }
    }
}

/// The name is in the folder, and that has to reach the disk too.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| {
            failed(
                "the backup is in its place, but its name may not be on the disk",
                error,
            )
        })
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<()> {
    Ok(())
}

fn failed(what: &str, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
        io::ErrorKind::NotFound => ErrorKind::CannotOpen,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{what} ({error})")).with_source(error)
}
