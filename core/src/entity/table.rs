//! The definition of a table, as a derive writes it down.

use std::{any::Any, ops::Range};

use chrono::DateTime;

use crate::value::{ColumnType as _, KeyOrigin, OneOf, Storage, Value, ValueError};

/// The table of an entity.
#[derive(Debug)]
pub struct TableDef {
    /// The table's name.
    pub name: &'static str,
    /// The Rust name of the entity.
    pub entity: &'static str,
    /// Whether the table is STRICT.
    pub strict: bool,
    /// Whether the table is clustered by its key instead of a rowid.
    pub without_rowid: bool,
    /// Whether a key that was used once is never given again.
    pub autoincrement: bool,
    /// The columns, in the order of the struct's fields.
    pub columns: &'static [ColumnDef],
    /// CHECK conditions that concern the whole row, as SQL.
    pub checks: &'static [&'static str],
    /// The indexes of the primary key's columns, in the key's order.
    pub key: &'static [usize],
    /// Who gives new entities their key.
    pub key_origin: KeyOrigin,
    /// The index of the `version` column.
    pub version: Option<usize>,
    /// The index of the `commit_seq` column.
    pub commit_seq: Option<usize>,
    /// Whether the keys of deleted rows are kept, with the number of the commit that deleted them.
    pub tombstones: bool,
    /// The index of the `created_at` column.
    pub created_at: Option<usize>,
    /// The index of the `updated_at` column.
    pub updated_at: Option<usize>,
    /// Foreign keys of several columns; those of one are with their column.
    pub foreign_keys: &'static [ForeignKey],
    /// Indexes of several columns, on expressions, or of part of the rows; plain ones are with their column.
    pub indexes: &'static [IndexDef],
    /// Named filters, which every query has unless it lifts them.
    pub filters: &'static [FilterDef],
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct ColumnDef {
    /// The column's name.
    pub name: &'static str,
    /// The Rust name of the field; within an embedded struct the path to it, such as `address.city`.
    pub field: &'static str,
    /// The declared type.
    pub storage: Storage,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Whether values may be large.
    pub large: bool,
    /// Whether rows are read without it unless it is asked for.
    pub deferred: bool,
    /// Whether values are unique.
    pub unique: bool,
    /// Whether the column has an index.
    pub index: bool,
    /// The collating sequence, by which text is compared and sorted.
    pub collate: Option<&'static str>,
    /// A CHECK condition, as SQL.
    pub check: Option<&'static str>,
    /// What another CHECK allows.
    pub one_of: OneOf,
    /// The DEFAULT for rows that other programs insert.
    pub default: Option<DefaultValue>,
    /// The expression from which the database computes the column.
    pub generated: Option<Generated>,
    /// The entity that the column refers to.
    pub references: Option<Reference>,
    /// The columns that are right only together with this one.
    pub group: Group,
}

/// The columns of an optional embedded struct, or of an enum with data: any of them alone makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    /// How many of them stand before the column.
    pub before: usize,
    /// How many stand after it.
    pub after: usize,
}

/// The DEFAULT of a column.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// An expression, as SQL.
    Sql(&'static str),
    /// A value of the field's type, as the column stores it.
    Value(fn() -> Result<Value, ValueError>),
}

/// A column that the database computes.
#[derive(Debug, Clone, Copy)]
pub struct Generated {
    /// The expression, as SQL.
    pub expression: &'static str,
    /// Whether the result is stored in the row, or computed whenever it is read.
    pub stored: bool,
}

/// An index that is more than one plain column.
#[derive(Debug, Clone, Copy)]
pub struct IndexDef {
    /// The index's name; without it the table's and the columns' names.
    pub name: Option<&'static str>,
    /// What is indexed.
    pub on: IndexedBy,
    /// Whether two rows may not be equal in it.
    pub unique: bool,
    /// Which rows are in it, as SQL; all without it.
    pub filter: Option<&'static str>,
}

/// A named filter.
#[derive(Debug, Clone, Copy)]
pub struct FilterDef {
    /// Its name.
    pub name: &'static str,
    /// Makes its condition, a [`Condition`](crate::query::Condition) of the entity, which this shelf cannot name.
    pub condition: fn() -> Box<dyn Any>,
}

