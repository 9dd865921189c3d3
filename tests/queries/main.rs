//! Queries and relations through the public API, in every place where they run, against SQL written by hand.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not work here must fail the test"
)]
#![allow(
    clippy::too_many_lines,
    reason = "a test is a list of questions, each beside its answer"
)]

mod expressions;
mod relations;
mod world;
