//! What has to be there once tables were made: `IF NOT EXISTS` passes over a table that is another one.

use rusqlite::Connection;

use crate::{
    engine::{rowid::has_column, sqlite_error::from_rusqlite},
    error::{Error, ErrorKind, Result},
};

/// A column that has to be in the file, and the table that it refers to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedColumn {
    pub(crate) table: &'static str,
    pub(crate) name: &'static str,
    pub(crate) refers_to: Option<&'static str>,
}

impl ExpectedColumn {
    pub(in crate::engine) fn check(&self, connection: &Connection) -> Result<()> {
        let refused = |message: String| {
            Error::new(ErrorKind::Model, message)
                .with_table(self.table)
                .with_column(self.name)
        };
        if !has_column(connection, self.table, self.name).map_err(from_rusqlite)? {
            return Err(refused(
                "the table exists already, without this column: add it with ALTER TABLE, or name another table"
                    .to_owned(),
            ));
        }
        match self.refers_to {
            Some(target) if !exists(connection, target).map_err(from_rusqlite)? => {
                Err(refused(format!(
                    "refers to the table {target}, which does not exist: list its entity in create_tables as well"
                )))
            }
            _ => Ok(()),
        }
    }
}

fn exists(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE)",
        )?
        .query_row([table], |row| row.get(0))
}