/// What an index is on.
#[derive(Debug, Clone, Copy)]
pub enum IndexedBy {
    /// These columns, by their positions.
    Columns(&'static [usize]),
    /// Expressions, as SQL: what stands in the parentheses of CREATE INDEX.
    Expressions(&'static str),
}

/// Columns that refer, together, to the primary key of another table.
#[derive(Debug, Clone, Copy)]
pub struct ForeignKey {
    /// Their positions, in the order of the key's columns.
    pub columns: &'static [usize],
    /// What they refer to.
    pub reference: Reference,
}

/// A foreign key: the column refers to the primary key of another table.
#[derive(Debug, Clone, Copy)]
pub struct Reference {
    /// The table referred to; a function, so that tables may refer to each other.
    pub table: fn() -> &'static TableDef,
    /// What happens to this row when the other is deleted.
    pub on_delete: ForeignKeyAction,
    /// What happens to this row when the other's key changes.
    pub on_update: ForeignKeyAction,
}

/// What the database does to a row when the row that it refers to goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ForeignKeyAction {
    /// The statement fails if the reference is still broken at its end.
    #[default]
    NoAction,
    /// The statement fails at once.
    Restrict,
    /// The row is deleted, or follows the new key.
    Cascade,
    /// The reference becomes NULL.
    SetNull,
    /// The reference takes the column's default.
    SetDefault,
}

impl ForeignKeyAction {
    /// The words in a table definition.
    #[must_use]
    pub const fn as_sql(self) -> &'static str {
        match self {
            Self::NoAction => "NO ACTION",
            Self::Restrict => "RESTRICT",
            Self::Cascade => "CASCADE",
            Self::SetNull => "SET NULL",
            Self::SetDefault => "SET DEFAULT",
        }
    }
}

/// The most columns that SQLite can be built for is 32,767; it is built for 2,000.
const MOST_COLUMNS: usize = 2_000;

/// Every position, so that one of them can be borrowed as a list of one.
static POSITIONS: [usize; MOST_COLUMNS] = {
    let mut positions = [0; MOST_COLUMNS];
    let mut at = 0;
    while at < MOST_COLUMNS {
        positions[at] = at;
        at += 1;
    }
    positions
};

/// More references than this from key to key are a circle.
const LONGEST_CHAIN: usize = 16;

impl TableDef {
    /// A STRICT table with these columns, the first of which is the key, and nothing else: to be completed by struct
    /// update.
    #[must_use]
    pub const fn new(
        name: &'static str,
        entity: &'static str,
        columns: &'static [ColumnDef],
        key_origin: KeyOrigin,
    ) -> Self {
        Self {
            name,
            entity,
            strict: true,
            without_rowid: false,
            autoincrement: false,
            columns,
            checks: &[],
            key: &[0],
            key_origin,
            version: None,
            commit_seq: None,
            tombstones: false,
            created_at: None,
            updated_at: None,
            foreign_keys: &[],
            indexes: &[],
            filters: &[],
        }
    }

