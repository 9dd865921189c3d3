//! The table of the keys that were deleted from another, and the triggers that fill it.
//!
//! A key is in it once, with its last deletion. It is a stamped table like the other one: the writer gives its rows the number of
//! the commit, whoever wrote the DELETE.

use crate::{
    entity::{ColumnDef, TableDef},
    sql::Identifier,
    value::Storage,
};

/// The column with the number of the commit.
pub(crate) const TOMBSTONE_SEQ: &str = "anabranch_seq";

/// The name of the table with the deleted keys of this one.
pub(crate) fn tombstones_of(table: &str) -> String {
    format!("anabranch_deleted_{table}")
}

pub(super) fn create_tombstones(table: &TableDef) -> [String; 4] {
    let name = tombstones_of(table.name);
    let columns: Vec<_> = table.key_columns().map(column_line).collect();
    let key = listed(table, |column| Identifier(column.name).to_string(), ", ");
    let old = listed(
        table,
        |column| format!("OLD.{}", Identifier(column.name)),
        ", ",
    );
    let is_old = listed(
        table,
        |column| format!("{0} IS OLD.{0}", Identifier(column.name)),
        " AND ",
    );
    let is_changed = listed(
        table,
        |column| format!("NEW.{0} IS NOT OLD.{0}", Identifier(column.name)),
        " OR ",
    );
    let trigger = |what: &str, event: &str, when: &str| {
        format!(
            "CREATE TRIGGER IF NOT EXISTS {trigger} AFTER {event} ON {table}{when} BEGIN
  DELETE FROM {deleted} WHERE {is_old};
  INSERT INTO {deleted} ({key}) VALUES ({old});
END",
            trigger = Identifier(&format!("anabranch_{}_{what}", table.name)),
            table = Identifier(table.name),
            deleted = Identifier(&name),
        )
    };
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {} (
  {},
  {TOMBSTONE_SEQ} INTEGER NOT NULL DEFAULT 0,
  anabranch_deleted_at INTEGER NOT NULL DEFAULT (unixepoch()),
  PRIMARY KEY ({key})
) STRICT",
            Identifier(&name),
            columns.join(",\n  "),
        ),
        format!(
            "CREATE INDEX IF NOT EXISTS {} ON {} ({TOMBSTONE_SEQ})",
            Identifier(&format!("{name}_seq")),
            Identifier(&name),
        ),
        trigger("deleted", "DELETE", ""),
        trigger(
            "rekeyed",
            &format!("UPDATE OF {key}{}", rowid_names(table)),
            &format!(" WHEN {is_changed}"),
        ),
    ]
}

/// The other names of a key that is the rowid, by which it can be changed too.
fn rowid_names(table: &TableDef) -> &'static str {
    let mut key = table.key_columns();
    match (key.next().map(|column| column.storage), key.next()) {
        (Some(Storage::Integer), None) => ", rowid, oid, _rowid_",
        _ => "",
    }
}

fn column_line(column: &'static ColumnDef) -> String {
    let mut line = format!(
        "{} {} NOT NULL",
        Identifier(column.name),
        match column.storage {
            Storage::Integer => "INTEGER",
            _ => "ANY",
        }
    );
    if let Some(collate) = column.collate {
        line.push_str(" COLLATE ");
        line.push_str(&Identifier(collate).to_string());
    }
    line
}

fn listed(table: &TableDef, part: impl Fn(&'static ColumnDef) -> String, between: &str) -> String {
    let parts: Vec<_> = table.key_columns().map(part).collect();
    parts.join(between)
}
