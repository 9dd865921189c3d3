//! Queries and relations through the public API, in every place where they can run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not work here must fail the test"
)]

mod relations;
mod world;