    /// The columns of the primary key, in its order.
    pub fn key_columns(&self) -> impl Iterator<Item = &'static ColumnDef> {
        let columns = self.columns;
        self.key.iter().map(move |column| &columns[*column])
    }

    /// Whether a column is part of the primary key.
    #[must_use]
    pub fn is_key(&self, column: usize) -> bool {
        self.key.contains(&column)
    }

    /// The column of the key, if the writer gives its values.
    #[must_use]
    pub fn writer_key(&self) -> Option<usize> {
        match *self.key {
            [column] if self.key_origin == KeyOrigin::Writer && !self.refers(column) => {
                Some(column)
            }
            _ => None,
        }
    }

    /// The column of the key, if it is that of an entity of another table, and that table.
    pub(crate) fn shared_key(&self) -> Option<(usize, &'static Self)> {
        let &[column] = self.key else { return None };
        if !self.refers(column) {
            return None;
        }
        let mut foreign_keys = self.foreign_keys();
        let foreign_key = foreign_keys.find(|key| key.columns.contains(&column))?;
        Some((column, (foreign_key.reference.table)()))
    }

    /// All foreign keys.
    pub fn foreign_keys(&self) -> impl Iterator<Item = ForeignKey> {
        let single = (self.columns.iter().enumerate()).filter_map(|(index, column)| {
            Some(ForeignKey {
                columns: position(index),
                reference: column.references?,
            })
        });
        single.chain(self.foreign_keys.iter().copied())
    }

    /// The sets of columns in which no two rows are equal: the key, unique columns, and unique indexes of all rows.
    pub fn unique_keys(&self) -> impl Iterator<Item = &'static [usize]> {
        let single = (self.columns.iter().enumerate())
            .filter(|(_, column)| column.unique)
            .map(|(index, _)| position(index));
        let indexes = self.indexes.iter().filter_map(|index| match index.on {
            IndexedBy::Columns(columns) if index.unique && index.filter.is_none() => Some(columns),
            _ => None,
        });
        std::iter::once(self.key).chain(single).chain(indexes)
    }

    /// Whether rows are unique in what [`unique_keys`](Self::unique_keys) does not tell: part of the rows, expressions.
    #[must_use]
    pub fn has_conditional_keys(&self) -> bool {
        let is_conditional = |index: &IndexDef| {
            index.filter.is_some() || matches!(index.on, IndexedBy::Expressions(_))
        };
        (self.indexes.iter()).any(|index| index.unique && is_conditional(index))
    }

    /// The columns that are right only together with this one, and this one.
    #[must_use]
    pub fn group(&self, column: usize) -> Range<usize> {
        let Group { before, after } = self.columns[column].group;
        column - before..column + after + 1
    }

    /// The table whose writer gives the values of this column: the one at the end of its references, or this one.
    #[must_use]
    pub fn key_source(&'static self, column: usize) -> Option<&'static Self> {
        let (mut table, mut column) = (self, column);
        for _ in 0..LONGEST_CHAIN {
            if !table.refers(column) {
                return (table.writer_key() == Some(column)).then_some(table);
            }
            (table, column) = table.foreign_keys().find_map(|foreign_key| {
                let at = (foreign_key.columns.iter()).position(|member| *member == column)?;
                let target = (foreign_key.reference.table)();
                Some((target, *target.key.get(at)?))
            })?;
        }
        None
    }

    /// The columns that a save writes, by their positions: all but those that the database computes.
    pub fn written_columns(&self) -> impl Iterator<Item = usize> {
        (self.columns.iter().enumerate())
            .filter(|(_, column)| column.generated.is_none())
            .map(|(index, _)| index)
    }

    /// The columns that the database computes, by their positions.
    pub fn computed_columns(&self) -> impl Iterator<Item = usize> {
        (self.columns.iter().enumerate())
            .filter(|(_, column)| column.generated.is_some())
            .map(|(index, _)| index)
    }

    /// Whether a column is the database's to write: the commit number, and what it computes.
    #[must_use]
    pub fn is_given(&self, column: usize) -> bool {
        self.commit_seq == Some(column) || self.columns[column].generated.is_some()
    }

    /// Whether a column is not the application's to change: the key, the version, what the database writes.
    #[must_use]
    pub fn keeps(&self, column: usize) -> bool {
        self.is_key(column) || self.version == Some(column) || self.is_given(column)
    }

    /// Whether any column may hold large values.
    #[must_use]
    pub fn has_large_columns(&self) -> bool {
        self.columns.iter().any(|column| column.large)
    }

    /// Whether rows are read without some column unless it is asked for.
    #[must_use]
    pub const fn defers(&self) -> bool {
        let mut column = 0;
        while column < self.columns.len() {
            if self.columns[column].deferred {
                return true;
            }
            column += 1;
        }
        false
    }

    /// Whether a column is part of a foreign key.
    pub(crate) fn refers(&self, column: usize) -> bool {
        self.columns[column].references.is_some()
            || (self.foreign_keys.iter()).any(|key| key.columns.contains(&column))
    }
}

impl ColumnDef {
    /// Whether a time is one that nobody set: NULL, or in a column without it the type's default, the start of 1970.
    pub(crate) fn is_unset_time(&self, time: &Value) -> bool {
        if self.nullable {
            return time.is_null();
        }
        DateTime::UNIX_EPOCH
            .encode()
            .is_ok_and(|epoch| epoch == *time)
    }

    /// A NOT NULL column, and nothing else: to be completed by struct update.
    #[must_use]
    pub const fn new(name: &'static str, storage: Storage) -> Self {
        Self {
            name,
            field: name,
            storage,
            nullable: false,
            large: false,
            deferred: false,
            unique: false,
            index: false,
            collate: None,
            check: None,
            one_of: OneOf::Any,
            default: None,
            generated: None,
            references: None,
            group: Group {
                before: 0,
                after: 0,
            },
        }
    }
}

fn position(column: usize) -> &'static [usize] {
    &POSITIONS[column..=column]
}

/// The name of the table with the deleted keys of this one.
pub(crate) fn tombstones_of(table: &str) -> String {
    format!("anabranch_deleted_{table}")
}
