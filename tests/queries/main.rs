//! Queries and relations, in every place where they run, against SQL written by hand.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod expressions;
