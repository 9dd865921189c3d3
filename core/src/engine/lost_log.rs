//! Logs that were left behind by files that moved.
//!
//! SQLite knows a log by its name alone. When a database is replaced and its `-wal` stays, whoever opens the new
//! one takes the frames of the old one for its own, and writes them over its pages. What is left by a file that
//! this process had open is known here, by the log's header, which has a random number in it: the new
//! file is refused until the log is taken away. Beside a file that is new and empty SQLite removes it.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::{
    engine::location::{Location, beside, file_id},
    error::{Error, ErrorKind, Result},
};

/// What a log begins with.
type Header = [u8; 32];

static LOST: Mutex<Vec<(PathBuf, Header)>> = Mutex::new(Vec::new());

/// Remembers the log of a file that has moved, if it is still beside the path. To be called while connections have it
/// open: until then no other file has its inode.
pub(in crate::engine) fn remember(location: &Location) {
    let log = beside(&location.path, "-wal");
    if location.log.is_none() || file_id(&log).ok() != location.log {
        return;
    }
    if let Some(header) = header(&log) {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.retain(|(path, _)| *path != location.path);
        lost.push((location.path.clone(), header));
    }
}

/// Refuses a file beside which the log of another one lies.
pub(in crate::engine) fn refuse(path: &Path) -> Result<()> {
    let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = lost.iter().position(|(known, _)| known == path) else {
        return Ok(());
    };
    let has_content = fs::metadata(path).is_ok_and(|file| file.len() > 0);
    let log = beside(path, "-wal");
    if has_content && header(&log) == Some(lost[place].1) {
        return Err(Error::new(
            ErrorKind::CannotOpen,
            format!(
                "{}: the log beside it belongs to the file that was there before, and SQLite would write it into this \
                 one: move {} to that file, or remove it, and open the database again",
                path.display(),
                log.display()
            ),
        ));
    }
    lost.swap_remove(place);
    Ok(())
}

/// The header of a log that is not empty. No lock is ever taken on a log, so that closing it drops none.
fn header(log: &Path) -> Option<Header> {
    let mut header = [0; 32];
    File::open(log).ok()?.read_exact(&mut header).ok()?;
    Some(header)
}
