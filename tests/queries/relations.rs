//! Relations: reading what they lead to, asking about it, tracking it, and writing it.

#[macro_use]
mod places;

mod columns;
mod kinds;
