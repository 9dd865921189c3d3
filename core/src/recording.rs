//! What is written to a file, in order: for the library's own tests of power cuts, behind the feature `recording`.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum File {
    /// The database.
    Database,
    /// Its write-ahead log.
    Log,
}

/// What was done to it.
#[derive(Clone, PartialEq, Eq)]
pub enum Event {
    /// Bytes were written.
    Write {
        /// Where they begin.
        offset: u64,
        /// What was written.
        bytes: Vec<u8>,
    },
    /// It was cut, or made longer with zeros.
    Truncate {
        /// How long it is.
        size: u64,
    },
    /// What was done to the file before is on the disk.
    Sync {
        /// How many entries there were when the sync began: of those of this file it covers all, of later ones none.
        covers: usize,
    },
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { offset, bytes } => write!(f, "{} bytes at {offset}", bytes.len()),
            Self::Truncate { size } => write!(f, "cut to {size}"),
            Self::Sync { covers } => write!(f, "sync of the first {covers}"),
        }
    }
}

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// To which file.
    pub file: File,
    /// What.
    pub event: Event,
}

/// Records what is written to a database that is opened after it was started, until it is dropped.
///
/// What fails is not recorded. Files are recorded only while they are open through the library, and neither
/// rollback journals nor removed files are: what happens before the file is in WAL mode cannot be staged from this.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    tape: Arc<Tape>,
}

/// What was recorded so far.
#[derive(Debug, Default)]
pub(crate) struct Tape(Mutex<Vec<Entry>>);

/// The databases that are recorded.
static RUNNING: Mutex<Vec<(PathBuf, Arc<Tape>)>> = Mutex::new(Vec::new());

impl Recorder {
    /// Starts to record a database that is not open yet, and may not be there.
    ///
    /// # Errors
    ///
    /// When the folder is not there.
    pub fn start(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = spelled(path.as_ref())?;
        let tape = Arc::new(Tape::default());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.push((path.clone(), Arc::clone(&tape)));
        Ok(Self { path, tape })
    }

    /// How many entries there are by now.
    #[must_use]
    pub fn position(&self) -> usize {
        self.tape.position()
    }

    /// All entries so far.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let entries = self.tape.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(path, tape)| *path != self.path || !Arc::ptr_eq(tape, &self.tape));
    }
}

impl Tape {
    /// That of a database, if it is recorded.
    pub(crate) fn of(database: &Path) -> Option<Arc<Self>> {
        let path = spelled(database).ok()?;
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, tape) = running.iter().find(|(known, _)| *known == path)?;
        Some(Arc::clone(tape))
    }

    pub(crate) fn position(&self) -> usize {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.len()
    }

    pub(crate) fn add(&self, file: File, event: Event) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(Entry { file, event });
    }
}

/// One spelling for one file, which may not be there.
fn spelled(path: &Path) -> io::Result<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default();
    Ok(folder.canonicalize()?.join(name))
}
