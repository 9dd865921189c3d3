//! The steps of relations: which columns of two tables are equal, and how they are compared.

use std::mem;

use crate::{
    entity::{ColumnDef, Entity, TableDef},
    query::condition::Invalid,
    sql::{Hop, Identifier, On, Piece, Predicate, Select, Source, Term},
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
    /// What the row that it leads to must fulfil, if others follow: the filters of the entity there.
    pub conditions: Vec<Predicate>,
}

impl Step {
    pub(in crate::query) fn reversed(&self) -> Self {
        Self {
            from: self.to,
            from_columns: self.to_columns.clone(),
            to: self.from,
            to_columns: self.from_columns.clone(),
            from_key: !self.from_key,
            conditions: Vec::new(),
        }
    }

    /// Whether no two rows that it could lead to are equal in the columns.
    pub(in crate::query) fn is_to_unique(&self) -> bool {
        let mut keys = self.to.unique_keys();
        keys.any(|key| key.iter().all(|column| self.to_columns.contains(column)))
    }

    /// Whether there is no more than one row that it leads to.
    fn leads_to_one(&self) -> bool {
        // By another collating sequence there may be several that are equal.
        self.is_to_unique() && self.hop().on.iter().all(|on| on.collate.is_none())
    }

    /// Whether more than one way may lead to a row at the end of these: they part, and come together again.
    pub(in crate::query) fn may_meet(steps: &[Self]) -> bool {
        let mut steps = steps.iter();
        let parts = steps.any(|step| !step.leads_to_one());
        parts && steps.any(|step| !step.reversed().leads_to_one())
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
            conditions: self.conditions.clone(),
        }
    }

    /// What selects the keys of the rows at the end of these steps, after other columns of the row to which the first of
    /// them leads and of which these conditions are true.
    pub(in crate::query) fn ends(
        steps: &[Self],
        mut starts: Vec<Predicate>,
        mut columns: Vec<Term>,
    ) -> Select {
        let hops: Vec<_> = steps.iter().skip(1).map(Self::hop).collect();
        if let (Some(first), Some(last)) = (steps.first(), steps.last()) {
            let key = last
                .to
                .key_columns()
                .map(|column| Term::Column(column.name));
            columns.push(Term::At {
                hops: hops.clone(),
                term: Box::new(Term::Several(key.collect())),
            });
            starts.extend(first.conditions.iter().cloned());
        }
        starts.push(Predicate::is_there(hops));
        Select {
            conditions: starts,
            ..Select::of(
                steps.first().map_or("", |first| first.to.name),
                Term::Several(columns),
            )
        }
    }

    /// Where two columns are equal.
    pub(in crate::query) fn between_columns(
        from: (&'static TableDef, usize),
        to: (&'static TableDef, usize),
    ) -> Self {
        Self {
            from: from.0,
            from_columns: vec![from.1],
            to: to.0,
            to_columns: vec![to.1],
            from_key: false,
            conditions: Vec::new(),
        }
    }

    /// From each row to all: a condition says which.
    pub(in crate::query) const fn between_any(
        from: &'static TableDef,
        to: &'static TableDef,
    ) -> Self {
        Self {
            from,
            from_columns: Vec::new(),
            to,
            to_columns: Vec::new(),
            from_key: false,
            conditions: Vec::new(),
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
            conditions: Vec::new(),
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
            conditions: Vec::new(),
        })
    }
}

impl Select {
    /// The same of rows to which these hops lead, in a statement that begins with rows of another table.
    pub(in crate::query) fn beginning_at(mut self, table: &'static str, hops: &[Hop]) -> Self {
        let at = |term| Term::At {
            hops: hops.to_vec(),
            term: Box::new(term),
        };
        self.table = table;
        self.columns = at(self.columns);
        for order in &mut self.order {
            order.term = at(mem::replace(&mut order.term, Term::Number(0)));
        }
        self.conditions = vec![Predicate::At {
            hops: hops.to_vec(),
            predicate: Box::new(Predicate::All(self.conditions)),
        }];
        self
    }

    /// Reads the rows at the end of these steps, once for each start however many ways lead there; `links` are the
    /// columns that tell the start. Gives what they are in this statement.
    pub(in crate::query) fn read_from_ends(
        &mut self,
        steps: &[Step],
        starts: Vec<Predicate>,
        links: Vec<Term>,
    ) -> Vec<Term> {
        let names =
            |of: &'static str, count| (0..count).map(move |at| format!("anabranch_{of}_{at}"));
        let here: Vec<_> = names("start", links.len()).collect();
        let (mut columns, mut equal) = (here.clone(), Vec::new());
        let key = steps
            .last()
            .into_iter()
            .flat_map(|last| last.to.key_columns());
        for (column, name) in key.zip(names("end", usize::MAX)) {
            let (table, key) = (Identifier(self.table), Identifier(column.name));
            equal.push(format!("{table}.{key} = {name}"));
            columns.push(name);
        }
        let ways = Self {
            distinct: true,
            ..Step::ends(steps, starts, links)
        };
        self.source = Some(Source::Sql(vec![
            sql(&format!("WITH anabranch_ways ({}) AS ", columns.join(", "))),
            Piece::Term(Term::Select(Box::new(ways))),
            sql(&format!(
                " SELECT * FROM anabranch_ways JOIN {} ON {}",
                Identifier(self.table),
                equal.join(" AND ")
            )),
        ]));
        here.iter()
            .map(|name| Term::Fragment(vec![sql(name)]))
            .collect()
    }
}

fn sql(text: &str) -> Piece {
    Piece::Sql(text.into())
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
