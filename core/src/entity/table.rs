//! The definition of a table, as a derive writes it down.

use crate::value::{KeyOrigin, Storage};

/// The table of an entity.
#[derive(Debug)]
pub struct TableDef {
    /// The table's name.
    pub name: &'static str,
    /// The Rust name of the entity.
    pub entity: &'static str,
    /// Whether the table is STRICT.
    pub strict: bool,
    /// The columns, in the order of the struct's fields.
    pub columns: &'static [ColumnDef],
    /// CHECK conditions that concern the whole row, as SQL.
    pub checks: &'static [&'static str],
    /// The index of the primary key's column.
    pub key: usize,
    /// Who gives new entities their key.
    pub key_origin: KeyOrigin,
    /// The index of the `version` column.
    pub version: Option<usize>,
    /// The index of the `commit_seq` column.
    pub commit_seq: Option<usize>,
}

/// A column of a table.
#[derive(Debug)]
pub struct ColumnDef {
    /// The column's name.
    pub name: &'static str,
    /// The declared type.
    pub storage: Storage,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Whether values may be large.
    pub large: bool,
    /// Whether values are unique.
    pub unique: bool,
    /// Whether the column has an index.
    pub index: bool,
    /// A CHECK condition, as SQL.
    pub check: Option<&'static str>,
    /// The DEFAULT for rows that other programs insert, as SQL.
    pub default: Option<&'static str>,
    /// The entity that the column refers to.
    pub references: Option<Reference>,
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

impl TableDef {
    /// The primary key's column.
    #[must_use]
    pub const fn key_column(&self) -> &'static ColumnDef {
        &self.columns[self.key]
    }

    /// Whether any column may hold large values.
    #[must_use]
    pub fn has_large_columns(&self) -> bool {
        self.columns.iter().any(|column| column.large)
    }
}
