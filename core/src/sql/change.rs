//! An UPDATE or a DELETE of any number of rows, and an INSERT that may be an UPDATE, as trees.

use crate::{
    sql::{Identifier, Predicate, Statement, Term, render::Renderer},
    value::Value,
};

/// Sets columns of the rows that fulfil conditions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    /// The table.
    pub table: &'static str,
    /// The columns, and what each becomes.
    pub set: Vec<(&'static str, Term)>,
    /// What a row must fulfil: all of these.
    pub conditions: Vec<Predicate>,
    /// What is told of each row, as it is then.
    pub returning: Option<Term>,
}

/// Deletes the rows that fulfil conditions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delete {
    /// The table.
    pub table: &'static str,
    /// What a row must fulfil: all of these.
    pub conditions: Vec<Predicate>,
    /// What is told of each row, as it was.
    pub returning: Option<Term>,
}

/// Inserts a row unless one is there under a unique key, and changes that one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Insert {
    /// The table.
    pub table: &'static str,
    /// The columns that are written.
    pub columns: Vec<&'static str>,
    /// Those of the unique key.
    pub unique: Vec<&'static str>,
    /// The rows for which it is one, as SQL.
    pub filter: Option<&'static str>,
    /// What the columns of a row that is there become; nothing leaves it as it is.
    pub set: Vec<(&'static str, Term)>,
    /// What a row that is there must fulfil to be changed: all of these.
    pub conditions: Vec<Predicate>,
    /// What is told of the row that was inserted or changed.
    pub returning: Option<Term>,
}

impl Insert {
    /// The statement for so many rows. Its first arguments are the values to insert, one for each column of each row, which
    /// are NULL here.
    #[must_use]
    pub(crate) fn into_statement(self, rows: usize) -> Statement {
        let looks_elsewhere = self.conditions.iter().any(Predicate::looks_elsewhere)
            || self.set.iter().any(|(_, term)| term.looks_elsewhere());
        let mut renderer = Renderer::default();
        renderer.push("INSERT INTO ");
        renderer.changed_table(self.table, looks_elsewhere);
        let names = |renderer: &mut Renderer, columns: Vec<&'static str>| {
            renderer.push(" (");
            renderer.separated(columns, |renderer, column| {
                renderer.display(Identifier(column));
            });
            renderer.push(")");
        };
        let count = self.columns.len();
        names(&mut renderer, self.columns);
        renderer.push(" VALUES ");
        renderer.separated(0..rows, |renderer, _| {
            renderer.push("(");
            renderer.separated(0..count, |renderer, _| renderer.value(Value::Null));
            renderer.push(")");
        });
        renderer.push(" ON CONFLICT");
        names(&mut renderer, self.unique);
        if let Some(filter) = self.filter {
            renderer.push(" WHERE (");
            renderer.push(filter);
            renderer.push(")");
        }
        if self.set.is_empty() {
            renderer.push(" DO NOTHING");
        } else {
            renderer.push(" DO UPDATE SET ");
            set(&mut renderer, self.set);
            renderer.clause(" WHERE ", self.conditions);
        }
        returning(renderer, self.returning)
    }
}

impl Update {
    /// The statement.
    #[must_use]
    pub(crate) fn into_statement(self) -> Statement {
        let looks_elsewhere = self.conditions.iter().any(Predicate::looks_elsewhere)
            || self.set.iter().any(|(_, term)| term.looks_elsewhere());
        let mut renderer = Renderer::default();
        renderer.push("UPDATE ");
        renderer.changed_table(self.table, looks_elsewhere);
        renderer.push(" SET ");
        set(&mut renderer, self.set);
        renderer.clause(" WHERE ", self.conditions);
        returning(renderer, self.returning)
    }
}

impl Delete {
    /// The statement.
    #[must_use]
    pub(crate) fn into_statement(self) -> Statement {
        let looks_elsewhere = self.conditions.iter().any(Predicate::looks_elsewhere);
        let mut renderer = Renderer::default();
        renderer.push("DELETE FROM ");
        renderer.changed_table(self.table, looks_elsewhere);
        renderer.clause(" WHERE ", self.conditions);
        returning(renderer, self.returning)
    }
}

fn set(renderer: &mut Renderer, set: Vec<(&'static str, Term)>) {
    renderer.separated(set, |renderer, (column, term)| {
        // A column that is set is never qualified.
        renderer.display(Identifier(column));
        renderer.push(" = ");
        renderer.term(term);
    });
}

pub(in crate::sql) fn returning(mut renderer: Renderer, columns: Option<Term>) -> Statement {
    if let Some(columns) = columns {
        renderer.leave_alias();
        renderer.push(" RETURNING ");
        renderer.term(columns);
    }
    renderer.finish()
}
