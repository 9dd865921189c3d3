//! `save`: single-row saves, bursts of them, read-modify-write, and reads.

mod plan;

use std::time::Duration;

use tokio::runtime::Runtime;
use workload::{Arguments, Latencies, Result, Summary};

use crate::{
    contest::{self, Contest},
    files::Files,
    tracked::{self, Tracking},
};

/// A quick run begins no round that would end later than this.
const QUICK: Duration = Duration::from_secs(28);

/// Runs the benchmark and prints its tables.
pub(crate) fn run(arguments: &Arguments, runtime: &Runtime, files: &mut Files) -> Result<Summary> {
    let mut contests = plan::contests(arguments.quick);
    let rounds = contest::rounds(&mut contests, runtime, files, arguments, QUICK)?;
    for contest in &contests {
        println!("{}", contest.table());
    }
    println!("{}", beside_many(runtime, files)?);
    let ratios = contests.iter().flat_map(Contest::ratios).collect();
    Ok(Summary::new("save", rounds, ratios))
}

/// A save of ten changed entities, beside ten and beside ten thousand that are tracked.
fn beside_many(runtime: &Runtime, files: &mut Files) -> Result<String> {
    let mut few = Latencies::default();
    let mut many = Latencies::default();
    for _ in 0..3 {
        few.append(runtime.block_on(tracked::run(files, Tracking::Changed, 200))?);
        many.append(runtime.block_on(tracked::run(files, Tracking::All, 200))?);
    }
    let micros = |latencies: &Latencies| {
        let [median] = latencies.per_mille([500]);
        median.unwrap_or_default().as_secs_f64() * 1e6
    };
    let (few, many) = (micros(&few), micros(&many));
    Ok(format!(
        "a save of 10 changed entities: {few:.1} us with 10 tracked, {many:.1} us with 10,000 tracked, \
         {:.2} times as long\n",
        many / few
    ))
}
