//! A SELECT, as a tree.

use std::{fmt::Write as _, sync::Arc};

use crate::sql::{Hop, Identifier, OrderTerm, Piece, Predicate, Term};

/// A SELECT over one table and the rows that relations lead to, to be rendered by one of its `into_` methods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    /// What is read of each row.
    pub columns: Term,
    /// Rows that are equal are one.
    pub distinct: bool,
    /// The table.
    pub table: &'static str,
    /// What is read instead of the table.
    pub source: Option<Source>,
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

/// Rows that are read instead of a table's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// Those of SQL of the application, which have the names of the table's columns.
    Sql(Vec<Piece>),
    /// Those of other SELECTs.
    Rows {
        /// The SELECTs.
        rows: Box<Compound>,
        /// What their columns are called.
        names: ColumnList,
    },
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

/// The keys of rows, and of all that a step leads to from one of them, however often.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recursion {
    /// The columns of the table's key.
    pub key: ColumnList,
    /// Selects the keys of those that it begins with.
    pub start: Select,
    /// The way of one step, to a row of the same table, or before the last of it.
    pub hops: Vec<Hop>,
    /// The rest of the way.
    pub beyond: Vec<Hop>,
    /// What a row must fulfil that a step leads to.
    pub conditions: Vec<Predicate>,
    /// How many steps there are at most.
    pub steps: Option<u32>,
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

impl Source {
    /// Whether these are rows of the table with all of its columns: some of them, or those in another order.
    #[must_use]
    pub(crate) fn is_of(&self, table: &'static str) -> bool {
        let Self::Rows { rows, names } = self else {
            return false;
        };
        let others = rows.others.iter().map(|(_, select)| select);
        std::iter::once(&rows.first).chain(others).all(|select| {
            let is_own = select
                .source
                .as_ref()
                .is_none_or(|inner| inner.is_of(table));
            is_own && select.table == table && select.columns == Term::All(names.clone())
        })
    }
}

impl Compound {
    /// Has all columns of whole rows read.
    pub(crate) fn read_whole(&mut self, all: &ColumnList) {
        let others = self.others.iter_mut().map(|(_, select)| select);
        for select in std::iter::once(&mut self.first).chain(others) {
            select.columns.read_whole(all);
        }
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

    /// The columns among that.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.listed.iter().filter_map(|listed| match listed {
            Listed::Column(name) => Some(*name),
            Listed::Number(_) => None,
        })
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
