//! By which column a table's rows are found, as SQLite's update hook names them.

use rusqlite::{Connection, OptionalExtension};

/// SQLite's own names of it.
const NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// The name of the rowid of a table: its INTEGER PRIMARY KEY, or what no other column is called. `None` if there is
/// none of which the hook tells: in a view, a virtual table, a table WITHOUT ROWID, or one whose columns have taken all
/// names.
pub(in crate::engine) fn rowid(
    connection: &Connection,
    table: &str,
) -> rusqlite::Result<Option<Box<str>>> {
    let has_rowid: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM pragma_table_list(?1)
             WHERE schema = 'main' AND type IN ('table', 'shadow') AND NOT wr)",
        )?
        .query_row([table], |row| row.get(0))?;
    if !has_rowid {
        return Ok(None);
    }
    // An INTEGER PRIMARY KEY is the one kind of primary key without an index.
    let key = connection
        .prepare_cached(
            "SELECT name FROM pragma_table_xinfo(?1) WHERE pk = 1
             AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')",
        )?
        .query_row([table], |row| row.get::<_, String>(0))
        .optional()?;
    if let Some(key) = key {
        return Ok(Some(key.into()));
    }
    for name in NAMES {
        if !has_column(connection, table, name)? {
            return Ok(Some(name.into()));
        }
    }
    Ok(None)
}

/// Whether SQLite gives a key to rows that are inserted into a table without one: to the rowid it does, an `INT PRIMARY KEY`
/// is NULL then. What a view or a virtual table makes of it is theirs to say.
pub(in crate::engine) fn gives_keys(
    connection: &Connection,
    table: &str,
    column: &str,
) -> rusqlite::Result<bool> {
    let is_plain: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM pragma_table_list(?1) WHERE schema = 'main' AND type = 'table')
             AND EXISTS (SELECT 1 FROM pragma_table_xinfo(?1)
                 WHERE name = ?2 COLLATE NOCASE AND dflt_value IS NULL AND hidden = 0)",
        )?
        .query_row([table, column], |row| row.get(0))?;
    Ok(!is_plain
        || rowid(connection, table)?.is_some_and(|rowid| rowid.eq_ignore_ascii_case(column)))
}

/// Whether a table or view has this column.
pub(in crate::engine) fn has_column(
    connection: &Connection,
    table: &str,
    column: &str,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2 COLLATE NOCASE)",
        )?
        .query_row([table, column], |row| row.get(0))
}
