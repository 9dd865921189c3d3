//! The text of statements on one table: by names only, with the placeholders `?1`, `?2`, ... in the order
//! in which the columns are given.

use std::{
    fmt::{self, Write},
    sync::Arc,
};

use crate::sql::{ColumnList, Identifier};

/// Inserts one row, and returns the columns of `returning`.
pub(crate) fn insert(
    table: &str,
    columns: &[&'static str],
    returning: &[&'static str],
) -> Arc<str> {
    written(|text| {
        inserted(text, table, columns, 1)?;
        returned(text, returning)
    })
}

/// Inserts so many rows; with `skips_conflicts` those that are not there yet.
pub(crate) fn insert_rows(
    table: &str,
    columns: &[&'static str],
    rows: usize,
    skips_conflicts: bool,
) -> Arc<str> {
    written(|text| {
        inserted(text, table, columns, rows)?;
        if skips_conflicts {
            text.push_str(" ON CONFLICT DO NOTHING");
        }
        Ok(())
    })
}

/// Sets the columns of `set` in the row where those of `filter` are equal, and returns those of `returning`; `set` has
/// the first placeholders.
pub(crate) fn update(
    table: &str,
    set: &[&str],
    filter: &[&str],
    returning: &[&'static str],
) -> Arc<str> {
    written(|text| {
        write!(text, "UPDATE {} SET ", Identifier(table))?;
        equal(text, set, ", ", 1)?;
        text.push_str(" WHERE ");
        equal(text, filter, " AND ", set.len() + 1)?;
        returned(text, returning)
    })
}

/// Deletes the row where the columns of `filter` are equal.
pub(crate) fn delete(table: &str, filter: &[&str]) -> Arc<str> {
    written(|text| {
        write!(text, "DELETE FROM {} WHERE ", Identifier(table))?;
        equal(text, filter, " AND ", 1)
    })
}

/// Asks whether there is a row where the columns of `filter` are equal.
pub(crate) fn exists(table: &str, filter: &[&str]) -> Arc<str> {
    written(|text| {
        write!(
            text,
            "SELECT EXISTS (SELECT 1 FROM {} WHERE ",
            Identifier(table)
        )?;
        equal(text, filter, " AND ", 1)?;
        text.push(')');
        Ok(())
    })
}

fn written(write: impl FnOnce(&mut String) -> fmt::Result) -> Arc<str> {
    let mut text = String::new();
    write(&mut text).expect("a String takes any text");
    text.into()
}

fn inserted(text: &mut String, table: &str, columns: &[&'static str], rows: usize) -> fmt::Result {
    let names = ColumnList::new(columns.iter().copied());
    let names = names.as_sql();
    write!(text, "INSERT INTO {} ({names}) VALUES ", Identifier(table))?;
    for row in 0..rows {
        text.push_str(if row > 0 { ", (" } else { "(" });
        for column in 0..columns.len() {
            let comma = if column > 0 { ", " } else { "" };
            write!(text, "{comma}?{}", row * columns.len() + column + 1)?;
        }
        text.push(')');
    }
    Ok(())
}

fn returned(text: &mut String, columns: &[&'static str]) -> fmt::Result {
    if columns.is_empty() {
        return Ok(());
    }
    let columns = ColumnList::new(columns.iter().copied());
    write!(text, " RETURNING {}", columns.as_sql())
}

fn equal(text: &mut String, columns: &[&str], separator: &str, first: usize) -> fmt::Result {
    for (index, column) in columns.iter().enumerate() {
        let separator = if index > 0 { separator } else { "" };
        write!(
            text,
            "{separator}{} = ?{}",
            Identifier(column),
            first + index
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::sql::dml::{delete, insert, insert_rows, update};

    #[test]
    fn names_are_quoted_and_placeholders_numbered() {
        expect![[r#"INSERT INTO "order" ("id", "a""b") VALUES (?1, ?2)"#]].assert_eq(&insert(
            "order",
            &["id", "a\"b"],
            &[],
        ));
        expect![[
            r#"INSERT INTO "order" ("id", "a") VALUES (?1, ?2), (?3, ?4) ON CONFLICT DO NOTHING"#
        ]]
        .assert_eq(&insert_rows("order", &["id", "a"], 2, true));
        expect![[
            r#"UPDATE "order" SET "a" = ?1, "version" = ?2 WHERE "id" = ?3 AND "version" = ?4"#
        ]]
        .assert_eq(&update("order", &["a", "version"], &["id", "version"], &[]));
        expect![[r#"DELETE FROM "order" WHERE "id" = ?1"#]].assert_eq(&delete("order", &["id"]));
    }
}
