//! `anabranch wal`.

use std::{
    io::{IsTerminal as _, stdout},
    path::PathBuf,
    thread,
    time::Duration,
};

use anabranch::error::Result;
use anabranch_migrations::log::{Log, Watch};
use clap::Args;

use crate::command::{print, print_over, told};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// Show the write-ahead log of a database, and change nothing of it.
#[derive(Debug, Args)]
pub(crate) struct Wal {
    /// The database file.
    file: PathBuf,
    /// Look every second, until it is ended with ctrl-c.
    #[arg(long, conflicts_with = "once")]
    watch: bool,
    /// Look once, which is what it does unless told otherwise.
    #[arg(long)]
    once: bool,
    /// Write JSON, a line for each look.
    #[arg(long)]
    json: bool,
}

impl Wal {
    pub(crate) fn run(self) -> Result<()> {
        loop {
            // Anew each time: the log may have come to be there, or another file. And nobody who closes the database
            // meanwhile finds it in use by this.
            let looked = Watch::new(&self.file).and_then(|watch| watch.look());
            let in_place = self.watch && !self.json && stdout().is_terminal();
            if looked.is_err() && in_place {
                print("")?;
            }
            let line = self.line(&told(looked, self.json)?);
            let is_read = if in_place {
                print_over(&line)?
            } else {
                print(&line)?
            };
            if !self.watch || !is_read {
                return Ok(());
            }
            thread::sleep(EVERY);
        }
    }

    fn line(&self, log: &Log) -> String {
        if self.json {
            serde_json::to_string(log).unwrap_or_default()
        } else {
            log.to_string()
        }
    }
}
