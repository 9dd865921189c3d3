//! `anabranch entities`.

use std::path::PathBuf;

use anabranch::error::{Error, ErrorKind, Result};
use anabranch_migrations::entities::{Options, generate};
use clap::Args;

use crate::command::{note, write};

/// Write entity structs for the tables of an existing database, which is only read.
///
/// What the structs cannot say is told on standard error.
#[derive(Debug, Args)]
pub(crate) struct Entities {
    /// The database file.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// These tables alone, with commas between them.
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    tables: Vec<String>,
    /// Where to write: a file, which is replaced; without it, to standard output.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Leave out has_many and has_one, and the names of relations.
    #[arg(long)]
    no_relations: bool,
    /// Write entities for tables without a key too: their key is SQLite's rowid, which VACUUM may change.
    #[arg(long)]
    rowid_keys: bool,
}

impl Entities {
    pub(crate) fn run(self) -> Result<()> {
        let options = Options::new()
            .tables(self.tables)
            .relations(!self.no_relations)
            .rowid_keys(self.rowid_keys);
        let generated = generate(&self.from, &options)?;
        for line in &generated.notes {
            note(&format!("note: {line}"));
        }
        match &self.to {
            Some(path) => std::fs::write(path, &generated.source).map_err(|error| {
                let text = format!("{} cannot be written: {error}", path.display());
                Error::new(ErrorKind::Io, text)
            }),
            None => write(&generated.source).map(drop),
        }
    }
}
