//! The tables of all workloads, and what is in them.

use std::path::Path;

use anabranch::prelude::*;
use rusqlite::Connection;

use crate::operation::{Cell, plain_cell};

/// Each unit's row, which has the unit's commit number.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "event")]
pub(crate) struct Event {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(commit_seq)]
    pub(crate) seq: CommitSeq,
}

/// The table of most statements.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "item")]
pub(crate) struct Item {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(index)]
    pub(crate) grp: i64,
    pub(crate) val: i64,
    #[entity(unique)]
    pub(crate) tag: Option<String>,
}

/// Rows that have commit numbers.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "stock")]
pub(crate) struct Stock {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) val: i64,
    #[entity(commit_seq)]
    pub(crate) seq: CommitSeq,
}

/// What entities do not say.
const OTHERS: &str = "
CREATE TABLE pair (a INTEGER, b INTEGER, val INTEGER NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE parent (id INTEGER PRIMARY KEY, val INTEGER NOT NULL);
CREATE TABLE child (
    id INTEGER PRIMARY KEY,
    parent_id INTEGER NOT NULL REFERENCES parent ON DELETE CASCADE,
    later INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX child_parent ON child (parent_id);
CREATE INDEX child_later ON child (later);
CREATE TABLE logged (id INTEGER PRIMARY KEY, val INTEGER NOT NULL CHECK (val < 1000000));
CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, of INTEGER, old INTEGER, new INTEGER);
CREATE TRIGGER logged_insert AFTER INSERT ON logged BEGIN
    INSERT INTO log (what, of, new) VALUES ('insert', NEW.id, NEW.val);
END;
CREATE TRIGGER logged_update AFTER UPDATE ON logged BEGIN
    SELECT RAISE(ABORT, 'negative') WHERE NEW.val < 0 AND NEW.val > -1000;
    SELECT RAISE(ROLLBACK, 'far too negative') WHERE NEW.val <= -1000;
    INSERT INTO log (what, of, old, new) VALUES ('update', NEW.id, OLD.val, NEW.val);
END;
CREATE TRIGGER logged_delete AFTER DELETE ON logged BEGIN
    INSERT INTO log (what, of, old) VALUES ('delete', OLD.id, OLD.val);
END;
CREATE TABLE computed (
    id INTEGER PRIMARY KEY,
    val INTEGER NOT NULL,
    double INTEGER GENERATED ALWAYS AS (val * 2) STORED,
    third INTEGER GENERATED ALWAYS AS (val % 3) VIRTUAL
);
CREATE INDEX computed_third ON computed (third);
CREATE TABLE seat (
    id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER UNIQUE, c INTEGER UNIQUE ON CONFLICT ROLLBACK
);
CREATE TRIGGER seat_full BEFORE INSERT ON seat WHEN NEW.id % 4 = 0 BEGIN
    SELECT CASE WHEN val % 2 THEN RAISE(ROLLBACK, 'full') ELSE RAISE(ABORT, 'full') END FROM item WHERE id = 1;
END;
CREATE TABLE noise (id INTEGER PRIMARY KEY, chance INTEGER NOT NULL, at REAL NOT NULL);
CREATE VIRTUAL TABLE docs USING fts5 (body);
CREATE VIEW totals AS SELECT grp, count(*) AS items, sum(val) AS total FROM item GROUP BY grp;
WITH n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 12)
INSERT INTO item (id, grp, val, tag) SELECT x, x % 5, 100, CASE WHEN x % 2 THEN 't' || x END FROM n;
INSERT INTO pair SELECT id, id % 3, 10 FROM item;
INSERT INTO parent SELECT id, 0 FROM item WHERE id <= 6;
INSERT INTO child SELECT id, 1 + id % 6, NULL FROM item;
INSERT INTO logged SELECT id, 50 FROM item;
INSERT INTO stock SELECT id, 100, 0 FROM item;
INSERT INTO seat SELECT id, id, id, id FROM item WHERE id % 2;
INSERT INTO computed (id, val) SELECT id, id FROM item;
INSERT INTO docs (rowid, body) SELECT id, 'word' || id % 4 || ' text' FROM item;
";

/// What is dumped. Commit numbers and full-text shadows are the library's and SQLite's own.
const DUMPED: [&str; 14] = [
    "SELECT id FROM event ORDER BY id",
    "SELECT id, grp, val, tag FROM item ORDER BY id",
    "SELECT a, b, val FROM pair ORDER BY a, b",
    "SELECT id, val FROM parent ORDER BY id",
    "SELECT id, parent_id, later FROM child ORDER BY id",
    "SELECT id, val FROM logged ORDER BY id",
    "SELECT id, what, of, old, new FROM log ORDER BY id",
    "SELECT id, val, double, third FROM computed ORDER BY id",
    "SELECT id, chance, at FROM noise ORDER BY id",
    "SELECT rowid, body FROM docs ORDER BY rowid",
    "SELECT id, val FROM stock ORDER BY id",
    "SELECT id, a, b, c FROM seat ORDER BY id",
    "SELECT name, seq FROM sqlite_sequence ORDER BY name",
    "SELECT name, sql FROM sqlite_schema WHERE name = 'item_val' ORDER BY name",
];

/// The rows of each query of the dump.
pub(crate) type Dump = Vec<Vec<Vec<Cell>>>;

/// Makes the tables in a new file, which is closed again: it can be copied.
pub(crate) async fn make(file: &Path) {
    let db = Database::open(file).await.unwrap();
    db.create_tables::<(Event, Item, Stock)>().await.unwrap();
    let made = db.write(async |tx| {
        sqlx::raw_sql(OTHERS).execute(&mut *tx).await?;
        Ok(())
    });
    made.await.unwrap();
    db.close().await.unwrap();
}

/// What is there.
pub(crate) fn dump(connection: &Connection) -> Dump {
    DUMPED.iter().map(|sql| rows(connection, sql)).collect()
}

/// The query of a place in the dump.
pub(crate) const fn dumped(place: usize) -> &'static str {
    DUMPED[place]
}

pub(crate) fn rows(connection: &Connection, sql: &str) -> Vec<Vec<Cell>> {
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..columns)
            .map(|column| Ok(plain_cell(row.get_ref(column)?)))
            .collect()
    });
    rows.unwrap().map(Result::unwrap).collect()
}
