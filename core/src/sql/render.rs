//! SQLite's SQL for the trees. Values become parameters, numbered in the order in which they appear.

use std::fmt::{self, Write as _};

use crate::{
    sql::{Identifier, Pattern, Predicate, Quoted, Select, Statement, Term, list},
    value::Value,
};

/// SQLite refuses expressions deeper than 1,000, and a chain of ANDs is as deep as it is long; longer ones are
/// rendered in halves.
const LONGEST_CHAIN: usize = 100;

impl Select {
    /// The statement that reads the rows.
    #[must_use]
    pub(crate) fn into_rows(self) -> Statement {
        let mut renderer = Renderer::default();
        renderer.select(self, None);
        renderer.finish()
    }

    /// The statement that counts the rows.
    #[must_use]
    pub(crate) fn into_count(mut self) -> Statement {
        self.order.clear();
        let mut renderer = Renderer::default();
        if self.limit.is_none() && self.offset == 0 {
            renderer.select(self, Some("count(*)"));
        } else {
            renderer.push("SELECT count(*) FROM (");
            renderer.select(self, Some("1"));
            renderer.push(")");
        }
        renderer.finish()
    }

    /// The statement that tells whether there is any row, as 0 or 1.
    #[must_use]
    pub(crate) fn into_exists(mut self) -> Statement {
        self.order.clear();
        let mut renderer = Renderer::default();
        renderer.push("SELECT EXISTS (");
        renderer.select(self, Some("1"));
        renderer.push(")");
        renderer.finish()
    }
}

/// A statement in the making.
#[derive(Debug, Default)]
pub(in crate::sql) struct Renderer {
    text: String,
    args: Vec<Value>,
    /// The table that is read.
    table: &'static str,
}

impl Renderer {
    pub(in crate::sql) fn push(&mut self, sql: &str) {
        self.text.push_str(sql);
    }

    pub(in crate::sql) fn column(&mut self, name: &str) {
        self.display(Identifier(name));
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Column(name) => self.column(name),
            // The text is that of an expression which an index can have, so the path is a literal.
            Term::Path { column, path } => {
                self.push("json_extract(");
                self.column(column);
                self.push(", ");
                self.display(Quoted(path));
                self.push(")");
            }
            Term::Length(column) => {
                self.push("json_array_length(");
                self.column(column);
                self.push(")");
            }
        }
    }

    pub(in crate::sql) fn value(&mut self, value: Value) {
        self.args.push(value);
        let number = self.args.len();
        self.push("?");
        self.display(number);
    }

    fn display(&mut self, sql: impl fmt::Display) {
        // A String takes everything that is written to it.
        let _ = write!(self.text, "{sql}");
    }

    fn finish(self) -> Statement {
        Statement {
            text: self.text.into(),
            args: self.args,
        }
    }

    fn select(&mut self, select: Select, instead_of_columns: Option<&str>) {
        self.table = select.table;
        self.text.reserve(select.columns.as_sql().len() + 128);
        self.push("SELECT ");
        self.push(instead_of_columns.unwrap_or(select.columns.as_sql()));
        self.push(" FROM ");
        self.column(select.table);
        if !select.conditions.is_empty() {
            self.push(" WHERE ");
            self.junction(select.conditions, " AND ", true);
        }
        for (index, term) in select.order.iter().enumerate() {
            self.push(if index == 0 { " ORDER BY " } else { ", " });
            self.term(&term.term);
            self.push(" ");
            self.push(term.direction.as_sql());
        }
        self.window(select.limit, select.offset);
    }

    fn window(&mut self, limit: Option<u64>, offset: u64) {
        match (limit, offset) {
            (None, 0) => return,
            (Some(limit), _) => {
                self.push(" LIMIT ");
                self.value(row_count(limit));
            }
            // SQLite has no OFFSET without a LIMIT; a negative one is none.
            (None, _) => self.push(" LIMIT -1"),
        }
        if offset > 0 {
            self.push(" OFFSET ");
            self.value(row_count(offset));
        }
    }

    fn predicate(&mut self, predicate: Predicate) {
        match predicate {
            Predicate::Constant(all) => self.push(if all { "TRUE" } else { "FALSE" }),
            Predicate::Null { term, negated } => {
                self.term(&term);
                self.push(if negated { " IS NOT NULL" } else { " IS NULL" });
            }
            Predicate::Compare {
                term,
                comparison,
                value,
            } => {
                self.term(&term);
                self.push(" ");
                self.push(comparison.as_sql());
                self.push(" ");
                self.value(value);
            }
            Predicate::Between { term, low, high } => {
                self.term(&term);
                self.push(" BETWEEN ");
                self.value(low);
                self.push(" AND ");
                self.value(high);
            }
            Predicate::In {
                term,
                values,
                negated,
            } => {
                self.term(&term);
                self.push(if negated { " NOT IN (" } else { " IN (" });
                list::render(self, values);
                self.push(")");
            }
            Predicate::Like {
                term,
                pattern,
                negated,
            } => self.like(&term, pattern, negated),
            Predicate::Has {
                column,
                values,
                all,
            } => self.has(column, values, all),
            Predicate::All(parts) => self.junction(parts, " AND ", true),
            Predicate::Any(parts) => self.junction(parts, " OR ", false),
            Predicate::Not(inverse) => {
                self.push("(");
                self.predicate(*inverse);
                self.push(") IS NOT TRUE");
            }
        }
    }

    fn like(&mut self, term: &Term, pattern: Pattern, negated: bool) {
        self.term(term);
        self.push(if negated { " NOT LIKE " } else { " LIKE " });
        match pattern {
            Pattern::Raw(pattern) => self.value(Value::Text(pattern)),
            Pattern::Escaped(pattern) => {
                self.value(Value::Text(pattern));
                self.push(r" ESCAPE '\'");
            }
        }
    }

    /// The column is qualified: alone, a name like `value` or `key` would be a column of `json_each`.
    fn has(&mut self, column: &str, values: Vec<Value>, all: bool) {
        let wanted = values.len() as u64;
        self.push(if all {
            "(SELECT count(DISTINCT value) FROM json_each("
        } else {
            "EXISTS (SELECT 1 FROM json_each("
        });
        self.column(self.table);
        self.push(".");
        self.column(column);
        self.push(") WHERE value IN (");
        list::render(self, values);
        self.push("))");
        if all {
            self.push(" = ");
            self.value(row_count(wanted));
        }
    }

    fn junction(&mut self, mut parts: Vec<Predicate>, word: &str, when_empty: bool) {
        if parts.is_empty() {
            self.push(if when_empty { "TRUE" } else { "FALSE" });
        } else if parts.len() > LONGEST_CHAIN {
            let rest = parts.split_off(parts.len() / 2);
            self.push("(");
            self.junction(parts, word, when_empty);
            self.push(")");
            self.push(word);
            self.push("(");
            self.junction(rest, word, when_empty);
            self.push(")");
        } else {
            for (index, part) in parts.into_iter().enumerate() {
                if index > 0 {
                    self.push(word);
                }
                if matches!(part, Predicate::All(_) | Predicate::Any(_)) {
                    self.push("(");
                    self.predicate(part);
                    self.push(")");
                } else {
                    self.predicate(part);
                }
            }
        }
    }
}

/// No table has more rows than fit an i64.
fn row_count(count: u64) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}
