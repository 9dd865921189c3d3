//! What a workload left behind: the file, and what the clients said.

use std::path::{Path, PathBuf};

use anabranch_tests::load::plainly;
use tempfile::TempDir;

use crate::{
    tables,
    unit::{History, Recorder},
};

/// What a workload left behind.
pub(crate) struct Remains {
    pub(crate) history: History,
    /// The file as it was before the first unit.
    pub(crate) base: PathBuf,
    _folder: TempDir,
}

/// Where the file is kept as it was before the first unit.
pub(crate) fn base(folder: &TempDir) -> PathBuf {
    folder.path().join("base.db")
}

impl Remains {
    /// Checks that a file is sound, and reads it.
    pub(crate) fn read(file: &Path, folder: TempDir, recorder: Recorder) -> Self {
        Self {
            history: read_back(file, recorder),
            base: base(&folder),
            _folder: folder,
        }
    }
}

fn read_back(file: &Path, recorder: Recorder) -> History {
    let connection = plainly(file).unwrap();
    let sound = tables::rows(&connection, "PRAGMA integrity_check");
    assert_eq!(sound, [["ok".to_owned()].map(|ok| Some(ok).into())]);
    assert_eq!(
        tables::rows(&connection, "PRAGMA foreign_key_check").len(),
        0
    );
    connection
        .execute_batch("INSERT INTO docs (docs, rank) VALUES ('integrity-check', 1)")
        .unwrap();
    let mut statement = connection.prepare("SELECT seq, id FROM event").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(i64, i64)> = rows.unwrap().map(Result::unwrap).collect();
    let order = rows.iter().copied().collect();
    let history = History {
        units: recorder.into_units(),
        order,
        dump: tables::dump(&connection),
    };
    assert_eq!(history.order.len(), rows.len(), "one number for two units");
    history
}
