//! Random work on a context, beside a plain map that does the same.
//!
//! Each run makes a database and does what chance says: it adds, changes and removes, saves in every way (dropped
//! half-way, into a transaction, refused, with values that cannot be), and others write in between. After every step
//! the rows, read by plain SQLite, and all that the context says of itself are those of the model; see [`world`].
//!
//! `ANABRANCH_SEED` repeats what a failed one printed, and shrinks it; `ANABRANCH_LONG=1` makes far more runs, and
//! others each time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not work here must fail the test"
)]

mod op;
mod resolve;
mod run;
mod save;
mod steps;
mod tables;
mod world;

use std::cell::RefCell;

use anabranch_tests::{
    Mode,
    random::{Random, is_long},
};
use proptest::{
    prelude::prop,
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};

use crate::run::{Run, Stage};

/// So many runs in a mode, of up to so many steps each.
fn runs(test: &str, mode: Mode, cases: u32, steps: usize) {
    // By default the same runs each time; the long form looks for new ones.
    let is_new = is_long() || std::env::var_os("ANABRANCH_SEED").is_some();
    let mut random = if is_new {
        Random::seeded(test)
    } else {
        Random::new(3)
    };
    let mut seed = [0; 32];
    for part in seed.chunks_mut(8) {
        part.copy_from_slice(&random.next().to_le_bytes());
    }
    let config = Config {
        cases: if is_long() { cases * 20 } else { cases },
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    // A run that failed takes its database along.
    let stage = RefCell::new(None);
    let ran = runner.run(&prop::collection::vec(op::op(), 1..steps), |ops| {
        let ready = stage.take();
        let left = runtime.block_on(async {
            let ready = match ready {
                Some(ready) => ready,
                None => Stage::new(mode).await,
            };
            Run::new(ready).all(&ops).await
        });
        stage.replace(Some(left));
        Ok(())
    });
    if let Err(TestError::Fail(reason, ops)) = &ran {
        panic!("{reason}\nin {mode:?}, after these steps: {ops:#?}");
    }
    ran.unwrap();
}

#[test]
fn a_context_is_its_model() {
    runs("a_context_is_its_model", Mode::Inline, 2_000, 40);
}

#[test]
fn a_context_is_its_model_with_threads() {
    runs(
        "a_context_is_its_model_with_threads",
        Mode::Threaded,
        1_000,
        40,
    );
}

#[test]
fn a_context_is_its_model_when_commits_wait_for_the_disk() {
    runs(
        "a_context_is_its_model_when_commits_wait_for_the_disk",
        Mode::Full,
        100,
        40,
    );
}
