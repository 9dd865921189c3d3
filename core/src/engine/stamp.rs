//! Commit numbers: one for each transaction that touches a stamped table, in commit order.
//!
//! The number comes from a one-row table that only the writer updates, inside of the transaction, at its end:
//! so it is undone with it, and there is no gap that a reader could fall into. Which tables are stamped is
//! written in the file, so that every process that writes through this library knows it from the start.

use rusqlite::Connection;

use crate::{
    engine::{
        hooks::{StampedBy, Touched, Watch},
        rowid::{has_column, rowid},
        sqlite_error::from_rusqlite,
    },
    error::{Error, ErrorKind, Result},
    sql::Identifier,
};

/// The tables of the library's own.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS anabranch_sequence (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        last INTEGER NOT NULL
    ) STRICT;
    INSERT INTO anabranch_sequence (id, last) VALUES (1, 0) ON CONFLICT DO NOTHING;
    CREATE TABLE IF NOT EXISTS anabranch_stamped (
        table_name TEXT PRIMARY KEY NOT NULL,
        column_name TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS anabranch_epoch (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        epoch BLOB NOT NULL
    ) STRICT;
    INSERT INTO anabranch_epoch (id, epoch) VALUES (1, randomblob(16)) ON CONFLICT DO NOTHING;";

/// The list is read again where the schema is another: what is in it has to be known to all who have the file open.
const ANOTHER_SCHEMA: &str = "
    CREATE VIEW anabranch_listed AS SELECT 1;
    DROP VIEW anabranch_listed;";

/// How often triggers on stamped rows may write further ones.
const MOST_ROUNDS: usize = 8;

/// Makes a table a stamped one. Part of the transaction that creates it.
///
/// A table that exists already may be of another kind; once it was listed, nobody could write it any more.
pub(in crate::engine) fn register(
    connection: &Connection,
    table: &str,
    column: &str,
) -> Result<()> {
    if stamped_by(connection, table, column)
        .map_err(from_rusqlite)?
        .is_none()
    {
        return Err(Error::new(
            ErrorKind::Model,
            "the table exists already and cannot be given commit numbers: it lacks this column, or it has no rowid",
        )
        .with_table(table.to_owned())
        .with_column(column.to_owned()));
    }
    connection.execute_batch(TABLES).map_err(from_rusqlite)?;
    let changed = connection
        .execute(
            "INSERT INTO anabranch_stamped (table_name, column_name) VALUES (?1, ?2)
             ON CONFLICT (table_name) DO UPDATE SET column_name = excluded.column_name
             WHERE column_name IS NOT excluded.column_name",
            (table, column),
        )
        .map_err(from_rusqlite)?;
    if changed > 0 {
        connection
            .execute_batch(ANOTHER_SCHEMA)
            .map_err(from_rusqlite)?;
    }
    Ok(())
}

/// Takes the epoch from a copy of the file: where it is restored, its numbers come again for other commits, and each time it
/// is restored for others again.
pub(in crate::engine) fn forget_epoch(connection: &Connection) -> rusqlite::Result<()> {
    if has_epoch(connection)? {
        connection.execute("UPDATE anabranch_epoch SET epoch = x''", [])?;
    }
    Ok(())
}

/// Gives the file an epoch, if it is a copy that nobody has opened yet.
pub(in crate::engine) fn give_epoch(connection: &Connection) -> rusqlite::Result<()> {
    if !has_epoch(connection)? {
        return Ok(());
    }
    let lacks = "SELECT EXISTS (SELECT 1 FROM anabranch_epoch WHERE length(epoch) = 0)";
    if connection.query_row(lacks, [], |row| row.get(0))? {
        // Another process may just have done so.
        let give = "UPDATE anabranch_epoch SET epoch = randomblob(16) WHERE length(epoch) = 0";
        connection.execute(give, [])?;
    }
    Ok(())
}

fn has_epoch(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'anabranch_epoch'",
        [],
        |row| row.get(0),
    )
}

/// Triggers that stamp what another program writes, a number for each row. Our own writes they stamp as well, and the
/// writer then gives the rows of a transaction its one number.
pub(in crate::engine) fn triggers(table: &str, column: &str) -> [String; 2] {
    let trigger = |event: &str, when: &str| {
        format!(
            "CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} ON {table} WHEN {when} BEGIN
                UPDATE anabranch_sequence SET last = last + 1;
                UPDATE {table} SET {column} = (SELECT last FROM anabranch_sequence) WHERE rowid = NEW.rowid;
            END",
            name = Identifier(&format!("anabranch_{table}_{event}")),
            table = Identifier(table),
            column = Identifier(column),
        )
    };
    let of = |row: &str| format!("{row}.{}", Identifier(column));
    [
        trigger("INSERT", "TRUE"),
        trigger("UPDATE", &format!("{} IS {}", of("NEW"), of("OLD"))),
    ]
}

