//! SQLite's SQL for the trees. Values become parameters, numbered in the order in which they appear.
//!
//! A statement about one table names its columns alone. Where rows of other tables take part each table has an alias
//! (`t0`, `t1`, ...), and every column says whose it is. Which rows relations lead to is known only once all is written
//! that asks for them, so the joins of a SELECT are put in their place at its end.

mod expressions;
mod recursion;

use std::{
    fmt::{self, Write as _},
    mem,
};

use crate::{
    sql::{
        ColumnList, Compound, Hop, Identifier, On, OrderTerm, Piece, Predicate, Select, Source,
        Statement, Term, Window,
    },
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
        // As long as a query of some ten columns and conditions: growing up to it would copy the text six times.
        renderer.text.reserve(512);
        renderer.select(self, None);
        renderer.finish()
    }

    /// The statement that counts the rows.
    #[must_use]
    pub(crate) fn into_count(mut self) -> Statement {
        self.order.clear();
        let mut renderer = Renderer::default();
        let is_part = self.limit.is_some() || self.offset > 0 || self.distinct;
        let is_of_many =
            !self.group.is_empty() || !self.having.is_empty() || self.columns.aggregates();
        if !is_part && !is_of_many {
            renderer.select(self, Some("count(*)"));
        } else {
            // What is read decides which rows are distinct, and an aggregate how many there are.
            let instead = (!self.distinct && !self.columns.aggregates()).then_some("1");
            renderer.push("SELECT count(*) FROM (");
            renderer.select(self, instead);
            renderer.push(")");
        }
        renderer.finish()
    }

    /// The statement that tells whether there is any row, as 0 or 1.
    #[must_use]
    pub(crate) fn into_exists(self) -> Statement {
        let mut renderer = Renderer::default();
        renderer.push("SELECT ");
        renderer.exists(self);
        renderer.finish()
    }

    /// The statement that reads at most some rows of each part, those that come first in the order, and which of them
    /// comes where as a last column.
    #[must_use]
    pub(crate) fn into_rows_of_parts(mut self, partition: Vec<Term>) -> Statement {
        let (limit, offset) = (self.limit.take(), self.offset);
        self.offset = 0;
        let number = Term::Window(Box::new(Window {
            function: Term::Call {
                function: "row_number",
                args: Vec::new(),
            },
            partition,
            order: mem::take(&mut self.order),
            frame: None,
        }));
        self.columns = Term::Several(vec![self.columns, number]);
        let mut renderer = Renderer::default();
        // The name is that of the expression's column, which has no other.
        renderer.push("SELECT * FROM (");
        renderer.number_name = Some("anabranch_number");
        renderer.select(self, None);
        renderer.push(") WHERE anabranch_number > ");
        renderer.value(row_count(offset));
        if let Some(limit) = limit {
            renderer.push(" AND anabranch_number <= ");
            renderer.value(row_count(offset.saturating_add(limit)));
        }
        renderer.push(" ORDER BY anabranch_number");
        renderer.finish()
    }
}

impl Compound {
    /// The statement that reads the rows.
    #[must_use]
    pub(crate) fn into_rows(self) -> Statement {
        let mut renderer = Renderer::default();
        renderer.compound(self);
        renderer.finish()
    }

    /// The statement that counts the rows.
    #[must_use]
    pub(crate) fn into_count(self) -> Statement {
        let mut renderer = Renderer::default();
        renderer.push("SELECT count(*) FROM (");
        renderer.compound(self);
        renderer.push(")");
        renderer.finish()
    }
}

/// SQL of the application, with values in it.
#[must_use]
pub(crate) fn statement_of(pieces: Vec<Piece>) -> Statement {
    let mut renderer = Renderer::default();
    renderer.written(pieces);
    renderer.finish()
}

/// A statement in the making.
#[derive(Debug, Default)]
pub(in crate::sql) struct Renderer {
    text: String,
    args: Vec<Value>,
    /// Whose columns are meant.
    row: Row,
    /// The rows around that one, the nearest last.
    around: Vec<Row>,
    /// How many aliases were given.
    aliases: usize,
    /// The joins of the SELECT that is being written; nothing where there can be none.
    joins: Option<Vec<Join>>,
    /// What the last column of the next SELECT is to be called.
    number_name: Option<&'static str>,
    /// What the columns of the next SELECT are to be called.
    names: Option<ColumnList>,
}

/// A row whose columns are named.
#[derive(Debug, Default, Clone, Copy)]
struct Row {
    table: &'static str,
    alias: Option<usize>,
}

