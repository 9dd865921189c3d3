//! A table on its way to an entity: of which types its columns are, and which of them are the key.

use rusqlite::{Connection, Result};

use crate::entities::{
    catalog::{Index, Origin, Table},
    choices::Choices,
    notes::Notes,
    values::{Held, RustType, held, rust_type},
};

/// A key has at most so many columns.
const MOST_KEY_COLUMNS: usize = 12;

/// A table that becomes an entity. Columns are named by their positions in the table.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) table: Table,
    pub(crate) columns: Vec<DraftColumn>,
    /// The columns of the key, in its order.
    pub(crate) key: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct DraftColumn {
    /// `None` if the column is left out.
    pub(crate) rust_type: Option<RustType>,
    /// The variants, if it is an enum.
    pub(crate) choices: Option<Choices>,
    pub(crate) held: Held,
}

impl Draft {
    /// Looks at the rows; `None`, with a note that says why, if the table cannot be an entity.
    pub(crate) fn of(
        connection: &Connection,
        mut table: Table,
        rowid_keys: bool,
        notes: &mut Notes,
    ) -> Result<Option<Self>> {
        let rowid = rowid_keys.then(|| table.push_rowid()).flatten();
        let choices: Vec<_> = table.columns.iter().map(Choices::of_column).collect();
        let held = held(connection, &table, &choices)?;
        let columns = (table.columns.iter().zip(held)).zip(choices);
        let columns = columns.map(|((column, held), choices)| DraftColumn {
            rust_type: rust_type(column, &held).filter(|_| !column.name.trim().is_empty()),
            choices: choices.filter(|_| held.chosen),
            held,
        });
        let mut draft = Self {
            columns: columns.collect(),
            key: Vec::new(),
            table,
        };
        match draft.choose_key(notes) {
            Ok(()) if rowid.is_some() => {
                draft.table.columns.pop();
                draft.columns.pop();
                Ok(Some(draft))
            }
            Ok(()) => Ok(Some(draft)),
            Err(why) => {
                if let Some(rowid) = rowid
                    && draft.take_key(&[rowid]).is_ok()
                {
                    let note = format!("{why}; its key is the rowid, which VACUUM may change");
                    notes.add(&draft.table.name, &note);
                    return Ok(Some(draft));
                }
                let note = format!(
                    "no entity: {why}, and no unique index of columns that are NOT NULL could be the key instead; add such an index, or write an entity whose key is the rowid (--rowid-keys)"
                );
                notes.add(&draft.table.name, &note);
                Ok(None)
            }
        }
    }

    /// Whether the field is an `Option`.
    pub(crate) fn is_optional(&self, column: usize) -> bool {
        !self.key.contains(&column)
            && (!self.table.columns[column].not_null || self.columns[column].held.nulls)
    }

    /// The sets of columns in which no two rows are equal, the key first.
    pub(crate) fn unique_keys(&self) -> impl Iterator<Item = Vec<usize>> {
        let indexes = self.table.indexes.iter();
        let unique = indexes.filter(|index| index.unique && index.filter.is_none());
        std::iter::once(self.key.clone()).chain(unique.filter_map(Index::plain))
    }

    /// Whether no two rows are equal in these columns.
    pub(crate) fn is_unique(&self, columns: &[usize]) -> bool {
        (self.unique_keys()).any(|key| key.iter().all(|column| columns.contains(column)))
    }

    /// Gives a column another type, if it keeps what is stored and will be.
    pub(crate) fn retype(&mut self, column: usize, rust_type: RustType) -> bool {
        let affinity = self.table.columns[column].affinity;
        let draft = &mut self.columns[column];
        let is_safe = draft.held.values || rust_type.suits(affinity);
        if draft.rust_type.is_none() || !draft.held.fits(rust_type) || !is_safe {
            return false;
        }
        draft.rust_type = Some(rust_type);
        draft.choices = None;
        true
    }

