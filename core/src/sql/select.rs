//! A SELECT, as a tree.

use std::{fmt::Write as _, sync::Arc};

use crate::sql::{Identifier, OrderTerm, Piece, Predicate, Term};

/// A SELECT over one table and the rows that relations lead to, to be rendered by one of its `into_` methods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    /// What is read of each row.
    pub columns: Term,
    /// Rows that are equal are one.
    pub distinct: bool,
    /// The table.
    pub table: &'static str,
    /// SQL whose rows are read instead of the table's.
    pub source: Option<Vec<Piece>>,
    /// What a row must fulfil: all of these.
    pub conditions: Vec<Predicate>,
    /// Rows that are equal in these become one.
    pub group: Vec<Term>,
    /// What such a group must fulfil: all of these.
    pub having: Vec<Predicate>,
    /// The sort order, the first term counting most.
    pub order: Vec<OrderTerm>,
    /// The most rows.
    pub limit: Option<u64>,
    /// How many rows are left out at the beginning.
    pub offset: u64,
}

/// Several SELECTs whose rows become one result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compound {
    /// Whose rows come first.
    pub first: Select,
    /// The others, and how each is joined to what comes before.
    pub others: Vec<(SetOperation, Select)>,
    /// The sort order, by the positions of columns.
    pub order: Vec<(usize, Direction)>,
    /// The most rows.
    pub limit: Option<u64>,
    /// How many rows are left out at the beginning.
    pub offset: u64,
}

/// How the rows of two SELECTs become one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetOperation {
    /// The rows of both, equal ones once.
    Union,
    /// The rows of both.
    UnionAll,
    /// The rows that are in both.
    Intersect,
    /// The rows of the first that are not in the second.
    Except,
}

/// A list of columns, quoted once and cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ColumnList {
    listed: Arc<[Listed]>,
    text: Arc<str>,
}

/// What stands in a list of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// A column, by its name.
    Column(&'static str),
    /// A constant.
    Number(i64),
}

impl From<&'static str> for Listed {
    fn from(name: &'static str) -> Self {
        Self::Column(name)
    }
}

/// A direction of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// Smallest first; NULL comes before everything.
    Ascending,
    /// Largest first; NULL comes after everything.
    Descending,
}

impl Select {
    /// All rows of a table.
    #[must_use]
    pub(crate) const fn of(table: &'static str, columns: Term) -> Self {
        Self {
            columns,
            distinct: false,
            table,
            source: None,
            conditions: Vec::new(),
            group: Vec::new(),
            having: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: 0,
        }
    }

    /// Whether rows of other tables take part, so that columns need to say whose they are.
    pub(in crate::sql) fn looks_elsewhere(&self) -> bool {
        self.columns.looks_elsewhere()
            || (self.conditions.iter().chain(&self.having)).any(Predicate::looks_elsewhere)
            || self.group.iter().any(Term::looks_elsewhere)
            || (self.order.iter()).any(|order| order.term.looks_elsewhere())
    }
}

impl SetOperation {
    /// The words in SQL.
    #[must_use]
    pub(crate) const fn as_sql(self) -> &'static str {
        match self {
            Self::Union => "UNION",
            Self::UnionAll => "UNION ALL",
            Self::Intersect => "INTERSECT",
            Self::Except => "EXCEPT",
        }
    }
}

impl ColumnList {
    /// The list of these columns.
    #[must_use]
    pub(crate) fn new(columns: impl IntoIterator<Item = impl Into<Listed>>) -> Self {
        let listed: Arc<[Listed]> = columns.into_iter().map(Into::into).collect();
        let mut text = String::new();
        for (index, listed) in listed.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            // A String takes everything that is written to it.
            let _ = match listed {
                Listed::Column(name) => write!(text, "{separator}{}", Identifier(name)),
                Listed::Number(number) => write!(text, "{separator}{number}"),
            };
        }
        Self {
            listed,
            text: text.into(),
        }
    }

    /// The list in SQL.
    #[must_use]
    pub(crate) fn as_sql(&self) -> &str {
        &self.text
    }

    /// What it lists.
    #[must_use]
    pub(crate) fn listed(&self) -> &[Listed] {
        &self.listed
    }
}

impl PartialEq for ColumnList {
    fn eq(&self, other: &Self) -> bool {
        self.listed == other.listed
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

    /// The other one.
    #[must_use]
    pub(crate) const fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}
