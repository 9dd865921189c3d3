//! What stands on the command line.

mod entities;

use anabranch::error::Result;
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
    Entities(entities::Entities),
}

impl Command {
    pub(crate) fn run(self) -> Result<()> {
        match self.what {
            What::Entities(entities) => entities.run(),
        }
    }
}
