//! What is computed of a row: columns, and what is made of them.

use std::sync::Arc;

use crate::{
    sql::{ColumnList, Direction, Listed, Predicate, Select},
    value::Value,
};

/// An expression over one row, or over the rows of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    /// The column.
    Column(&'static str),
    /// All columns: several values.
    All(ColumnList),
    /// Several expressions: several values.
    Several(Vec<Self>),
    /// What stands at a path inside of the column's JSON; NULL where nothing does.
    Path {
        /// The column.
        column: &'static str,
        /// The path, which SQLite takes.
        path: Arc<str>,
    },
    /// The length of the list that the column holds as JSON, or that stands at a path in it.
    Length(&'static str, Option<Arc<str>>),
    /// A value.
    Value(Value),
    /// Any number of values, for what stands in the parentheses of IN.
    Values(Vec<Value>),
    /// A number of the library's own, which is a part of the text.
    Number(i64),
    /// A function.
    Call {
        /// Its name.
        function: &'static str,
        /// What it is given.
        args: Vec<Self>,
    },
    /// An operator between two.
    Infix {
        /// On the left.
        left: Box<Self>,
        /// The operator.
        operator: &'static str,
        /// On the right.
        right: Box<Self>,
    },
    /// Another storage class.
    Cast {
        /// What is cast.
        of: Box<Self>,
        /// The type's name.
        to: &'static str,
    },
    /// Text that is compared byte by byte, whatever its collating sequence.
    Exact(Box<Self>),
    /// The first of several whose condition is true.
    Case {
        /// The conditions, and what there is under each.
        branches: Vec<(Predicate, Self)>,
        /// What there is if none is true.
        otherwise: Box<Self>,
    },
    /// 1 if it is true, else 0.
    Test(Box<Predicate>),
    /// Made of the rows of a group.
    Aggregate(Box<Aggregate>),
    /// Computed beside the other rows.
    Window(Box<Window>),
    /// The one value that a statement selects.
    Select(Box<Select>),
    /// Made of the rows to which a relation leads from this one.
    Related {
        /// The way.
        hops: Vec<Hop>,
        /// What is made of them, which is an aggregate.
        term: Box<Self>,
        /// Which of them.
        conditions: Vec<Predicate>,
        /// The key by which each is taken once, where more than one way may lead to it; else nothing.
        once_by: Vec<&'static str>,
    },
    /// Of the one row to which a relation leads from this one; NULL if there is none.
    At {
        /// The way.
        hops: Vec<Hop>,
        /// What of that row.
        term: Box<Self>,
    },
    /// SQL as it was written, with expressions in it.
    Fragment(Vec<Piece>),
    /// Of the nearest row of a table around the query in which it stands.
    Outer {
        /// The table.
        table: &'static str,
        /// What of that row.
        term: Box<Self>,
    },
}

/// A part of a [`Term::Fragment`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Text.
    Sql(Arc<str>),
    /// An expression.
    Term(Term),
}

/// A function of the rows of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aggregate {
    /// Its name.
    pub function: &'static str,
    /// Whether each value counts once.
    pub distinct: bool,
    /// What it is given: of each row, and then what it is told; `*` if nothing is.
    pub of: Vec<Term>,
    /// Which rows count.
    pub filter: Option<Predicate>,
}

/// A function of the rows around one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    /// The function.
    pub function: Term,
    /// What rows of the same part have in common.
    pub partition: Vec<Term>,
    /// The order within a part.
    pub order: Vec<OrderTerm>,
    /// Which of the part's rows.
    pub frame: Option<Frame>,
}

/// The rows of a [`Window`], seen from one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// In what the bounds count.
    pub unit: &'static str,
    /// The first, as SQL.
    pub from: String,
    /// The last, as SQL.
    pub to: String,
    /// Which of them are left out, as SQL.
    pub excluded: Option<&'static str>,
}

/// A step along a relation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hop {
    /// The table that it leads to.
    pub table: &'static str,
    /// The columns that are equal.
    pub on: Vec<On>,
    /// What the row that it leads to must fulfil; it leads to no other.
    pub conditions: Vec<Predicate>,
}

/// Two columns that are equal on a [`Hop`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct On {
    /// Of the row it starts from.
    pub from: &'static str,
    /// Of the row it leads to.
    pub to: &'static str,
    /// By which collating sequence, if not by that of the latter.
    pub collate: Option<&'static str>,
}

/// What to sort by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderTerm {
    /// The column, or what is computed.
    pub term: Term,
    /// The direction.
    pub direction: Direction,
}

