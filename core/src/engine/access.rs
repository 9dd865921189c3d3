//! Which tables a statement reads and writes, by its text, as SQLite's authorizer tells when it is prepared.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use rusqlite::{Connection, OptionalExtension};

use crate::engine::{
    hooks::{Access, Authorizer},
    rowid::rowid,
};

/// What is known of the statements of one connection.
#[derive(Debug)]
pub(in crate::engine) struct Accesses {
    authorizer: Arc<Authorizer>,
    schema: Option<i64>,
    known: HashMap<Arc<str>, Arc<StatementAccess>>,
    /// Triggers may change rows of which the update hook does not tell; `None` until it was asked.
    triggers_are_blind: Option<bool>,
}

/// The tables of one statement.
#[derive(Debug, Default)]
pub(in crate::engine) struct StatementAccess {
    /// Those that it reads, through views, triggers and foreign keys too.
    pub(in crate::engine) reads: Vec<Box<str>>,
    /// Those that it writes.
    pub(in crate::engine) writes: Vec<Written>,
    /// It reads ordinary tables and nothing else: while they do not change, its answer does not.
    pub(in crate::engine) is_repeatable: bool,
    /// What it writes may differ though none of the tables that it names has changed: it reads other things, or rows in
    /// an order that the plan decides.
    pub(in crate::engine) rests_on_more: bool,
    pub(in crate::engine) changes_schema: bool,
    /// It asks about, or sets, something other than tables.
    pub(in crate::engine) is_pragma: bool,
}

/// A table that a statement writes.
#[derive(Debug)]
pub(in crate::engine) struct Written {
    pub(in crate::engine) table: Box<str>,
    /// Whether rows may change of which the update hook does not tell: it has no rowid, or rows are replaced.
    pub(in crate::engine) is_blind: bool,
}

impl StatementAccess {
    /// Whether `changes()` tells of it, once it has run.
    pub(in crate::engine) const fn counts_rows(&self) -> bool {
        !self.changes_schema && !self.is_pragma
    }
}

/// More texts than this are not remembered.
const MOST_KNOWN: usize = 4096;

impl Accesses {
    pub(in crate::engine) fn new(authorizer: Arc<Authorizer>) -> Self {
        Self {
            authorizer,
            schema: None,
            known: HashMap::new(),
            triggers_are_blind: None,
        }
    }

    /// Runs a statement of an application.
    pub(in crate::engine) fn judged<T>(&self, run: impl FnOnce() -> T) -> T {
        self.authorizer.theirs(run)
    }

    /// To be called at the begin of a transaction: with another schema everything is asked anew.
    pub(in crate::engine) fn look_at_schema(
        &mut self,
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let present = connection
            .prepare_cached("PRAGMA schema_version")?
            .query_row([], |row| row.get(0))?;
        if self.schema.replace(present) != Some(present) {
            self.forget();
        }
        Ok(())
    }

    /// A statement changed the schema.
    pub(in crate::engine) fn forget(&mut self) {
        self.known.clear();
        self.triggers_are_blind = None;
    }

    /// What a statement accesses; `None` if SQLite does not take it.
    pub(in crate::engine) fn of(
        &mut self,
        connection: &Connection,
        text: &Arc<str>,
    ) -> Option<Arc<StatementAccess>> {
        if let Some(known) = self.known.get(text) {
            return Some(Arc::clone(known));
        }
        let prepare = || self.authorizer.theirs(|| connection.prepare(text));
        let (prepared, access) = self.authorizer.watching(prepare);
        prepared.ok()?;
        let found = Arc::new(self.resolved(connection, text, access).ok()?);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(Arc::clone(text), Arc::clone(&found));
        Some(found)
    }

    fn resolved(
        &mut self,
        connection: &Connection,
        text: &str,
        access: Access,
    ) -> rusqlite::Result<StatementAccess> {
        let mut found = StatementAccess {
            is_repeatable: !access.is_pragma && !access.changes_schema && !access.asks_connection,
            changes_schema: access.changes_schema,
            is_pragma: access.is_pragma,
            ..StatementAccess::default()
        };
        for table in access.reads {
            match kind(connection, &table)? {
                Kind::Table { .. } => found.reads.push(table),
                // What is behind it is told as well.
                Kind::View => {}
                Kind::Other => {
                    found.is_repeatable = false;
                    found.reads.push(table);
                }
            }
        }
        let text = text.to_ascii_lowercase();
        found.rests_on_more = !found.is_repeatable || text.contains("select");
        // Of rows that are replaced, or deleted all at once, the hook does not tell.
        let deletes_all =
            text.contains("delete") && (!text.contains("where") || text.contains("with"));
        let replaces =
            text.contains("replace") || deletes_all || self.triggers_are_blind(connection)?;
        for table in access.writes {
            let is_blind = match kind(connection, &table)? {
                Kind::View => continue,
                Kind::Table { tells } => {
                    if counts_keys(connection, &table)? {
                        // Of which the authorizer does not tell.
                        found.reads.push(SEQUENCE.into());
                        found.writes.push(Written {
                            table: SEQUENCE.into(),
                            is_blind: true,
                        });
                    }
                    !tells || replaces || moves_rows(connection, &access.updates, &table)?
                }
                Kind::Other => true,
            };
            found.writes.push(Written { table, is_blind });
        }
        Ok(found)
    }

    fn triggers_are_blind(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        if let Some(known) = self.triggers_are_blind {
            return Ok(known);
        }
        // Of rows that are replaced, or deleted all at once, the hook does not tell.
        let are_blind = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger'
             AND (sql LIKE '%replace%' OR sql LIKE '%delete%'))",
            [],
            |row| row.get(0),
        )?;
        self.triggers_are_blind = Some(are_blind);
        Ok(are_blind)
    }
}

enum Kind {
    Table {
        /// Whether the update hook tells of each row that changes.
        tells: bool,
    },
    View,
    /// A virtual table, one of SQLite's own, or none at all.
    Other,
}

fn kind(connection: &Connection, name: &str) -> rusqlite::Result<Kind> {
    if name.starts_with("sqlite_") {
        return Ok(Kind::Other);
    }
    let found: Option<(String, bool)> = connection
        .prepare_cached("SELECT type, wr FROM pragma_table_list(?1) WHERE schema = 'main'")?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match found {
        Some((kind, without_rowid)) if kind == "table" => Kind::Table {
            tells: !without_rowid && !replaces_rows(connection, name)?,
        },
        Some((kind, _)) if kind == "view" => Kind::View,
        _ => Kind::Other,
    })
}

/// SQLite's table of the largest keys of tables with AUTOINCREMENT.
const SEQUENCE: &str = "sqlite_sequence";

/// Whether the table is one with AUTOINCREMENT.
fn counts_keys(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1
             AND sql LIKE '%autoincrement%')",
        )?
        .query_row([table], |row| row.get(0))
}

/// Whether a statement may give rows of the table other rowids: the update hook tells of the new ones alone.
fn moves_rows(
    connection: &Connection,
    updates: &BTreeSet<(Box<str>, Box<str>)>,
    table: &str,
) -> rusqlite::Result<bool> {
    let Some(rowid) = rowid(connection, table)? else {
        return Ok(false);
    };
    Ok(updates.iter().any(|(updated, column)| {
        &**updated == table
            && (column.eq_ignore_ascii_case(&rowid) || column.eq_ignore_ascii_case("rowid"))
    }))
}

/// Whether a constraint of the table is declared with ON CONFLICT REPLACE.
fn replaces_rows(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1
             AND sql LIKE '%replace%')",
        )?
        .query_row([table], |row| row.get(0))
}
