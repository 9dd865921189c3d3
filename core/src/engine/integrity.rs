//! Whether a file is whole: what SQLite's own checks find.

use rusqlite::Connection;

use crate::{
    engine::sqlite_error::from_rusqlite,
    error::{Error, ErrorKind, Result},
};

/// After so many findings of one kind no more are listed.
const MOST: usize = 100;

/// What [`Database::integrity`](crate::database::Database::integrity) found: nothing, if all is well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Integrity {
    /// What SQLite's `integrity_check` says of pages, indexes and constraints, a hundred messages at most. With any the
    /// file is damaged, or was written against its own rules.
    pub messages: Vec<String>,
    /// References that lead nowhere, a hundred at most: rows that a program wrote with foreign keys switched off.
    pub broken_references: Vec<BrokenReference>,
}

/// A row that refers to one that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenReference {
    /// The table of the row.
    pub table: String,
    /// The row, where its table has rowids.
    pub rowid: Option<i64>,
    /// The table that it refers to.
    pub parent: String,
}

impl Integrity {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.messages.is_empty() && self.broken_references.is_empty()
    }
}

/// Runs both checks, which read the whole file.
pub(in crate::engine) fn check(connection: &Connection) -> Result<Integrity> {
    Ok(Integrity {
        messages: damage(connection)?,
        broken_references: broken_references(connection)?,
    })
}

fn damage(connection: &Connection) -> Result<Vec<String>> {
    let sql = format!("PRAGMA main.integrity_check({MOST})");
    let read = || {
        let mut statement = connection.prepare(&sql)?;
        let messages = statement.query_map([], |row| row.get::<_, String>(0))?;
        messages.collect::<rusqlite::Result<Vec<_>>>()
    };
    match read().map_err(from_rusqlite) {
        Ok(messages) if messages == ["ok"] => Ok(Vec::new()),
        // A message may have several lines, each a finding.
        Ok(messages) => Ok((messages.iter())
            .flat_map(|message| message.lines())
            .map(str::to_owned)
            .collect()),
        // Too damaged for the check itself.
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(vec![error.to_string()]),
        Err(error) => Err(error.with_statement(sql)),
    }
}

fn broken_references(connection: &Connection) -> Result<Vec<BrokenReference>> {
    let sql = "PRAGMA main.foreign_key_check";
    let read = || {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(BrokenReference {
                table: row.get(0)?,
                rowid: row.get(1)?,
                parent: row.get(2)?,
            })
        })?;
        rows.take(MOST).collect::<rusqlite::Result<Vec<_>>>()
    };
    match read().map_err(from_rusqlite) {
        // The check of the pages has said so.
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Vec::new()),
        other => other.map_err(|error: Error| error.with_statement(sql)),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::engine::integrity::{MOST, check};

    #[test]
    fn findings_have_an_end() {
        let connection = Connection::open_in_memory().unwrap();
        let rows = "PRAGMA foreign_keys = OFF;
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (parent NOT NULL REFERENCES parent);
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO child SELECT i FROM n";
        connection.execute_batch(rows).unwrap();
        let found = check(&connection).unwrap();
        assert!(!found.is_ok());
        assert!(found.messages.is_empty(), "the pages are whole");
        assert_eq!(found.broken_references.len(), MOST);
        assert_eq!(found.broken_references[0].parent, "parent");
    }
}
