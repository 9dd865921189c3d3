//! The command `anabranch`.
#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match command::Command::parse().run() {
        Ok(code) => code,
        Err((error, code)) => {
            command::note(&format!("anabranch: {error}"));
            code
        }
    }
}