/// A row that is joined.
#[derive(Debug)]
struct Join {
    from: usize,
    hop: Hop,
    alias: usize,
}

impl Renderer {
    pub(in crate::sql) fn push(&mut self, sql: &str) {
        self.text.push_str(sql);
    }

    pub(in crate::sql) fn column(&mut self, name: &str) {
        if let Some(alias) = self.row.alias {
            self.display(format_args!("t{alias}."));
        }
        if name.contains('"') {
            return self.display(Identifier(name));
        }
        // Most of what is rendered are names of columns, and formatting takes as long as all the rest.
        self.text.push('"');
        self.text.push_str(name);
        self.text.push('"');
    }

    pub(in crate::sql) fn value(&mut self, value: Value) {
        self.args.push(value);
        let number = self.args.len();
        self.text.push('?');
        match u8::try_from(number) {
            Ok(digit @ 0..=9) => self.text.push(char::from(b'0' + digit)),
            _ => self.display(number),
        }
    }

    pub(in crate::sql) fn display(&mut self, sql: impl fmt::Display) {
        // A String takes everything that is written to it.
        let _ = write!(self.text, "{sql}");
    }

    pub(in crate::sql) fn finish(self) -> Statement {
        Statement {
            text: self.text.into(),
            args: self.args,
        }
    }

    pub(in crate::sql) fn select(&mut self, select: Select, instead_of_columns: Option<&str>) {
        let is_aliased = select.looks_elsewhere();
        let outer = (self.row, self.joins.replace(Vec::new()));
        self.around.push(self.row);
        self.row = Row {
            table: select.table,
            alias: is_aliased.then(|| self.next_alias()),
        };
        let name = self.number_name.take();
        let names = self.names.take();
        self.push(if select.distinct && instead_of_columns.is_none() {
            "SELECT DISTINCT "
        } else {
            "SELECT "
        });
        match (instead_of_columns, names) {
            (Some(instead), _) => self.push(instead),
            (None, Some(names)) => self.named(select.columns, &names),
            (None, None) => self.term(select.columns),
        }
        if let Some(name) = name {
            self.push(" AS ");
            self.push(name);
        }
        self.push(" FROM ");
        match select.source {
            None => self.table(self.row),
            Some(source) => self.source(source),
        }
        let joins_at = self.text.len();
        self.clause(" WHERE ", select.conditions);
        for (index, term) in select.group.into_iter().enumerate() {
            self.push(if index == 0 { " GROUP BY " } else { ", " });
            self.term(term);
        }
        self.clause(" HAVING ", select.having);
        self.order(select.order);
        self.put_joins(joins_at);
        self.row_window(select.limit, select.offset);
        self.around.pop();
        (self.row, self.joins) = outer;
    }

    fn named(&mut self, columns: Term, names: &ColumnList) {
        let columns = columns.each();
        let named: Vec<_> = columns.into_iter().zip(names.names()).collect();
        self.separated(named, |this, (term, name)| {
            this.term(term);
            this.push(" AS ");
            this.display(Identifier(name));
        });
    }

    pub(in crate::sql) fn compound(&mut self, compound: Compound) {
        if compound.others.is_empty() {
            return self.select(compound.first, None);
        }
        self.part(compound.first);
        for (operation, select) in compound.others {
            self.push(" ");
            self.push(operation.as_sql());
            self.push(" ");
            self.part(select);
        }
        for (index, (position, direction)) in compound.order.into_iter().enumerate() {
            self.push(if index == 0 { " ORDER BY " } else { ", " });
            self.display(position + 1);
            self.push(" ");
            self.push(direction.as_sql());
        }
        self.row_window(compound.limit, compound.offset);
    }

    /// A part of a compound; one with an order or a limit has to stand in a SELECT of its own.
    fn part(&mut self, select: Select) {
        if select.order.is_empty() && select.limit.is_none() && select.offset == 0 {
            return self.select(select, None);
        }
        self.push("SELECT * FROM (");
        self.select(select, None);
        self.push(")");
    }

    fn exists(&mut self, mut select: Select) {
        // The order may decide which rows there are only with a limit, and never whether there are any.
        select.order.clear();
        let instead = (!select.columns.aggregates()).then_some("1");
        self.push("EXISTS (");
        if select.distinct && select.offset > 0 {
            // With equal rows made one there may be too few of them to leave out that many; in EXISTS itself SQLite takes
            // no notice of DISTINCT.
            self.push("SELECT 1 FROM (");
            self.select(select, None);
            self.push(")");
        } else {
            self.select(select, instead);
        }
        self.push(")");
    }

    fn next_alias(&mut self) -> usize {
        self.aliases += 1;
        self.aliases - 1
    }

