//! The table of the keys that were deleted from another, and the triggers that fill it.
//!
//! A key is in it once, with its last deletion. It is a stamped table like the other one: the writer gives its rows the number of
//! the commit, whoever wrote the DELETE. A deletion that gets no number, since another program wrote it, leaves the one that is
//! there, which consumers may not have seen yet.
//!
//! Keys are told apart by their bytes, however the table compares them: so does who keeps the rows.

use crate::{
    entity::{ColumnDef, TableDef, tombstones_of},
    sql::Identifier,
    value::Storage,
};

/// The column with the number of the commit.
pub(crate) const TOMBSTONE_SEQ: &str = "anabranch_seq";

/// The name of the trigger that notes the deletions from this table.
pub(crate) fn deleted_trigger_of(table: &str) -> String {
    format!("anabranch_{table}_deleted")
}

/// The name of the one that notes the keys that changed.
pub(crate) fn rekeyed_trigger_of(table: &str) -> String {
    format!("anabranch_{table}_rekeyed")
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
        |column| {
            let name = Identifier(column.name);
            format!("NEW.{name} COLLATE BINARY IS NOT OLD.{name}")
        },
        " OR ",
    );
    let trigger = |trigger: String, event: &str, when: &str| {
        format!(
            "CREATE TRIGGER IF NOT EXISTS {trigger} AFTER {event} ON {table}{when} BEGIN
  UPDATE {deleted} SET anabranch_deleted_at = unixepoch() WHERE {is_old};
  INSERT INTO {deleted} ({key}) SELECT {old} WHERE NOT EXISTS (SELECT 1 FROM {deleted} WHERE {is_old});
END",
            trigger = Identifier(&trigger),
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
            Identifier(&format!("anabranch_seq_of_{}", table.name)),
            Identifier(&name),
        ),
        trigger(deleted_trigger_of(table.name), "DELETE", ""),
        trigger(
            rekeyed_trigger_of(table.name),
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
    format!(
        "{} {} NOT NULL",
        Identifier(column.name),
        match column.storage {
            Storage::Integer => "INTEGER",
            _ => "ANY",
        }
    )
}

fn listed(table: &TableDef, part: impl Fn(&'static ColumnDef) -> String, between: &str) -> String {
    let parts: Vec<_> = table.key_columns().map(part).collect();
    parts.join(between)
}
