//! `anabranch doctor`.

use std::{path::PathBuf, process::ExitCode};

use anabranch::error::Result;
use anabranch_migrations::doctor::{Weight, examine};
use clap::Args;

use crate::command::{print, told};

/// Examine a database, and change nothing of it.
///
/// Exits with 0 if nothing is wrong (there may be advice), with 1 if something is, with 2 if it could not look.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The database file.
    file: PathBuf,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let examined = told(examine(&self.file), self.json)?;
        if self.json {
            print(&serde_json::to_string_pretty(&examined).unwrap_or_default())?;
        } else {
            let mut text = examined.facts.to_string();
            for (weight, title) in [(Weight::Problem, "problems"), (Weight::Advice, "advice")] {
                let mut findings = examined
                    .findings
                    .iter()
                    .filter(|finding| finding.weight == weight)
                    .peekable();
                if findings.peek().is_some() {
                    text.push_str(&format!("\n{title}\n"));
                    findings.for_each(|finding| text.push_str(&format!("  {finding}\n")));
                }
            }
            if !examined.has_problems() {
                text.push_str("\nnothing is wrong\n");
            }
            print(text.trim_end())?;
        }
        Ok(if examined.has_problems() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}
