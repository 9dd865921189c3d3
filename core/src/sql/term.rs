//! What of a row is asked or sorted by.

use std::sync::Arc;

/// A column, or a part of the JSON in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Term {
    /// The column.
    Column(&'static str),
    /// What stands at a path inside of the column's JSON; NULL where nothing does.
    Path {
        /// The column.
        column: &'static str,
        /// The path, which SQLite takes.
        path: Arc<str>,
    },
    /// The length of the list that the column holds as JSON.
    Length(&'static str),
}
