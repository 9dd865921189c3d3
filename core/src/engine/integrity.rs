//! Whether a file is whole: what SQLite's own checks find.

use rusqlite::Connection;

use crate::{
    engine::sqlite_error::from_rusqlite,
    error::{Error, ErrorKind, Result},
    sql::Identifier,
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
    /// What SQLite could not check, and why, a hundred at most: a table whose definition calls for a function or a collation
    /// of another program, or whose foreign key names no key of the other table. Other tables are checked all the same.
    pub unchecked: Vec<String>,
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
    /// Whether everything was checked, and nothing found.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.messages.is_empty() && self.broken_references.is_empty() && self.unchecked.is_empty()
    }
}

/// Runs both checks, which read the whole file.
pub(in crate::engine) fn check(connection: &Connection) -> Result<Integrity> {
    let mut unchecked = Vec::new();
    let mut messages = whole_or_by_table(connection, &mut unchecked, damage)?;
    let mut broken_references = whole_or_by_table(connection, &mut unchecked, broken_references)?;
    messages.truncate(MOST);
    broken_references.truncate(MOST);
    unchecked.truncate(MOST);
    Ok(Integrity {
        messages,
        broken_references,
        unchecked,
    })
}

/// The names of all tables that have pages.
pub(in crate::engine) fn tables(connection: &Connection) -> Result<Vec<String>> {
    let names =
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name";
    texts(connection, names).map_err(from_rusqlite)
}

/// One definition that SQLite can make nothing of fails a check as a whole: then tables are checked one by one.
fn whole_or_by_table<T>(
    connection: &Connection,
    unchecked: &mut Vec<String>,
    check: impl Fn(&Connection, Option<&str>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    match check(connection, None) {
        Err(error) if error.kind() == ErrorKind::Statement => {}
        whole => return whole,
    }
    let mut found = Vec::new();
    for table in tables(connection)? {
        match check(connection, Some(&table)) {
            Err(error) if error.kind() == ErrorKind::Statement => {
                unchecked.push(format!("{table}: {error}"));
            }
            one => found.extend(one?),
        }
    }
    Ok(found)
}

fn damage(connection: &Connection, table: Option<&str>) -> Result<Vec<String>> {
    let of = table.map_or_else(|| MOST.to_string(), |table| Identifier(table).to_string());
    let sql = format!("PRAGMA main.integrity_check({of})");
    match texts(connection, &sql).map_err(from_rusqlite) {
        // A message may have several lines, each a finding.
        Ok(messages) => Ok((messages.iter())
            .flat_map(|message| message.lines())
            .filter(|line| *line != "ok")
            .map(str::to_owned)
            .collect()),
        // Too damaged for the check itself.
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(vec![error.to_string()]),
        Err(error) => Err(error.with_statement(sql)),
    }
}

fn broken_references(connection: &Connection, table: Option<&str>) -> Result<Vec<BrokenReference>> {
    let of = table.map_or_else(String::new, |table| format!("({})", Identifier(table)));
    let sql = format!("PRAGMA main.foreign_key_check{of}");
    let read = || {
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([], |row| {
            Ok(BrokenReference {
                table: text(row, 0)?,
                rowid: row.get(1)?,
                parent: text(row, 2)?,
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

fn texts(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| text(row, 0))?.collect()
}

/// Names, and what is said of them, are not always UTF-8, least of all in a damaged file.
fn text(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(index)?.as_bytes()?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
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

    #[test]
    fn what_cannot_be_checked_keeps_nothing_else_from_it() {
        let connection = Connection::open_in_memory().unwrap();
        let rows = "PRAGMA foreign_keys = OFF;
            CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE child (parent REFERENCES parent); INSERT INTO child VALUES (7);
            CREATE TABLE odd (name REFERENCES parent (name)); INSERT INTO odd VALUES (1);
            CREATE TABLE strange (name TEXT CHECK (abs(name) > 0)); INSERT INTO strange VALUES (1);
            CREATE TABLE null_there (name TEXT); INSERT INTO null_there VALUES (NULL);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'abs(', 'theirs(') WHERE name = 'strange';
            UPDATE sqlite_schema SET sql = replace(sql, 'TEXT', 'TEXT NOT NULL') WHERE name = 'null_there';
            PRAGMA writable_schema = RESET;";
        connection.execute_batch(rows).unwrap();
        let found = check(&connection).unwrap();
        assert_eq!(found.messages, ["NULL value in null_there.name"]);
        assert_eq!(found.broken_references.len(), 1);
        assert_eq!(found.broken_references[0].table, "child");
        let [strange, odd] = &found.unchecked[..] else {
            panic!("{found:?}");
        };
        assert!(
            strange.starts_with("strange: unknown function: theirs()"),
            "{strange}"
        );
        assert!(odd.starts_with("odd: foreign key mismatch"), "{odd}");
    }
}
