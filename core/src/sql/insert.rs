//! An INSERT of the rows that a SELECT reads, as a tree.

use crate::sql::{
    Compound, Identifier, Select, Statement, Term, change::returning, render::Renderer,
};

/// Inserts a row for each that is selected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InsertSelected {
    /// The table.
    pub table: &'static str,
    /// The columns that are written, in the order in which they are selected.
    pub columns: Vec<&'static str>,
    /// What is selected.
    pub rows: Selected,
    /// What is told of each row, as it is then.
    pub returning: Option<Term>,
}

/// The rows of one SELECT, or of several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selected {
    One(Select),
    Several(Compound),
}

impl InsertSelected {
    /// The statement.
    #[must_use]
    pub(crate) fn into_statement(self) -> Statement {
        let mut renderer = Renderer::default();
        renderer.push("INSERT INTO ");
        renderer.changed_table(self.table, false);
        renderer.push(" (");
        renderer.separated(self.columns, |renderer, column| {
            renderer.display(Identifier(column));
        });
        renderer.push(") ");
        match self.rows {
            Selected::One(select) => renderer.select(select, None),
            Selected::Several(compound) => renderer.compound(compound),
        }
        returning(renderer, self.returning)
    }
}

impl Selected {
    /// The table of a row that it names, but does not have.
    pub(crate) fn around(&self) -> Option<&'static str> {
        match self {
            Self::One(select) => select.around(),
            Self::Several(compound) => compound.around(),
        }
    }

    /// Every SELECT in it.
    pub(crate) fn selects_mut(&mut self) -> impl Iterator<Item = &mut Select> {
        let (first, others) = match self {
            Self::One(select) => (select, [].iter_mut()),
            Self::Several(compound) => (&mut compound.first, compound.others.iter_mut()),
        };
        std::iter::once(first).chain(others.map(|(_, select)| select))
    }
}
