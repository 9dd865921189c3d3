//! What a WHERE clause asks of a row, as a tree over its columns.

use std::sync::Arc;

use crate::{
    sql::{Hop, Recursion, Select, Term},
    value::Value,
};

/// A question to one row. Where SQL answers neither true nor false (NULL), the row is not selected.
///
/// Values inside are never NULL: [`Predicate::Null`] asks for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Predicate {
    /// Every row, or none.
    Constant(bool),
    /// Whether it is NULL.
    Null {
        /// What is asked.
        term: Term,
        /// Asks for the opposite.
        negated: bool,
    },
    /// How it compares with another.
    Compare {
        /// What is on the left.
        term: Term,
        /// How.
        comparison: Comparison,
        /// What is on the right.
        with: Term,
    },
    /// Whether it lies between two values, both included.
    Between {
        /// What is asked.
        term: Term,
        /// The least value.
        low: Term,
        /// The greatest value.
        high: Term,
    },
    /// Whether it is one of some values, of which there is at least one.
    In {
        /// What is asked.
        term: Term,
        /// The values.
        values: Vec<Value>,
        /// Asks for the opposite.
        negated: bool,
    },
    /// Whether it is among the values that a statement selects.
    InSelect {
        /// What is asked.
        term: Term,
        /// The statement.
        select: Box<Select>,
    },
    /// Whether a statement selects any row.
    Exists(Box<Select>),
    /// Whether it is one of the rows that steps lead to.
    Reached(Box<Recursion>),
    /// Whether there are rows to which a relation leads from this one, for which all of these are true.
    Related {
        /// The way.
        hops: Vec<Hop>,
        /// What they must fulfil.
        conditions: Vec<Self>,
    },
    /// Whether there is a row to which a relation leads from this one, one at most, and this is true of it.
    At {
        /// The way.
        hops: Vec<Hop>,
        /// What it must fulfil.
        predicate: Box<Self>,
    },
    /// Whether an expression is true: neither 0 nor NULL.
    Term(Term),
    /// Whether its text matches a pattern.
    Like {
        /// What is asked.
        term: Term,
        /// The pattern.
        pattern: Pattern,
        /// Asks for the opposite.
        negated: bool,
    },
    /// Whether the list that a column holds as JSON has some of these values, of which there is at least one.
    Has {
        /// The column.
        column: &'static str,
        /// Where in it the list stands, if it is not all of it.
        path: Option<Arc<str>>,
        /// The values, none of them twice.
        values: Vec<Value>,
        /// Asks for all of them.
        all: bool,
    },
    /// Whether all of these are true.
    All(Vec<Self>),
    /// Whether any of these is true.
    Any(Vec<Self>),
    /// Whether this is not true: false, or NULL.
    Not(Box<Self>),
}

/// An operator between a term and a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// `=`
    Equal,
    /// `<>`, which is NULL for a NULL.
    NotEqual,
    /// `IS`, which is true for two NULLs.
    Same,
    /// `IS DISTINCT FROM`, which is true for a NULL.
    Distinct,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A pattern of LIKE: `%` stands for any text, `_` for one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// As written: nothing escapes `%` and `_`.
    Raw(String),
    /// With a backslash before each character that stands for itself.
    Escaped(String),
}

