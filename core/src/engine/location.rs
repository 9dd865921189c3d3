//! What a path leads to, worked out before SQLite opens it, and what was in the way when it could not.

use std::path::{Path, PathBuf};

use crate::{
    engine::{network::network_name, options::Options},
    error::{Error, ErrorKind, Result},
};

/// The longest path that SQLite takes: `MAX_PATHNAME` is 512, less room for what it adds to the name.
pub(in crate::engine) const LONGEST: usize = 504;

/// Where a database is.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Location {
    /// Absolute, links resolved.
    pub(in crate::engine) path: PathBuf,
    /// The log beside it, which stays one file for as long as it is open.
    pub(in crate::engine) log: Option<FileId>,
    /// Removed when the database is closed.
    pub(in crate::engine) _temporary: Option<std::sync::Arc<tempfile::TempDir>>,
}

impl Location {
    /// The name of the file, for labels and spans.
    pub(in crate::engine) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// A file, however its path is spelled: by device and inode.
#[cfg(unix)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct FileId(u64, u64);
/// A file, by the one path that leads to it.
#[cfg(not(unix))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct FileId(PathBuf);

/// The absolute path; an error shows which part of it is missing.
pub(in crate::engine) fn check_path(path: &Path, options: &Options) -> Result<PathBuf> {
    refuse_what_names_no_file(path)?;
    let absolute = std::path::absolute(path).map_err(|error| {
        cannot_open(format!("{}: no absolute path", path.display())).with_source(error)
    })?;
    let shown = absolute.display();
    if absolute.is_dir() {
        return Err(cannot_open(format!("{shown} is a folder")));
    }
    // What is written to a device may be gone, and a pipe may wait for ever.
    if absolute.exists() && !absolute.is_file() {
        return Err(cannot_open(format!(
            "{shown} is a device, a pipe, or a socket, and a database is a file"
        )));
    }
    let folder = absolute.parent().unwrap_or(&absolute);
    if !folder.is_dir() {
        return Err(missing(&absolute, folder));
    }
    if !options.create && !absolute.exists() {
        return Err(cannot_open(format!(
            "{shown}: the file does not exist, and the option create is off"
        )));
    }
    let length = spelled(&absolute).as_os_str().len();
    if length > LONGEST {
        return Err(cannot_open(format!(
            "{shown}: the path has {length} bytes, links resolved, and SQLite takes no more than {LONGEST}"
        )));
    }
    Ok(absolute)
}

/// Refuses what names no file, or none that SQLite could open under its name.
fn refuse_what_names_no_file(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(Error::new(
            ErrorKind::Options,
            "a database in memory, or one named by a URI, has no file whose readers and writer could share a log: \
             give a path, or use Database::temporary()",
        ));
    }
    if path.to_str().is_none_or(|text| text.contains('\0')) {
        return Err(cannot_open(format!(
            "{}: the path is not UTF-8, or contains a NUL",
            path.display()
        )));
    }
    // SQLite would drop the slash, and make a file where a folder was meant.
    if text.ends_with('/') || text.ends_with("/.") {
        return Err(cannot_open(format!(
            "{} names a folder, and a database is a file",
            path.display()
        )));
    }
    Ok(())
}

fn missing(path: &Path, folder: &Path) -> Error {
    let missing = folder
        .ancestors()
        .take_while(|part| !part.exists())
        .last()
        .unwrap_or(folder);
    let what = if missing.exists() {
        "is no folder"
    } else {
        "does not exist"
    };
    cannot_open(format!(
        "{}: the folder {} {what}",
        path.display(),
        missing.display()
    ))
}

/// The path with links resolved; of a file that does not exist yet the folder at least has one spelling.
pub(in crate::engine) fn spelled(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (path.canonicalize(), folder, path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Refuses a file system over which processes cannot share the log's index, unless that was asked for.
pub(in crate::engine) fn check_file_system(path: &Path, options: &Options) -> Result<()> {
    if options.allow_network_file_system {
        return Ok(());
    }
    let existing = if path.exists() {
        Some(path)
    } else {
        path.parent()
    };
    match existing.and_then(network_name) {
        None => Ok(()),
        Some(name) => Err(cannot_open(format!(
            "{}: it is on {name}. Write-ahead logging needs memory that all processes share, which no network file \
             system gives: writers on two machines would damage the file. Move it to a local disk; if no other \
             machine ever opens it, or the file system is local after all, allow_network_file_system(true) opens it",
            path.display()
        ))),
    }
}

/// Names the part that could not be written, when SQLite could not open the file for that.
pub(in crate::engine) fn explain(error: Error, path: &Path) -> Error {
    let kind = error.kind();
    if !matches!(kind, ErrorKind::ReadOnly | ErrorKind::CannotOpen) {
        return error;
    }
    let Some((part, why)) = unwritable(path) else {
        return error;
    };
    let code = error.sqlite_code();
    let message = format!(
        "{}: {} cannot be written ({why}); the database, its -wal and -shm, and their folder have to be writable, \
         also for reading",
        path.display(),
        part.display()
    );
    let explained = Error::new(kind, message).with_source(error);
    match code {
        Some(code) => explained.with_code(code),
        None => explained,
    }
}

/// The first part that this process may not write, and why not.
#[cfg(unix)]
fn unwritable(path: &Path) -> Option<(PathBuf, std::io::Error)> {
    use rustix::{
        fs::{Access, AtFlags, CWD, accessat},
        io::Errno,
    };
    let folder = path.parent()?.to_owned();
    let parts = [
        path.to_owned(),
        folder,
        beside(path, "-wal"),
        beside(path, "-shm"),
    ];
    parts.into_iter().find_map(|part| {
        let wanted = Access::READ_OK | Access::WRITE_OK;
        match accessat(CWD, &part, wanted, AtFlags::EACCESS) {
            Ok(()) | Err(Errno::NOENT) => None,
            Err(error) => Some((part, error.into())),
        }
    })
}

#[cfg(not(unix))]
fn unwritable(_path: &Path) -> Option<(PathBuf, std::io::Error)> {
    None
}

/// A file beside the database.
pub(in crate::engine) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// How many names a file has. Its log is found by the name: whoever opens it by another one does not see the log.
#[cfg(unix)]
pub(in crate::engine) fn names(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map_or(1, |found| found.nlink())
}

#[cfg(not(unix))]
pub(in crate::engine) fn names(_path: &Path) -> u64 {
    1
}

/// Which file the path leads to. A `stat`, which leaves SQLite's locks alone; opening and closing the file would drop
/// them.
#[cfg(unix)]
pub(in crate::engine) fn file_id(path: &Path) -> Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).map_err(|error| {
        cannot_open(format!("{}: cannot be looked at", path.display())).with_source(error)
    })?;
    Ok(FileId(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(in crate::engine) fn file_id(path: &Path) -> Result<FileId> {
    path.canonicalize().map(FileId).map_err(|error| {
        cannot_open(format!("{}: cannot be looked at", path.display())).with_source(error)
    })
}

pub(in crate::engine) fn cannot_open(message: String) -> Error {
    Error::new(ErrorKind::CannotOpen, message)
}