    fn table(&mut self, row: Row) {
        self.display(Identifier(row.table));
        if let Some(alias) = row.alias {
            self.display(format_args!(" AS t{alias}"));
        }
    }

    fn source(&mut self, source: Source) {
        match source {
            Source::Sql(pieces) => self.pieces(pieces),
            Source::Rows { rows, names } => {
                self.names = Some(names);
                self.push("(");
                self.outside(|this| this.compound(*rows));
                self.push(")");
            }
        }
        self.push(" AS ");
        match self.row.alias {
            Some(alias) => self.display(format_args!("t{alias}")),
            None => self.display(Identifier(self.row.table)),
        }
    }

    /// The row to which hops lead from the present one, joined if it is not yet.
    fn joined(&mut self, hops: Vec<Hop>) -> Row {
        let mut row = self.row;
        for hop in hops {
            let from = row.alias.unwrap_or_default();
            row.table = hop.table;
            let joins = self.joins.iter().flatten();
            let known = joins
                .filter(|join| join.from == from && join.hop == hop)
                .map(|join| join.alias)
                .next();
            row.alias = Some(known.unwrap_or_else(|| {
                let alias = self.next_alias();
                if let Some(joins) = &mut self.joins {
                    joins.push(Join { from, hop, alias });
                }
                alias
            }));
        }
        row
    }

    fn put_joins(&mut self, at: usize) {
        let joins = self.joins.take().unwrap_or_default();
        if joins.is_empty() {
            return;
        }
        let rest = self.text.split_off(at);
        for Join { from, hop, alias } in joins {
            // What is joined on no columns is joined for its own sake.
            let is_any = hop.on.is_empty();
            self.push(if is_any { " JOIN " } else { " LEFT JOIN " });
            self.table(Row {
                table: hop.table,
                alias: Some(alias),
            });
            self.push(if is_any { "" } else { " ON " });
            self.link(from, alias, &hop.on);
            let row = Row {
                table: hop.table,
                alias: Some(alias),
            };
            self.fulfilled(row, hop.conditions);
        }
        self.push(&rest);
    }

    /// What a row has to fulfil for a hop to lead to it, where no more rows can be joined.
    fn fulfilled(&mut self, row: Row, conditions: Vec<Predicate>) {
        let joins = self.joins.take();
        self.within(row, |this| this.clause(" AND ", conditions));
        self.joins = joins;
    }

    fn link(&mut self, from: usize, to: usize, on: &[On]) {
        for (index, on) in on.iter().enumerate() {
            self.push(if index == 0 { "" } else { " AND " });
            let (here, there) = (Identifier(on.from), Identifier(on.to));
            self.display(format_args!("t{to}.{there} = t{from}.{here}"));
            if let Some(collate) = on.collate {
                self.display(format_args!(" COLLATE {}", Identifier(collate)));
            }
        }
    }

    /// A SELECT of the rows to which hops lead from the present one.
    fn related(
        &mut self,
        what: impl FnOnce(&mut Self),
        hops: Vec<Hop>,
        conditions: Vec<Predicate>,
    ) {
        let outer = (self.row, self.joins.replace(Vec::new()));
        self.around.push(self.row);
        let from = self.row.alias.unwrap_or_default();
        let aliases: Vec<_> = hops.iter().map(|_| self.next_alias()).collect();
        let rows = hops.iter().zip(&aliases).map(|(hop, alias)| Row {
            table: hop.table,
            alias: Some(*alias),
        });
        let rows: Vec<_> = rows.collect();
        self.row = rows.last().copied().unwrap_or(self.row);
        let mut hops: Vec<_> = rows.into_iter().zip(hops).collect();
        self.push("(SELECT ");
        what(self);
        self.push(" FROM ");
        for (index, (row, hop)) in hops.iter_mut().enumerate() {
            if index > 0 {
                self.push(" JOIN ");
            }
            self.table(*row);
            if index > 0 {
                self.push(" ON ");
                self.link(aliases[index - 1], aliases[index], &hop.on);
                self.fulfilled(*row, mem::take(&mut hop.conditions));
            }
        }
        let joins_at = self.text.len();
        match hops.into_iter().next() {
            Some((row, hop)) if !hop.on.is_empty() => {
                self.push(" WHERE ");
                self.link(from, aliases[0], &hop.on);
                self.fulfilled(row, hop.conditions);
                self.clause(" AND ", conditions);
            }
            _ => self.clause(" WHERE ", conditions),
        }
        self.put_joins(joins_at);
        self.push(")");
        self.around.pop();
        (self.row, self.joins) = outer;
    }