/// Tells the watch which tables the file says are stamped, if the schema is another than `schema`.
pub(in crate::engine) fn load(
    connection: &Connection,
    watch: &Watch,
    schema: &mut Option<i64>,
) -> Result<()> {
    let mut load = || -> rusqlite::Result<()> {
        let present = connection
            .prepare_cached("PRAGMA schema_version")?
            .query_row([], |row| row.get(0))?;
        if *schema == Some(present) {
            return Ok(());
        }
        watch.forget_schema();
        let known: bool = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'anabranch_stamped'",
            [],
            |row| row.get(0),
        )?;
        if !known {
            *schema = Some(present);
            return Ok(());
        }
        let mut statement =
            connection.prepare("SELECT table_name, column_name FROM anabranch_stamped")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (table, column): (String, String) = (row.get(0)?, row.get(1)?);
            // It may have been dropped, or made anew in another way.
            if let Some(by) = stamped_by(connection, &table, &column)? {
                watch.stamp(&table, by);
            }
        }
        *schema = Some(present);
        Ok(())
    };
    load().map_err(from_rusqlite)
}

fn stamped_by(
    connection: &Connection,
    table: &str,
    column: &str,
) -> rusqlite::Result<Option<StampedBy>> {
    if !has_column(connection, table, column)? {
        return Ok(None);
    }
    let rowid = rowid(connection, table)?;
    Ok(rowid.map(|rowid| StampedBy {
        column: column.into(),
        rowid,
    }))
}

/// Stamps the rows that the transaction, or the unit, touched; returns the number if there were any.
pub(in crate::engine) fn stamp(connection: &Connection, watch: &Watch) -> Result<Option<i64>> {
    stamp_on(connection, watch, None)
}

/// The same of a part of a transaction, which has this number if a part before it took one.
pub(in crate::engine) fn stamp_on(
    connection: &Connection,
    watch: &Watch,
    number: Option<i64>,
) -> Result<Option<i64>> {
    let mut touched = watch.take_touched();
    if touched.is_empty() {
        return Ok(number);
    }
    let number = match number {
        Some(number) => number,
        None => connection
            .prepare_cached(NEXT)
            .and_then(|mut next| next.query_row([], |row| row.get(0)))
            .map_err(from_rusqlite)?,
    };
    let mut done: Vec<Touched> = Vec::new();
    for _ in 0..MOST_ROUNDS {
        write(connection, &touched, number).map_err(from_rusqlite)?;
        done.append(&mut touched);
        // Stamping touched them again; what else is there was written by triggers on it.
        touched = watch.take_touched();
        for table in &mut touched {
            table
                .rowids
                .retain(|rowid| !is_among(&done, &table.table, *rowid));
        }
        touched.retain(|table| !table.rowids.is_empty());
        if touched.is_empty() {
            return Ok(Some(number));
        }
    }
    Err(Error::new(
        ErrorKind::Constraint,
        "triggers on UPDATE write further stamped rows whenever rows are stamped, without end",
    ))
}

/// The statements that stamp rows of those of these tables that are stamped, and the one that gives the number.
pub(in crate::engine) fn texts(watch: &Watch, tables: Vec<Box<str>>) -> Vec<String> {
    let stamps = tables.into_iter().filter_map(|table| {
        let by = watch.stamped_by(&table)?;
        Some(text(&table, &by))
    });
    stamps.chain([NEXT.to_owned()]).collect()
}

/// Counts the number up.
const NEXT: &str = "UPDATE anabranch_sequence SET last = last + 1 RETURNING last";

fn text(table: &str, by: &StampedBy) -> String {
    format!(
        "UPDATE {} SET {} = ?1 WHERE {} = ?2",
        Identifier(table),
        Identifier(&by.column),
        Identifier(&by.rowid)
    )
}

fn write(connection: &Connection, touched: &[Touched], number: i64) -> rusqlite::Result<()> {
    for table in touched {
        let mut statement = connection.prepare_cached(&text(&table.table, &table.by))?;
        for rowid in &table.rowids {
            statement.execute((number, rowid))?;
        }
    }
    Ok(())
}

fn is_among(done: &[Touched], table: &str, rowid: i64) -> bool {
    done.iter()
        .any(|known| &*known.table == table && known.rowids.binary_search(&rowid).is_ok())
}
