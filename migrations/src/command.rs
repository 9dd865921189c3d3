//! What stands on the command line.

mod backup;
mod doctor;
mod entities;
mod wal;

use std::{
    io::{Write as _, stdout},
    process::ExitCode,
};

use anabranch::error::{Error, ErrorKind, Result};
use clap::{Parser, Subcommand};

/// Tools for SQLite databases and the applications of anabranch that use them.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version)]
pub(crate) struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Backup(backup::Backup),
    Doctor(doctor::Doctor),
    Entities(entities::Entities),
    Wal(wal::Wal),
}

impl Command {
    /// Runs it. What the exit code of an error is, is the command's matter too: that of `doctor` differs from a finding's.
    pub(crate) fn run(self) -> Result<ExitCode, (Error, ExitCode)> {
        let failed = |error| (error, ExitCode::FAILURE);
        match self.what {
            What::Backup(backup) => backup.run().map_err(failed)?,
            What::Doctor(doctor) => return doctor.run().map_err(|error| (error, 2.into())),
            What::Entities(entities) => entities.run().map_err(failed)?,
            What::Wal(wal) => wal.run().map_err(failed)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a line to standard output.
fn print(line: &str) -> Result<()> {
    write(&format!("{line}\n"))
}

/// Writes over the line before.
fn print_over(line: &str) -> Result<()> {
    write(&format!("\r{line}\x1b[K"))
}

fn write(text: &str) -> Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| {
            let text = format!("standard output cannot be written: {error}");
            Error::new(ErrorKind::Io, text)
        })
}
