//! Expressions and conditions in SQL.

use crate::{
    sql::{
        Aggregate, Frame, Hop, Identifier, Listed, Pattern, Predicate, Quoted, Term, Window, list,
        render::{LONGEST_CHAIN, Renderer, row_count},
    },
    value::Value,
};

impl Renderer {
    pub(in crate::sql) fn term(&mut self, term: Term) {
        match term {
            Term::Column(name) => self.column(name),
            Term::All(columns) if self.row.alias.is_none() => self.push(columns.as_sql()),
            Term::All(columns) => {
                self.separated(
                    columns.listed().iter().copied(),
                    |this, listed| match listed {
                        Listed::Column(name) => this.column(name),
                        Listed::Number(number) => this.display(number),
                    },
                );
            }
            Term::Several(terms) => self.separated(terms, Self::term),
            Term::Path { column, path } => self.inside("json_extract(", column, Some(&path)),
            Term::Length(column, path) => {
                self.inside("json_array_length(", column, path.as_deref());
            }
            Term::Value(value) => self.value(value),
            Term::Number(number) => self.display(number),
            Term::Values(values) if values.is_empty() => {}
            Term::Values(values) => list::render(self, values),
            Term::Call { function, args } => self.call(function, args),
            Term::Infix {
                left,
                operator,
                right,
            } => self.infix(*left, operator, *right),
            Term::Cast { of, to } => self.cast(*of, to),
            Term::Exact(of) => {
                self.term(*of);
                self.push(" COLLATE BINARY");
            }
            Term::Case {
                branches,
                otherwise,
            } => self.case(branches, *otherwise),
            Term::Test(predicate) => self.test(*predicate),
            Term::Aggregate(aggregate) => self.aggregate(*aggregate),
            Term::Window(window) => self.window(*window),
            Term::Select(select) => self.parenthesized(|this| this.select(*select, None)),
            Term::Related {
                hops,
                term,
                conditions,
                once_by,
            } if once_by.is_empty() => self.related(|this| this.term(*term), hops, conditions),
            Term::Related {
                hops,
                term,
                conditions,
                once_by,
            } => self.related_once(|this| this.term(*term), hops, conditions, &once_by),
            Term::At { hops, term } if self.joins.is_some() => {
                let row = self.joined(hops);
                self.within(row, |this| this.term(*term));
            }
            Term::At { hops, term } => self.related(|this| this.term(*term), hops, Vec::new()),
            Term::Fragment(pieces) => self.pieces(pieces),
            Term::Outer { table, term } => self.outer(table, *term),
        }
    }

    fn parenthesized(&mut self, write: impl FnOnce(&mut Self)) {
        self.push("(");
        write(self);
        self.push(")");
    }

    /// The text is that of an expression which an index can have, so the path is a literal.
    fn inside(&mut self, call: &str, column: &str, path: Option<&str>) {
        self.push(call);
        self.column(column);
        self.path(path);
        self.push(")");
    }

    fn path(&mut self, path: Option<&str>) {
        if let Some(path) = path {
            self.push(", ");
            self.display(Quoted(path));
        }
    }

    fn call(&mut self, function: &str, args: Vec<Term>) {
        self.push(function);
        self.parenthesized(|this| this.separated(args, Self::term));
    }

    fn infix(&mut self, left: Term, operator: &str, right: Term) {
        self.parenthesized(|this| {
            this.term(left);
            this.push(operator);
            this.term(right);
        });
    }

    fn cast(&mut self, of: Term, to: &str) {
        self.push("CAST(");
        self.term(of);
        self.push(" AS ");
        self.push(to);
        self.push(")");
    }

    fn case(&mut self, branches: Vec<(Predicate, Term)>, otherwise: Term) {
        self.push("CASE");
        for (test, term) in branches {
            self.push(" WHEN ");
            self.predicate(test);
            self.push(" THEN ");
            self.term(term);
        }
        self.push(" ELSE ");
        self.term(otherwise);
        self.push(" END");
    }

    fn test(&mut self, predicate: Predicate) {
        // Never NULL.
        if predicate.only_looks_whether_there_is_a_row() {
            return self.predicate(predicate);
        }
        self.push("((");
        self.predicate(predicate);
        self.push(") IS TRUE)");
    }

    fn aggregate(&mut self, aggregate: Aggregate) {
        self.push(aggregate.function);
        self.push(if aggregate.distinct {
            "(DISTINCT "
        } else {
            "("
        });
        if aggregate.of.is_empty() {
            self.push("*");
        }
        self.separated(aggregate.of, Self::term);
        self.push(")");
        if let Some(filter) = aggregate.filter {
            self.push(" FILTER (WHERE ");
            self.predicate(filter);
            self.push(")");
        }
    }

