//! The steps of relations: which columns of two tables are equal, and how they are compared.

use crate::{
    entity::{ColumnDef, Entity, TableDef},
    query::condition::Invalid,
    sql::{Hop, Identifier, On, Piece, Term},
    value::Value,
};

/// A step along a relation: which columns of two tables are equal.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The table that it starts from.
    pub from: &'static TableDef,
    /// The positions of its columns.
    pub from_columns: Vec<usize>,
    /// The table that it leads to.
    pub to: &'static TableDef,
    /// The positions of its columns.
    pub to_columns: Vec<usize>,
    /// Whether it starts from what is referred to.
    pub from_key: bool,
}

impl Step {
    pub(in crate::query) fn reversed(&self) -> Self {
        Self {
            from: self.to,
            from_columns: self.to_columns.clone(),
            to: self.from,
            to_columns: self.from_columns.clone(),
            from_key: !self.from_key,
        }
    }

    /// The columns as which both are compared: a reference as the key that it refers to, as foreign keys do.
    pub(crate) fn compared(&self) -> (&'static TableDef, &[usize]) {
        if self.from_key {
            (self.from, &self.from_columns)
        } else {
            (self.to, &self.to_columns)
        }
    }

    /// What stands in the columns of an entity that it starts from; in the key, where a condition says where it leads.
    pub(in crate::query) fn starts_at<E: Entity>(&self, entity: &E) -> Result<Vec<Value>, Invalid> {
        let value = |column: &usize| {
            let encoded = entity.encode(*column);
            encoded.map_err(|error| Invalid::Operand {
                table: self.from.name,
                column: self.from.columns[*column].name,
                error,
            })
        };
        let columns = match self.to_columns[..] {
            [] => self.from.key,
            _ => &self.from_columns[..],
        };
        columns.iter().map(value).collect()
    }

    /// The columns of the table that it leads to, as they are compared.
    pub(crate) fn links(&self) -> Vec<Term> {
        let links = self.hop().on.into_iter().map(|on| {
            let column = Term::Column(on.to);
            match on.collate {
                None => column,
                Some(collate) => Term::Fragment(vec![
                    Piece::Term(column),
                    Piece::Sql(format!(" COLLATE {}", Identifier(collate)).into()),
                ]),
            }
        });
        links.collect()
    }

    pub(in crate::query) fn hop(&self) -> Hop {
        let on = |(from, to): (&usize, &usize)| {
            let (from, to) = (&self.from.columns[*from], &self.to.columns[*to]);
            let differs = collation(from) != collation(to);
            On {
                from: from.name,
                to: to.name,
                collate: (self.from_key && differs).then(|| from.collate.unwrap_or("BINARY")),
            }
        };
        Hop {
            table: self.to.name,
            on: self
                .from_columns
                .iter()
                .zip(&self.to_columns)
                .map(on)
                .collect(),
        }
    }

    pub(in crate::query) fn to_parent(
        child: &'static TableDef,
        by: usize,
        parent: &'static TableDef,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            from: child,
            from_columns: reference(child, by, parent)?,
            to: parent,
            to_columns: parent.key.to_vec(),
            from_key: false,
        })
    }

    pub(in crate::query) fn to_children(
        parent: &'static TableDef,
        child: &'static TableDef,
        by: usize,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            from: parent,
            from_columns: parent.key.to_vec(),
            to: child,
            to_columns: reference(child, by, parent)?,
            from_key: true,
        })
    }
}

fn collation(column: &ColumnDef) -> String {
    (column.collate).map_or_else(|| "BINARY".to_owned(), str::to_ascii_uppercase)
}

/// The columns of a reference of which one is known, in the order of the key that it refers to.
fn reference(
    child: &'static TableDef,
    by: usize,
    parent: &'static TableDef,
) -> Result<Vec<usize>, Invalid> {
    let mut declared = child.foreign_keys();
    let declared = declared
        .find(|key| key.columns.contains(&by) && (key.reference.table)().name == parent.name);
    match declared {
        Some(key) => Ok(key.columns.to_vec()),
        // The table may be one of another program, that has no foreign key.
        None if parent.key.len() == 1 && by < child.columns.len() => Ok(vec![by]),
        None => Err(Invalid::Model {
            table: child.name,
            message: format!(
                "a relation to {} goes by a column that is no part of a reference to it",
                parent.entity
            ),
        }),
    }
}