    /// The primary key, or a unique index that will do.
    fn choose_key(&mut self, notes: &mut Notes) -> std::result::Result<(), String> {
        let primary = self.table.primary_key();
        let refused = match self.take_key(&primary) {
            Ok(()) => {
                self.note_null_keys(notes);
                return Ok(());
            }
            Err(refused) => refused,
        };
        let mut unique: Vec<_> = (self.table.indexes.iter())
            .filter(|index| index.unique && index.filter.is_none())
            .filter_map(|index| Some((index.name.clone(), index.plain()?)))
            .filter(|(_, columns)| {
                (columns.iter()).all(|&column| self.table.columns[column].not_null)
            })
            .collect();
        unique.sort_by_key(|(_, columns)| columns.len());
        for (_, columns) in unique {
            if self.take_key(&columns).is_ok() {
                let names: Vec<_> = (columns.iter())
                    .map(|&column| self.table.columns[column].name.as_str())
                    .collect();
                notes.add(
                    &self.table.name,
                    &format!(
                        "{refused}; its unique {} is the key instead",
                        names.join(", ")
                    ),
                );
                return Ok(());
            }
        }
        Err(refused)
    }

    /// Makes these columns the key, or says what is against it.
    fn take_key(&mut self, key: &[usize]) -> std::result::Result<(), String> {
        if key.is_empty() {
            return Err(
                "it has no primary key (a rowid is none unless a column is declared INTEGER PRIMARY KEY)".to_owned(),
            );
        }
        if key.len() > MOST_KEY_COLUMNS {
            return Err(format!(
                "its primary key has {} columns, and the key of an entity at most {MOST_KEY_COLUMNS}",
                key.len()
            ));
        }
        let types: Vec<_> = (key.iter())
            .map(|&column| self.key_type(column))
            .collect::<std::result::Result<_, _>>()?;
        for (&column, rust_type) in key.iter().zip(types) {
            self.columns[column].rust_type = Some(rust_type);
            self.columns[column].choices = None;
        }
        self.key = key.to_vec();
        Ok(())
    }

    fn key_type(&self, at: usize) -> std::result::Result<RustType, String> {
        let (column, draft) = (&self.table.columns[at], &self.columns[at]);
        let name = &column.name;
        if name.trim().is_empty() {
            return Err("the name of its key's column is empty".to_owned());
        }
        if draft.held.nulls {
            return Err(format!(
                "there are rows with NULL in {name}, a part of its key"
            ));
        }
        if column.generated.is_some() {
            return Err(format!("{name}, a part of its key, is computed"));
        }
        let guess = if column.affinity.is_number() {
            RustType::I64
        } else {
            RustType::String
        };
        let wanted = draft.rust_type.filter(|_| draft.held.values);
        let others = [RustType::I64, RustType::String, RustType::Any];
        std::iter::once(wanted.unwrap_or(guess))
            .chain(others)
            .find(|&rust_type| rust_type.is_key() && draft.held.fits(rust_type))
            .ok_or_else(|| format!("{name}, a part of its key, holds text that is not UTF-8"))
    }

    /// SQLite has always allowed NULL in keys that are no rowid.
    fn note_null_keys(&self, notes: &mut Notes) {
        let table = &self.table;
        if table.strict || table.without_rowid || table.key_is_rowid() {
            return;
        }
        for &column in &self.key {
            if !table.columns[column].not_null {
                notes.of_column(
                    table,
                    column,
                    "a part of the key that the table allows to be NULL; a row with NULL in it could not be read",
                );
            }
        }
    }
}

impl Index {
    /// The columns, if they say all: it compares them as they are, and its order is of no use to anybody who does not
    /// ask for it.
    pub(crate) fn plain(&self) -> Option<Vec<usize>> {
        let is_asked_for = self.origin == Origin::CreateIndex;
        let plain = self.columns.iter().map(|column| {
            let says_all = column.own_collation && !(column.descending && is_asked_for);
            column.column.filter(|_| says_all)
        });
        plain.collect()
    }
}
