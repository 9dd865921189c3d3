//! A SELECT over one table, as a tree.

use std::{fmt::Write as _, sync::Arc};

use crate::sql::{Identifier, Predicate, Term};

/// A SELECT over one table, to be rendered by one of its `into_` methods.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    /// The columns.
    pub columns: ColumnList,
    /// The table.
    pub table: &'static str,
    /// What a row must fulfil: all of these.
    pub conditions: Vec<Predicate>,
    /// The sort order, the first term counting most.
    pub order: Vec<OrderTerm>,
    /// The most rows.
    pub limit: Option<u64>,
    /// How many rows are left out at the beginning.
    pub offset: u64,
}

/// A list of columns, quoted once and cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnList(Arc<str>);

/// What to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderTerm {
    /// The column, or a part of it.
    pub term: Term,
    /// The direction.
    pub direction: Direction,
}

/// A direction of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// Smallest first; NULL comes before everything.
    Ascending,
    /// Largest first; NULL comes after everything.
    Descending,
}

impl ColumnList {
    /// The list of these columns.
    #[must_use]
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = String::new();
        for (index, name) in names.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            // A String takes everything that is written to it.
            let _ = write!(text, "{separator}{}", Identifier(name));
        }
        Self(text.into())
    }

    /// The list in SQL.
    #[must_use]
    pub(crate) fn as_sql(&self) -> &str {
        &self.0
    }
}

impl Direction {
    /// The word in SQL.
    #[must_use]
    pub(crate) const fn as_sql(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }
}
