//! `read`: rows by key, scans, what relations lead to, projections, groups and pages; and what a query costs before it
//! runs.

mod plan;
mod small;

use std::time::Duration;

use tokio::runtime::Runtime;
use workload::{Arguments, Result, Summary};

use crate::{
    contest::{self, Contest},
    files::Files,
};

/// A quick run begins no round that would end later than this.
const QUICK: Duration = Duration::from_secs(26);

/// Runs the benchmark and prints its tables.
pub(crate) fn run(arguments: &Arguments, runtime: &Runtime, files: &mut Files) -> Result<Summary> {
    let mut contests = plan::contests(arguments.quick);
    let rounds = contest::rounds(&mut contests, runtime, files, arguments, QUICK)?;
    for contest in &contests {
        println!("{}", contest.table());
    }
    let times = if arguments.quick { 100 } else { 1_000 };
    let small = runtime.block_on(small::run(files, times))?;
    println!("{small}");
    let mut ratios: Vec<_> = contests.iter().flat_map(Contest::ratios).collect();
    ratios.push(small.ratio());
    Ok(Summary::new("read", rounds, ratios))
}
