//! How much room a disk has. `statvfs` opens nothing.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// Makes sure that there is room for this many bytes in a folder, as far as the system tells.
pub(in crate::engine) fn make_sure_of(needed: u64, folder: &Path, what: &str) -> Result<()> {
    match free_bytes(folder) {
        Some(free) if free < needed => Err(Error::new(
            ErrorKind::Full,
            format!(
                "{what} needs {needed} bytes, and the disk of {} has {free}: {} bytes are missing; make room and try again",
                folder.display(),
                needed - free
            ),
        )),
        _ => Ok(()),
    }
}

/// What this process may still write; nothing where that is not known.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    // Some file systems have no number to give.
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use crate::{engine::room::make_sure_of, error::ErrorKind};

    #[test]
    fn what_is_missing_is_told_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        assert!(make_sure_of(1, folder.path(), "it").is_ok());
        let error = make_sure_of(u64::MAX, folder.path(), "it").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains("are missing"), "{error}");
    }

    #[test]
    fn what_cannot_be_asked_is_left_to_the_disk() {
        assert!(make_sure_of(u64::MAX, "/there is no such folder".as_ref(), "it").is_ok());
    }
}
