//! Which deferred columns are read with the whole of a row.
//!
//! A row of an entity that has such columns ends with one number more: a bit for each of them that was read. In the place
//! of the others there is a constant, which is not looked at. So a row tells by itself what was read of it, whichever
//! statement it comes from; and entities without such columns are read as if there were none.

use crate::{
    entity::{self, Column, Entity, TableDef},
    error::Error,
    query::{Fetch, Query, Related, Relation, Through, condition::Invalid},
    sql::{ColumnList, Direction, Listed, Select, SetOperation, Term},
    value::{Row, Value, ValueRef},
};

/// The deferred columns that are read, a bit for each. The derive sees to it that 63 are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Included(i64);

impl Included {
    pub(crate) const NONE: Self = Self(0);

    /// A column too; one that is not deferred is read anyway.
    pub(crate) fn and(self, table: &TableDef, column: usize) -> Self {
        if table.columns[column].deferred {
            Self(self.0 | bit(table, column))
        } else {
            self
        }
    }

    /// Those that an entity has the values of.
    pub(crate) fn of<E: Entity>(entity: &E) -> Self {
        let is_loaded = |column: &usize| {
            E::TABLE.columns[*column].deferred && entity.encode(*column) != Ok(Value::Unread)
        };
        let loaded = (0..E::TABLE.columns.len()).filter(is_loaded);
        loaded.fold(Self::NONE, |all, column| all.and(E::TABLE, column))
    }

    fn has(self, table: &TableDef, column: usize) -> bool {
        self.0 & bit(table, column) != 0
    }

    /// What a statement lists for the whole of a row.
    pub(crate) fn list(self, table: &'static TableDef) -> ColumnList {
        let columns = table.columns.iter().enumerate().map(|(at, column)| {
            if column.deferred && !self.has(table, at) {
                Listed::Number(0)
            } else {
                Listed::Column(column.name)
            }
        });
        let told = table.defers().then_some(Listed::Number(self.0));
        ColumnList::new(columns.chain(told))
    }

    /// Has the wholes among these terms read with what is included; that of what relations lead to is theirs.
    pub(in crate::query) fn apply<E: Entity>(self, terms: &mut [Term]) {
        if self == Self::NONE {
            return;
        }
        for term in terms {
            if let Term::All(list) = term {
                *list = self.list(E::TABLE);
            }
        }
    }
}

fn bit(table: &TableDef, column: usize) -> i64 {
    let before = table.columns[..column].iter();
    1 << before.filter(|column| column.deferred).count()
}

/// That the rows of all these have been read alike, and are sorted by what was read.
pub(in crate::query) fn check_compound(
    first: &Select,
    others: &[(SetOperation, Select)],
    order: &[(usize, Direction)],
) -> Result<(), Invalid> {
    let constant = constants(&first.columns);
    if (others.iter()).any(|(_, other)| constants(&other.columns) != constant) {
        return Err(Invalid::Refused(
            "the parts of a compound query read different deferred columns: give all of them the same `including`",
        ));
    }
    if (order.iter()).any(|(position, _)| constant.get(*position) == Some(&true)) {
        return Err(Invalid::Refused(
            "a compound query is sorted by a deferred column that it does not read: add `including` to its parts",
        ));
    }
    Ok(())
}

/// Of each column of a result, whether it is a constant in a list.
fn constants(term: &Term) -> Vec<bool> {
    match term {
        Term::All(list) => (list.listed().iter())
            .map(|listed| matches!(listed, Listed::Number(_)))
            .collect(),
        Term::Several(terms) => terms.iter().flat_map(constants).collect(),
        Term::At { term, .. } => constants(term),
        _ => vec![false],
    }
}

/// How many columns of a result the whole of a row is.
pub(in crate::query) const fn width<E: Entity>() -> usize {
    E::TABLE.columns.len() + const { E::TABLE.defers() as usize }
}

/// Reads an entity from the whole of a row, which begins at `at`.
pub(in crate::query) fn decode<E: Entity>(row: &dyn Row, at: usize) -> Result<E, Error> {
    if const { E::TABLE.defers() } {
        let included = match row.value(at + E::TABLE.columns.len()) {
            ValueRef::Integer(bits) => Included(bits),
            _ => Included::NONE,
        };
        let table = E::TABLE;
        return entity::decode(&Incomplete {
            row,
            at,
            table,
            included,
        });
    }
    if at == 0 {
        return entity::decode(row);
    }
    entity::decode(&From { row, at })
}

/// A row without its first columns.
struct From<'a> {
    row: &'a dyn Row,
    at: usize,
}

impl Row for From<'_> {
    fn width(&self) -> usize {
        self.row.width().saturating_sub(self.at)
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        self.row.value(self.at + index)
    }
}

/// The same of a table with deferred columns.
struct Incomplete<'a> {
    row: &'a dyn Row,
    at: usize,
    table: &'static TableDef,
    included: Included,
}

impl Row for Incomplete<'_> {
    fn width(&self) -> usize {
        self.table.columns.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        let column = self.table.columns.get(index);
        if column.is_some_and(|column| column.deferred) && !self.included.has(self.table, index) {
            return ValueRef::Unread;
        }
        self.row.value(self.at + index)
    }
}

/// # Deferred columns
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(documents: Document))]
/// # struct Folder { #[entity(id)] id: i64, name: String }
/// #[derive(Debug, Entity)]
/// struct Document {
///     #[entity(id)]
///     id: i64,
///     #[entity(references = Folder, index)]
///     folder_id: i64,
///     title: String,
///     body: Deferred<String>,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<(Folder, Document)>().await?;
/// # let mut ctx = db.context();
/// # let folder = ctx.add(Folder { id: 0, name: "kitchen".into() });
/// # ctx.add(Document { id: 0, folder_id: ctx[folder].id, title: "tea".into(), body: "how to".to_owned().into() });
/// # ctx.save_changes().await?;
/// let document = Document::query().including(Document::BODY).one(&db).await?;
/// assert!(document.body.is_loaded());
///
/// let documents = Folder::DOCUMENTS.including(Document::BODY);
/// let (_, documents) = Folder::query().with(documents.filter(Document::TITLE.eq("tea"))).one(&db).await?;
/// assert!(documents[0].body.is_loaded());
/// # Ok(()) }
/// ```
impl<E: Entity, S> Query<E, S> {
    /// Reads this column of the entities too, if it is [`Deferred`](crate::value::Deferred); any other is read anyway.
    /// What relations lead to is asked for there, by [`Relation::including`].
    pub fn including<T>(mut self, column: Column<E, T>) -> Self {
        self.included = self.included.and(E::TABLE, column.index());
        self
    }
}

/// # Deferred columns
impl<E: Entity, R: Related, J: Through, N> Fetch<E, R, J, N> {
    /// Reads this column of the entities too, if it is deferred: as [`Query::including`].
    pub fn including<T>(mut self, column: Column<R::Entity, T>) -> Self {
        self.included = self.included.and(R::Entity::TABLE, column.index());
        self
    }
}

/// # Deferred columns
impl<E: Entity, R: Related, J: Through> Relation<E, R, J> {
    /// Reads this column of the entities too, if it is deferred: as [`Query::including`].
    pub fn including<T>(self, column: Column<R::Entity, T>) -> Fetch<E, R, J> {
        self.fetch().including(column)
    }
}
