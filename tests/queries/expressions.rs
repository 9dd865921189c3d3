//! Expressions, selections, aggregates, pages, compounds, raw queries, set-based writes and upserts.
#![allow(
    clippy::eq_op,
    clippy::too_many_lines,
    reason = "an expression less itself is not always zero in SQL, and a list of what is tried has no parts"
)]

mod changes;
mod dates;
mod depth;
mod frames;
mod inserts;
mod many;
mod pages;
mod partition;
mod places;
mod thing;
mod upserts;
mod values;
mod written;
