//! Relations: reading what they lead to, asking about it, tracking it, and writing it.

#[macro_use]
mod places;

mod asked;
mod attacked;
mod broken;
mod chains;
mod collations;
mod columns;
mod filters;
mod graphs;
mod kinds;
mod many;
mod of_each;
mod parts;
mod random;
mod set_based;
mod tracked;