    fn window(&mut self, window: Window) {
        match window.function {
            // A function that has no method here, without the parentheses of an expression.
            Term::Fragment(pieces) => self.written(pieces),
            function => self.term(function),
        }
        self.push(" OVER (");
        if !window.partition.is_empty() {
            self.push("PARTITION BY ");
            self.separated(window.partition, Self::term);
        }
        self.order(window.order);
        if let Some(frame) = window.frame {
            let Frame { unit, from, to, .. } = frame;
            self.display(format_args!(" {unit} BETWEEN {from} AND {to}"));
            if let Some(excluded) = frame.excluded {
                self.push(" EXCLUDE ");
                self.push(excluded);
            }
        }
        self.push(")");
    }

    pub(in crate::sql) fn predicate(&mut self, predicate: Predicate) {
        match predicate {
            Predicate::Constant(all) => self.push(if all { "TRUE" } else { "FALSE" }),
            Predicate::Null { term, negated } => {
                self.term(term);
                self.push(if negated { " IS NOT NULL" } else { " IS NULL" });
            }
            Predicate::Compare {
                term,
                comparison,
                with,
            } => self.joined_by([" ", comparison.as_sql(), " "], term, with),
            Predicate::Between { term, low, high } => {
                self.term(term);
                self.push(" BETWEEN ");
                self.joined_by([" AND "], low, high);
            }
            Predicate::In {
                term,
                values,
                negated,
            } => {
                self.term(term);
                self.push(if negated { " NOT IN (" } else { " IN (" });
                list::render(self, values);
                self.push(")");
            }
            Predicate::InSelect { term, select } => {
                self.term(term);
                self.push(" IN ");
                self.parenthesized(|this| this.select(*select, None));
            }
            Predicate::Exists(select) => self.exists(*select),
            Predicate::Reached(recursion) => self.reached(*recursion),
            Predicate::Related { hops, conditions } => self.leads_to_any(hops, conditions),
            Predicate::At { hops, predicate } => self.at(hops, *predicate),
            Predicate::Term(term) => self.term(term),
            Predicate::Like {
                term,
                pattern,
                negated,
            } => self.like(term, pattern, negated),
            Predicate::Has {
                column,
                path,
                values,
                all,
            } => self.has(column, path.as_deref(), values, all),
            Predicate::All(parts) => self.junction(parts, " AND ", true),
            Predicate::Any(parts) => self.junction(parts, " OR ", false),
            Predicate::Not(inverse) => self.not(*inverse),
        }
    }

    fn joined_by<const N: usize>(&mut self, words: [&str; N], left: Term, right: Term) {
        self.term(left);
        for word in words {
            self.push(word);
        }
        self.term(right);
    }

    fn leads_to_any(&mut self, hops: Vec<Hop>, conditions: Vec<Predicate>) {
        self.push("EXISTS ");
        self.related(|this| this.push("1"), hops, conditions);
    }

    fn at(&mut self, hops: Vec<Hop>, predicate: Predicate) {
        let parts = match predicate {
            Predicate::All(parts) => parts,
            other => vec![other],
        };
        if self.joins.is_none() {
            return self.leads_to_any(hops, parts);
        }
        let there = hops.last().and_then(|hop| hop.on.first()).map(|on| on.to);
        let row = self.joined(hops);
        self.parenthesized(|this| {
            this.within(row, |this| match there {
                Some(there) => {
                    this.column(there);
                    this.push(" IS NOT NULL");
                    this.clause(" AND ", parts);
                }
                None => this.junction(parts, " AND ", true),
            });
        });
    }

    fn not(&mut self, inverse: Predicate) {
        // Never NULL.
        if matches!(inverse, Predicate::Related { .. } | Predicate::Exists(_)) {
            self.push("NOT ");
            return self.predicate(inverse);
        }
        self.push("(");
        self.predicate(inverse);
        self.push(") IS NOT TRUE");
    }

    fn like(&mut self, term: Term, pattern: Pattern, negated: bool) {
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
    fn has(&mut self, column: &str, path: Option<&str>, values: Vec<Value>, all: bool) {
        let wanted = values.len() as u64;
        self.push(if all {
            "(SELECT count(DISTINCT value) FROM json_each("
        } else {
            "EXISTS (SELECT 1 FROM json_each("
        });
        if self.row.alias.is_none() {
            self.display(Identifier(self.row.table));
            self.push(".");
        }
        self.column(column);
        self.path(path);
        self.push(") WHERE value IN (");
        list::render(self, values);
        self.push("))");
        if all {
            self.push(" = ");
            self.value(row_count(wanted));
        }
    }

    pub(super) fn junction(&mut self, mut parts: Vec<Predicate>, word: &str, when_empty: bool) {
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
