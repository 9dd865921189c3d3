//! Expressions, selections, aggregates, pages, compounds, raw queries, set-based writes and upserts.
#![allow(
    clippy::eq_op,
    clippy::too_many_lines,
    reason = "an expression less itself is not always zero in SQL, and a list of what is tried has no parts"
)]

mod attacked;
mod changes;
mod dates;
mod deferred;
mod depth;
mod derived;
mod exact;
mod frames;
mod inserts;
mod json_fields;
mod many;
mod outer;
mod pages;
mod partition;
mod places;
mod recursion;
mod rows;
mod thing;
mod upserts;
mod values;
mod written;
