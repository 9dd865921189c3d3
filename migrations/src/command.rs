//! What stands on the command line.

mod backup;
mod doctor;
mod entities;
mod wal;

use std::{
    io::{self, Write as _, stderr, stdout},
    process::ExitCode,
};

use anabranch::error::{Error, ErrorKind, Result};
use clap::{Parser, Subcommand};
use serde_json::json;

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

/// Writes a line to standard output; whether anybody reads it.
fn print(line: &str) -> Result<bool> {
    write(&format!("{line}\n"))
}

/// Writes over the line before.
fn print_over(line: &str) -> Result<bool> {
    write(&format!("\r{line}\x1b[K"))
}

fn write(text: &str) -> Result<bool> {
    let mut out = stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        // As `head` leaves it, which has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            let text = format!("standard output cannot be written: {error}");
            Err(Error::new(ErrorKind::Io, text))
        }
    }
}

/// Writes a line to standard error. What cannot be shown is not needed.
pub(crate) fn note(line: &str) {
    drop(writeln!(stderr(), "{line}"));
}

/// Tells a program that reads JSON of an error, too.
fn told<T>(outcome: Result<T>, json: bool) -> Result<T> {
    if let Err(error) = &outcome
        && json
    {
        let kind = format!("{:?}", error.kind());
        let told = json!({ "error": { "kind": kind, "message": error.to_string() } });
        print(&told.to_string())?;
    }
    outcome
}
