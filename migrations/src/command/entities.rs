//! `anabranch entities`.

use std::{io::Write as _, path::PathBuf};

use anabranch::error::{Error, ErrorKind, Result};
use anabranch_migrations::entities::{Options, generate};
use clap::Args;

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
        for note in &generated.notes {
            eprintln!("note: {note}");
        }
        let source = generated.source.as_bytes();
        let written = match &self.to {
            Some(path) => std::fs::write(path, source),
            None => std::io::stdout().write_all(source),
        };
        written.map_err(|error| {
            let to = self.to.map_or_else(
                || "standard output".to_owned(),
                |path| path.display().to_string(),
            );
            Error::new(ErrorKind::Io, format!("{to} cannot be written: {error}"))
        })
    }
}
