//! An UPDATE or a DELETE of any number of rows, as a tree.

use crate::sql::{Identifier, Predicate, Statement, Term, render::Renderer};

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
        renderer.separated(self.set, |renderer, (column, term)| {
            // A column that is set is never qualified.
            renderer.display(Identifier(column));
            renderer.push(" = ");
            renderer.term(term);
        });
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

fn returning(mut renderer: Renderer, columns: Option<Term>) -> Statement {
    if let Some(columns) = columns {
        renderer.leave_alias();
        renderer.push(" RETURNING ");
        renderer.term(columns);
    }
    renderer.finish()
}
