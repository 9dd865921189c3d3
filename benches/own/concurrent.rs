//! `concurrent`: transactions that wait inside, as sessions side by side and one after the other.

mod begins;
mod counts;
mod dirty;
mod plan;

use std::time::Duration;

use tokio::runtime::Runtime;
use workload::{Arguments, Result, Summary};

use crate::{
    contest::{self, Contest, Who},
    files::Files,
};

/// A quick run begins no round that would end later than this.
const QUICK: Duration = Duration::from_secs(24);

/// Runs the benchmark and prints its tables.
pub(crate) fn run(arguments: &Arguments, runtime: &Runtime, files: &mut Files) -> Result<Summary> {
    // First, while the process is small: what it freed before would hide what a session needs.
    let dirty = runtime.block_on(dirty::run(files))?;
    let mut contests = plan::contests(arguments.quick);
    let rounds = contest::rounds(&mut contests, runtime, files, arguments, QUICK)?;
    for contest in &contests {
        let sessions = counts::lines(contest.runs_of(Who::Sessions));
        println!("{}{sessions}", contest.table());
    }
    let time = Duration::from_secs(if arguments.quick { 2 } else { 10 });
    let begins = runtime.block_on(begins::run(files, time))?;
    println!("{begins}\n{dirty}");
    let mut ratios: Vec<_> = contests.iter().flat_map(Contest::ratios).collect();
    ratios.push(begins.ratio());
    Ok(Summary::new("concurrent", rounds, ratios))
}
