//! The files: where they are, and their rows a thousand at a time.

use std::{
    fs::File,
    io::{BufReader, Read},
    mem,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use csv::{ErrorKind, StringRecord};
use indicatif::ProgressBar;
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task};
use zip::ZipArchive;

/// How many rows make a chunk: one save each.
const CHUNK: usize = 1_000;

/// How many chunks are read ahead of the saves.
const AHEAD: usize = 4;

/// A folder with the five files, each plain (`flights.csv`) or zipped (`flights.csv.zip`).
#[derive(Debug)]
pub(crate) struct DataSet {
    folder: PathBuf,
}

impl DataSet {
    /// Makes sure that all files are there, before anything is done on their account.
    pub(crate) fn open(folder: PathBuf) -> Result<Self> {
        ensure!(
            folder.is_dir(),
            "there is no folder {}: --data names the one with the CSV files",
            folder.display()
        );
        let data = Self { folder };
        for table in ["airlines", "airports", "planes", "weather", "flights"] {
            data.file(table)?;
        }
        Ok(data)
    }

    /// Reads the file of a table on a thread of its own. An error is the last item.
    pub(crate) fn chunks<T: DeserializeOwned + Send + 'static>(
        &self,
        table: &str,
        bar: ProgressBar,
    ) -> Result<mpsc::Receiver<Result<Vec<T>>>> {
        let path = self.file(table)?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        task::spawn_blocking(move || {
            let send = |chunk| sender.blocking_send(Ok(chunk)).is_ok();
            if let Err(error) = read(&path, &bar, send) {
                // Nobody listens any more when the import has failed already.
                sender.blocking_send(Err(error)).ok();
            }
        });
        Ok(receiver)
    }

    fn file(&self, table: &str) -> Result<PathBuf> {
        let plain = self.folder.join(format!("{table}.csv"));
        let zipped = self.folder.join(format!("{table}.csv.zip"));
        match [plain, zipped].into_iter().find(|path| path.is_file()) {
            Some(path) => Ok(path),
            None => bail!(
                "{} has neither {table}.csv nor {table}.csv.zip",
                self.folder.display()
            ),
        }
    }
}

/// Sends the rows of a file until `send` says that nobody wants more.
fn read<T: DeserializeOwned>(
    path: &Path,
    bar: &ProgressBar,
    send: impl FnMut(Vec<T>) -> bool,
) -> Result<()> {
    let shown = || path.display().to_string();
    let file = File::open(path).with_context(shown)?;
    if path.extension().is_some_and(|extension| extension == "zip") {
        let mut archive = ZipArchive::new(BufReader::new(file)).with_context(shown)?;
        let entry = archive.by_index(0).with_context(shown)?;
        bar.set_length(entry.size());
        read_csv(path, bar.wrap_read(entry), send)
    } else {
        bar.set_length(file.metadata().with_context(shown)?.len());
        read_csv(path, bar.wrap_read(file), send)
    }
}

fn read_csv<T: DeserializeOwned>(
    path: &Path,
    file: impl Read,
    mut send: impl FnMut(Vec<T>) -> bool,
) -> Result<()> {
    let mut reader = csv::Reader::from_reader(file);
    let headers = reader
        .headers()
        .with_context(|| path.display().to_string())?;
    let headers = headers.clone();
    let mut record = StringRecord::new();
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        let line = reader.position().line();
        let malformed = |error| malformed(path, line, &headers, &error);
        if !reader.read_record(&mut record).map_err(malformed)? {
            send(chunk);
            return Ok(());
        }
        let row = without_na(&record).deserialize(Some(&headers));
        chunk.push(row.map_err(malformed)?);
        if chunk.len() == CHUNK && !send(mem::take(&mut chunk)) {
            return Ok(());
        }
    }
}

/// The files write NA where nothing is known; for `csv`, an empty field is `None`.
fn without_na(record: &StringRecord) -> StringRecord {
    let known = |field| if field == "NA" { "" } else { field };
    record.iter().map(known).collect()
}

fn malformed(path: &Path, line: u64, headers: &StringRecord, error: &csv::Error) -> anyhow::Error {
    let problem = match error.kind() {
        ErrorKind::Deserialize { err, .. } => {
            match err
                .field()
                .and_then(|field| headers.get(usize::try_from(field).ok()?))
            {
                Some(column) => format!("{column}: {}", err.kind()),
                None => err.kind().to_string(),
            }
        }
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("{len} fields, where the header has {expected_len}"),
        _ => error.to_string(),
    };
    anyhow!("{}, line {line}: {problem}", path.display())
}
