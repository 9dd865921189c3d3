//! What tables could have: commit numbers, indexes, STRICT.

use rusqlite::{Connection, Result, Row, types::ValueRef};

use crate::doctor::{Check, Finding, findings::is_of_a_definition};

/// Rows of stamped tables without a number.
pub(super) fn unstamped(connection: &Connection) -> Result<Vec<Finding>> {
    let stamped = texts(
        connection,
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name = 'anabranch_stamped'",
        [],
    )?;
    if stamped.is_empty() {
        return Ok(Vec::new());
    }
    let listed = texts_of_two(
        connection,
        "SELECT table_name, column_name FROM main.anabranch_stamped
         WHERE EXISTS (SELECT 1 FROM pragma_table_info(table_name, 'main') AS c WHERE c.name = column_name COLLATE NOCASE)",
    );
    let mut findings = Vec::new();
    for (table, column) in or_nothing(listed)? {
        let sql = format!(
            "SELECT count(*) FROM main.{} WHERE coalesce({}, 0) = 0",
            quoted(&table),
            quoted(&column)
        );
        let rows: i64 = or_nothing(connection.query_row(&sql, [], |row| row.get(0)))?;
        if rows > 0 {
            let message = format!(
                "{rows} rows have no commit number in {column}: a program without the library wrote them, or they are \
                 older than the column; stamp_foreign_writes stamps those to come"
            );
            findings.push(Finding::problem(Check::Unstamped, Some(table), message));
        }
    }
    Ok(findings)
}

/// Foreign keys that no index begins with.
pub(super) fn missing_indexes(connection: &Connection) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for table in ordinary(connection)? {
        let covered = covered(connection, &table)?;
        for columns in references(connection, &table)? {
            let is_covered = covered.iter().any(|index| {
                index.len() >= columns.len()
                    && columns
                        .iter()
                        .all(|column| index[..columns.len()].contains(column))
            });
            if !is_covered {
                let list: Vec<_> = columns.iter().map(|column| quoted(column)).collect();
                let message = format!(
                    "no index begins with {}: deleting or changing what it refers to reads the whole table; CREATE INDEX {} ON {} ({})",
                    columns.join(", "),
                    quoted(&free_name(connection, &table, &columns)?),
                    quoted(&table),
                    list.join(", ")
                );
                let table = Some(table.clone());
                findings.push(Finding::advice(Check::MissingIndex, table, message));
            }
        }
    }
    Ok(findings)
}

/// A name for an index, as the library would give it, that nothing has yet.
fn free_name(connection: &Connection, table: &str, columns: &[String]) -> Result<String> {
    let name = format!("{table}_{}", columns.join("_"));
    let taken = texts(connection, "SELECT lower(name) FROM main.sqlite_schema", [])?;
    let names = (2_u32..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.clone()).chain(names);
    let free = names.find(|name| !taken.contains(&name.to_ascii_lowercase()));
    Ok(free.unwrap_or(name))
}

/// Tables that are not STRICT, though all types and values would do.
pub(super) fn strict_candidates(connection: &Connection) -> Result<Vec<Finding>> {
    let tables = texts(
        connection,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
        [],
    )?;
    let mut findings = Vec::new();
    for table in tables {
        if could_be_strict(connection, &table)? {
            let message = "all values fit their types: the table could be STRICT".to_owned();
            findings.push(Finding::advice(Check::Strict, Some(table), message));
        }
    }
    Ok(findings)
}

fn could_be_strict(connection: &Connection, table: &str) -> Result<bool> {
    let mut statement = connection.prepare(
        "SELECT name, upper(type), pk FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1",
    )?;
    let columns = statement.query_map([table], |row| {
        Ok((text(row, 0)?, text(row, 1)?, row.get::<_, i64>(2)?))
    })?;
    let mut unfit = Vec::new();
    for column in columns {
        let (name, declared, key) = column?;
        let name = quoted(&name);
        if key > 0 {
            unfit.push(format!("{name} IS NULL"));
        }
        let class = match declared.as_str() {
            "INT" | "INTEGER" => "integer",
            "REAL" => "real",
            "TEXT" => "text",
            "BLOB" => "blob",
            "ANY" => continue,
            _ => return Ok(false),
        };
        unfit.push(format!("typeof({name}) NOT IN ('null', '{class}')"));
    }
    let sql = format!(
        "SELECT NOT EXISTS (SELECT 1 FROM main.{} WHERE {})",
        quoted(table),
        if unfit.is_empty() {
            "FALSE".to_owned()
        } else {
            unfit.join(" OR ")
        }
    );
    or_nothing(connection.query_row(&sql, [], |row| row.get(0)))
}

/// All tables that have pages.
pub(super) fn with_pages(connection: &Connection) -> Result<Vec<String>> {
    texts(
        connection,
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name",
        [],
    )
}

/// Nothing, where a definition is in the way: it calls for a function of another program, or is not what its name says.
fn or_nothing<T: Default>(asked: Result<T>) -> Result<T> {
    match asked {
        Err(error) if is_of_a_definition(&error) => Ok(T::default()),
        asked => asked,
    }
}

/// Tables with rows of their own that are no part of another thing.
fn ordinary(connection: &Connection) -> Result<Vec<String>> {
    texts(
        connection,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name",
        [],
    )
}

/// The columns of each foreign key, in lower case.
fn references(connection: &Connection, table: &str) -> Result<Vec<Vec<String>>> {
    let lists = texts(
        connection,
        "SELECT group_concat(lower(\"from\"), char(0)) FROM
         (SELECT id, \"from\" FROM pragma_foreign_key_list(?1, 'main') ORDER BY id, seq) GROUP BY id",
        [table],
    )?;
    let columns = |list: &String| list.split('\0').map(str::to_owned).collect();
    Ok(lists.iter().map(columns).collect())
}

/// The columns of each index that is for all rows, and the key, in lower case.
fn covered(connection: &Connection, table: &str) -> Result<Vec<Vec<String>>> {
    let indexes = texts(
        connection,
        "SELECT name FROM pragma_index_list(?1, 'main') WHERE NOT partial",
        [table],
    )?;
    let mut covered = Vec::new();
    for index in indexes {
        covered.push(texts(
            connection,
            "SELECT coalesce(lower(name), '') FROM pragma_index_info(?1, 'main') ORDER BY seqno",
            [&index],
        )?);
    }
    // An INTEGER PRIMARY KEY has no index: it is the order of the table.
    covered.push(texts(
        connection,
        "SELECT lower(name) FROM pragma_table_info(?1, 'main') WHERE pk > 0 ORDER BY pk",
        [table],
    )?);
    Ok(covered)
}

pub(super) fn texts(
    connection: &Connection,
    sql: &str,
    args: impl rusqlite::Params,
) -> Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map(args, |row| text(row, 0))?.collect()
}

fn texts_of_two(connection: &Connection, sql: &str) -> Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
    rows.collect()
}

/// Whatever is there as a text: names are not always UTF-8, least of all in a damaged file.
pub(super) fn text(row: &Row<'_>, index: usize) -> Result<String> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    })
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