impl Comparison {
    /// The operator in SQL.
    #[must_use]
    pub(crate) const fn as_sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Same => "IS",
            Self::Distinct => "IS DISTINCT FROM",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Pattern {
    /// Matches texts that contain `text`.
    #[must_use]
    pub(crate) fn containing(text: &str) -> Self {
        Self::escape("%", text, "%")
    }

    /// Matches texts that start with `text`.
    #[must_use]
    pub(crate) fn starting_with(text: &str) -> Self {
        Self::escape("", text, "%")
    }

    /// Matches texts that end with `text`.
    #[must_use]
    pub(crate) fn ending_with(text: &str) -> Self {
        Self::escape("%", text, "")
    }

    fn escape(before: &str, text: &str, after: &str) -> Self {
        let mut pattern = String::with_capacity(text.len() + 8);
        pattern.push_str(before);
        for ch in text.chars() {
            if matches!(ch, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(ch);
        }
        pattern.push_str(after);
        Self::Escaped(pattern)
    }
}

impl Predicate {
    /// Whether the terms, together, are one of the keys.
    #[must_use]
    pub(crate) fn among(terms: &[Term], keys: &[&[Value]]) -> Self {
        if let [term] = terms {
            return Self::In {
                term: term.clone(),
                values: keys.iter().filter_map(|key| key.first().cloned()).collect(),
                negated: false,
            };
        }
        let equal = |key: &&[Value]| {
            let parts = terms.iter().zip(*key).map(|(term, value)| Self::Compare {
                term: term.clone(),
                comparison: Comparison::Equal,
                with: Term::Value(value.clone()),
            });
            Self::All(parts.collect())
        };
        Self::Any(keys.iter().map(equal).collect())
    }

    /// Whether there is a row to which a relation leads, one at most.
    #[must_use]
    pub(crate) fn is_there(hops: Vec<Hop>) -> Self {
        Self::At {
            hops,
            predicate: Box::new(Self::All(Vec::new())),
        }
    }

    /// Both.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All(mut all), Self::All(more)) => {
                all.extend(more);
                Self::All(all)
            }
            (Self::All(mut all), last) => {
                all.push(last);
                Self::All(all)
            }
            // A chain that is folded from its end is as flat as any other.
            (first, Self::All(mut all)) => {
                all.insert(0, first);
                Self::All(all)
            }
            (first, last) => Self::All(vec![first, last]),
        }
    }

    /// Either.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any(mut any), Self::Any(more)) => {
                any.extend(more);
                Self::Any(any)
            }
            (Self::Any(mut any), last) => {
                any.push(last);
                Self::Any(any)
            }
            (first, Self::Any(mut any)) => {
                any.insert(0, first);
                Self::Any(any)
            }
            (first, last) => Self::Any(vec![first, last]),
        }
    }

    /// The rows that this does not select.
    #[must_use]
    pub(crate) fn complement(self) -> Self {
        match self {
            Self::Constant(all) => Self::Constant(!all),
            Self::Null { term, negated } => Self::Null {
                term,
                negated: !negated,
            },
            Self::Not(inverse) => *inverse,
            other => Self::Not(Box::new(other)),
        }
    }

    /// Whether only rows with one given value in the column can be selected.
    #[must_use]
    pub(crate) fn pins(&self, pinned: &str) -> bool {
        match self {
            Self::Compare {
                term: Term::Column(column),
                comparison: Comparison::Equal,
                with: Term::Value(_),
            } => *column == pinned,
            Self::All(all) => all.iter().any(|part| part.pins(pinned)),
            _ => false,
        }
    }

    /// Whether it asks no more than whether a relation leads to a row.
    pub(in crate::sql) fn only_looks_whether_there_is_a_row(&self) -> bool {
        matches!(self, Self::At { predicate, .. } if matches!(&**predicate, Self::All(parts) if parts.is_empty()))
    }

    /// Whether it is asked of a group of rows, in any part of it.
    #[must_use]
    pub(crate) fn aggregates(&self) -> bool {
        self.has(|part| matches!(part, Term::Aggregate(_)))
    }

    /// Whether it asks for what is computed beside other rows, in any part of it.
    #[must_use]
    pub(crate) fn looks_around(&self) -> bool {
        self.has(|part| matches!(part, Term::Window(_)))
    }

    /// Whether a part of it that is of the same row or group is so.
    pub(in crate::sql) fn has(&self, is: fn(&Term) -> bool) -> bool {
        match self {
            Self::Null { term, .. }
            | Self::In { term, .. }
            | Self::InSelect { term, .. }
            | Self::Term(term)
            | Self::Like { term, .. } => term.has(is),
            Self::Compare { term, with, .. } => term.has(is) || with.has(is),
            Self::Between { term, low, high } => [term, low, high].into_iter().any(|it| it.has(is)),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.has(is)),
            Self::Not(inverse)
            | Self::At {
                predicate: inverse, ..
            } => inverse.has(is),
            Self::Constant(_)
            | Self::Exists(_)
            | Self::Reached(_)
            | Self::Has { .. }
            | Self::Related { .. } => false,
        }
    }

    /// Whether rows of other tables take part, or subqueries name columns of this one.
    pub(in crate::sql) fn looks_elsewhere(&self) -> bool {
        match self {
            Self::Related { .. } | Self::At { .. } => true,
            Self::Exists(select) => select.around().is_some(),
            Self::InSelect { term, select } => term.looks_elsewhere() || select.around().is_some(),
            Self::Null { term, .. }
            | Self::In { term, .. }
            | Self::Term(term)
            | Self::Like { term, .. } => term.looks_elsewhere(),
            Self::Compare { term, with, .. } => term.looks_elsewhere() || with.looks_elsewhere(),
            Self::Between { term, low, high } => {
                [term, low, high].into_iter().any(Term::looks_elsewhere)
            }
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::looks_elsewhere),
            Self::Not(inverse) => inverse.looks_elsewhere(),
            Self::Constant(_) | Self::Reached(_) | Self::Has { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        sql::{Comparison, Pattern, Predicate, Term},
        value::Value,
    };

    #[test]
    fn only_what_stands_for_more_than_itself_is_escaped() {
        assert_eq!(
            Pattern::containing(r"50%_\ ％"),
            Pattern::Escaped(r"%50\%\_\\ ％%".into())
        );
        assert_eq!(Pattern::starting_with("a"), Pattern::Escaped("a%".into()));
        assert_eq!(Pattern::ending_with("a"), Pattern::Escaped("%a".into()));
    }

    #[test]
    fn the_complement_of_a_complement_is_the_start() {
        let start = Predicate::Compare {
            term: Term::Column("a"),
            comparison: Comparison::Less,
            with: Term::Value(Value::Integer(1)),
        };
        assert_eq!(start.clone().complement().complement(), start);
    }
}