    /// The same of rows to which more than one way may lead: those whose keys are among the keys at its end.
    fn related_once(
        &mut self,
        what: impl FnOnce(&mut Self),
        hops: Vec<Hop>,
        conditions: Vec<Predicate>,
        key: &[&str],
    ) {
        let outer = (self.row, self.joins.replace(Vec::new()));
        self.around.push(self.row);
        self.row = Row {
            table: hops.last().map_or("", |hop| hop.table),
            alias: Some(self.next_alias()),
        };
        let columns = |this: &mut Self| this.separated(key, |this, name| this.column(name));
        self.push("(SELECT ");
        what(self);
        self.push(" FROM ");
        self.table(self.row);
        let joins_at = self.text.len();
        self.push(" WHERE (");
        columns(self);
        self.push(") IN ");
        self.within(outer.0, |this| this.related(columns, hops, Vec::new()));
        self.clause(" AND ", conditions);
        self.put_joins(joins_at);
        self.push(")");
        self.around.pop();
        (self.row, self.joins) = outer;
    }

    pub(in crate::sql) fn clause(&mut self, word: &str, conditions: Vec<Predicate>) {
        if !conditions.is_empty() {
            self.push(word);
            self.junction(conditions, " AND ", true);
        }
    }

    fn order(&mut self, order: Vec<OrderTerm>) {
        for (index, term) in order.into_iter().enumerate() {
            self.push(if index == 0 { " ORDER BY " } else { ", " });
            self.term(term.term);
            self.push(" ");
            self.push(term.direction.as_sql());
        }
    }

    /// The limit is a literal: one that is a parameter has SQLite prepare the statement anew each time it runs, since the
    /// plan depends on it. An offset does not matter to the plan.
    fn row_window(&mut self, limit: Option<u64>, offset: u64) {
        match (limit, offset) {
            (None, 0) => return,
            (Some(limit), _) => {
                self.push(" LIMIT ");
                self.display(i64::try_from(limit).unwrap_or(i64::MAX));
            }
            // SQLite has no OFFSET without a LIMIT; a negative one is none.
            (None, _) => self.push(" LIMIT -1"),
        }
        if offset > 0 {
            self.push(" OFFSET ");
            self.value(row_count(offset));
        }
    }

    fn pieces(&mut self, pieces: Vec<Piece>) {
        let is_commented = matches!(pieces.last(), Some(Piece::Sql(sql)) if sql.contains("--"));
        self.push("(");
        self.written(pieces);
        if is_commented {
            self.push("\n");
        }
        self.push(")");
    }

    pub(super) fn written(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Sql(sql) => self.push(&sql),
                Piece::Term(term) => self.term(term),
            }
        }
    }

    /// Writes what is of another row, which has the present one around it.
    fn within(&mut self, row: Row, write: impl FnOnce(&mut Self)) {
        let outer = mem::replace(&mut self.row, row);
        self.around.push(outer);
        write(self);
        self.around.pop();
        self.row = outer;
    }

    /// Writes what does not see the present row, but those around it.
    fn outside(&mut self, write: impl FnOnce(&mut Self)) {
        let around = self.around.pop().unwrap_or_default();
        let here = mem::replace(&mut self.row, around);
        write(self);
        self.around.push(around);
        self.row = here;
    }

    /// Writes what is of the nearest row of a table around the present one. Where rows can be joined is another SELECT.
    fn outer(&mut self, table: &str, term: Term) {
        let Some(at) = self.around.iter().rposition(|row| row.table == table) else {
            // Refused before; of this SQLite says that there is no such column.
            return self.push("anabranch_no_row_around");
        };
        let inner = self.around.split_off(at);
        let here = mem::replace(&mut self.row, inner[0]);
        let joins = self.joins.take();
        self.term(term);
        self.joins = joins;
        self.row = here;
        self.around.extend(inner);
    }

    pub(in crate::sql) fn separated<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            write(self, item);
        }
    }
}

/// Statements that change the rows of one table; see [`crate::sql::change`].
impl Renderer {
    /// Names the table of a statement that changes it, where no rows can be joined.
    pub(in crate::sql) fn changed_table(&mut self, table: &'static str, is_aliased: bool) {
        self.joins = None;
        self.row = Row {
            table,
            alias: is_aliased.then(|| self.next_alias()),
        };
        self.table(self.row);
    }

    /// From here on columns are named alone.
    pub(in crate::sql) const fn leave_alias(&mut self) {
        self.row.alias = None;
    }
}

/// No table has more rows than fit an i64.
fn row_count(count: u64) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}