impl Term {
    /// Whether rows of other tables take part, or subqueries name columns of this one, so that columns need to say
    /// whose they are.
    pub(crate) fn looks_elsewhere(&self) -> bool {
        match self {
            Self::Related { .. } | Self::At { .. } | Self::Outer { .. } => true,
            Self::Call { args: terms, .. } | Self::Several(terms) => {
                terms.iter().any(Self::looks_elsewhere)
            }
            Self::Infix { left, right, .. } => left.looks_elsewhere() || right.looks_elsewhere(),
            Self::Cast { of, .. } | Self::Exact(of) => of.looks_elsewhere(),
            Self::Case {
                branches,
                otherwise,
            } => {
                otherwise.looks_elsewhere()
                    || (branches.iter())
                        .any(|(test, term)| test.looks_elsewhere() || term.looks_elsewhere())
            }
            Self::Test(predicate) => predicate.looks_elsewhere(),
            Self::Aggregate(aggregate) => {
                aggregate.of.iter().any(Self::looks_elsewhere)
                    || (aggregate.filter.as_ref()).is_some_and(Predicate::looks_elsewhere)
            }
            Self::Window(window) => {
                window.function.looks_elsewhere()
                    || window.partition.iter().any(Self::looks_elsewhere)
                    || window
                        .order
                        .iter()
                        .any(|order| order.term.looks_elsewhere())
            }
            Self::Fragment(pieces) => pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Term(term) if term.looks_elsewhere())),
            Self::Column(_)
            | Self::All(_)
            | Self::Path { .. }
            | Self::Length(..)
            | Self::Value(_)
            | Self::Number(_)
            | Self::Values(_) => false,
            Self::Select(select) => select.around().is_some(),
        }
    }

    /// Has all columns read where it is a whole row.
    pub(in crate::sql) fn read_whole(&mut self, all: &ColumnList) {
        match self {
            Self::All(columns) => *columns = all.clone(),
            Self::At { term, .. } => term.read_whole(all),
            Self::Several(terms) => terms.iter_mut().for_each(|term| term.read_whole(all)),
            _ => {}
        }
    }

    /// Each of several values by itself.
    pub(in crate::sql) fn each(self) -> Vec<Self> {
        match self {
            Self::Several(terms) => terms.into_iter().flat_map(Self::each).collect(),
            Self::All(columns) => (columns.listed().iter())
                .map(|listed| match listed {
                    Listed::Column(name) => Self::Column(name),
                    Listed::Number(number) => Self::Number(*number),
                })
                .collect(),
            Self::At { hops, term } => {
                let at = |term| Self::At {
                    hops: hops.clone(),
                    term: Box::new(term),
                };
                term.each().into_iter().map(at).collect()
            }
            one => vec![one],
        }
    }

    /// Whether it is made of the rows of a group, in any part of it.
    pub(crate) fn aggregates(&self) -> bool {
        self.has(|part| matches!(part, Self::Aggregate(_)))
    }

    /// Whether it is computed beside other rows, in any part of it.
    pub(crate) fn looks_around(&self) -> bool {
        self.has(|part| matches!(part, Self::Window(_)))
    }

    /// Whether it is so, or any part of it that is of the same row or group.
    pub(in crate::sql) fn has(&self, is: fn(&Self) -> bool) -> bool {
        if is(self) {
            return true;
        }
        match self {
            Self::Call { args: terms, .. } | Self::Several(terms) => {
                terms.iter().any(|term| term.has(is))
            }
            Self::Infix { left, right, .. } => left.has(is) || right.has(is),
            Self::Cast { of: term, .. } | Self::Exact(term) | Self::At { term, .. } => term.has(is),
            Self::Case {
                branches,
                otherwise,
            } => {
                otherwise.has(is)
                    || (branches.iter()).any(|(test, term)| test.has(is) || term.has(is))
            }
            Self::Test(predicate) => predicate.has(is),
            Self::Fragment(pieces) => pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Term(term) if term.has(is))),
            Self::Aggregate(_)
            | Self::Window(_)
            | Self::Related { .. }
            | Self::Column(_)
            | Self::All(_)
            | Self::Path { .. }
            | Self::Length(..)
            | Self::Value(_)
            | Self::Number(_)
            | Self::Values(_)
            | Self::Outer { .. }
            | Self::Select(_) => false,
        }
    }

    /// Whether the value is a literal NULL.
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Value(Value::Null))
    }
}
