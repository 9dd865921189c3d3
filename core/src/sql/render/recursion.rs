//! Rows of a table, and all that steps lead to from there.

use crate::sql::{
    ColumnList, Hop, Identifier, Predicate, Recursion, Term,
    render::{Renderer, Row},
};

/// The column of how many steps led to a row.
const STEP: &str = "anabranch_step";

impl Renderer {
    /// Whether the present row is one of them.
    pub(in crate::sql) fn reached(&mut self, recursion: Recursion) {
        let Recursion {
            key,
            mut start,
            hops,
            beyond,
            conditions,
            steps,
        } = recursion;
        let is_single = key.listed().len() == 1;
        self.push(if is_single { "" } else { "(" });
        self.term(Term::All(key.clone()));
        self.push(if is_single { "" } else { ")" });
        self.push(" IN (WITH RECURSIVE ");
        let reached = format!("anabranch_reached{}", self.next_alias());
        self.push(&reached);
        self.push(" (");
        self.push(key.as_sql());
        if steps.is_some() {
            self.display(format_args!(", {STEP}"));
            start.columns = Term::Several(vec![start.columns, Term::Number(0)]);
        }
        self.push(") AS (");
        let table = start.table;
        self.outside(|this| {
            this.part(start);
            this.push(" UNION ");
            let what = |this: &mut Self, from: usize| {
                let key = Term::All(key.clone());
                this.term(match beyond {
                    hops if hops.is_empty() => key,
                    hops => Term::At {
                        hops,
                        term: Box::new(key),
                    },
                });
                if steps.is_some() {
                    this.display(format_args!(", t{from}.{STEP} + 1"));
                }
            };
            let and = steps.map(|steps| format!("{STEP} < {steps}"));
            this.step(table, &reached, &key, what, &hops, conditions, and);
        });
        self.push(") SELECT ");
        self.push(key.as_sql());
        self.push(" FROM ");
        self.push(&reached);
        self.push(")");
    }

    /// A SELECT of those to which one step leads from what was reached.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a part of the one statement"
    )]
    fn step(
        &mut self,
        table: &'static str,
        reached: &str,
        key: &ColumnList,
        what: impl FnOnce(&mut Self, usize),
        hops: &[Hop],
        conditions: Vec<Predicate>,
        and: Option<String>,
    ) {
        let from = self.next_alias();
        // Where no more than the key is asked of the rows that were reached, they need not be looked up.
        let is_of_key = |column| key.names().any(|name| name == column);
        let mut is_looked_up =
            !(hops.iter().take(1).flat_map(|hop| &hop.on)).all(|on| is_of_key(on.from));
        for condition in &conditions {
            condition.each_around(&mut |_, _| is_looked_up = true);
        }
        let row = if is_looked_up {
            self.next_alias()
        } else {
            from
        };
        let aliases: Vec<_> = hops.iter().map(|_| self.next_alias()).collect();
        let own = Row {
            table,
            alias: Some(row),
        };
        let there = hops.iter().zip(&aliases).next_back();
        let there = there.map_or(own, |(hop, alias)| Row {
            table: hop.table,
            alias: Some(*alias),
        });
        let joins = self.joins.replace(Vec::new());
        self.within(own, |this| {
            this.within(there, |this| {
                this.push("SELECT ");
                what(this, from);
                this.display(format_args!(" FROM {reached} AS t{from}"));
                if is_looked_up {
                    this.display(format_args!(" JOIN {} AS t{row} ON ", Identifier(table)));
                    for (index, name) in key.names().enumerate() {
                        let (name, and) = (Identifier(name), if index == 0 { "" } else { " AND " });
                        this.display(format_args!("{and}t{row}.{name} = t{from}.{name}"));
                    }
                }
                let mut last = row;
                for (hop, alias) in hops.iter().zip(&aliases) {
                    this.display(format_args!(
                        " JOIN {} AS t{alias} ON ",
                        Identifier(hop.table)
                    ));
                    this.link(last, *alias, &hop.on);
                    last = *alias;
                }
                let joins_at = this.text.len();
                this.push(" WHERE ");
                match and {
                    Some(and) => this.display(format_args!("t{from}.{and}")),
                    None => this.push("TRUE"),
                }
                this.clause(" AND ", conditions);
                this.put_joins(joins_at);
            });
        });
        self.joins = joins;
    }
}
