//! Expressions, selections, aggregates, pages, compounds, raw queries, set-based writes and upserts.

mod changes;
mod dates;
mod depth;
mod many;
mod pages;
mod partition;
mod places;
mod thing;
mod upserts;
mod values;
mod written;
