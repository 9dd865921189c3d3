//! What a file is.

use std::{fmt, fs, path::Path};

use anabranch::engine::network_name;
use rusqlite::{Result, types::FromSql};
use serde::Serialize;

use crate::{doctor::plain, log::Log, look::Look};

/// What a database file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// Absolute, links resolved.
    pub path: String,
    /// The SQLite that looks, which is that of the library.
    pub sqlite_version: &'static str,
    /// The size of the file.
    pub bytes: u64,
    /// The size of a page.
    pub page_size: i64,
    /// Its pages, with those that are in the log alone.
    pub pages: i64,
    /// Pages that hold nothing.
    pub free_pages: i64,
    /// `wal`, or `rollback`.
    pub journal_mode: &'static str,
    /// The log, in mode WAL.
    pub log: Option<Log>,
    /// How text is kept.
    pub encoding: String,
    /// 0 for none, 1 for full, 2 for incremental.
    pub auto_vacuum: i64,
    /// The application's number.
    pub user_version: i64,
    /// Which application it belongs to.
    pub application_id: i64,
    /// Tables, but for those of SQLite's own.
    pub tables: i64,
    /// Of them those that are STRICT.
    pub strict_tables: i64,
    /// Tables whose rows have commit numbers.
    pub stamped_tables: i64,
    /// The last commit number.
    pub last_commit: Option<i64>,
    /// How many names the file has.
    pub hard_links: u64,
    /// Its file system, if that is one of a network.
    pub network_file_system: Option<&'static str>,
}

pub(super) fn of(look: &Look) -> Result<Facts> {
    let ask = |sql: &str| {
        look.connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
    };
    let has_table = |name| {
        ask(&format!(
            "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = '{name}'"
        ))
        .map(|count| count > 0)
    };
    let tables = "FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let stamped_tables = if has_table("anabranch_stamped")? {
        ask("SELECT count(*) FROM main.anabranch_stamped")?
    } else {
        0
    };
    // Whoever made a table of this name, it need not be ours.
    let last_commit = if has_table("anabranch_sequence")? {
        ask("SELECT last FROM main.anabranch_sequence").ok()
    } else {
        None
    };
    Ok(Facts {
        path: look.path.display().to_string(),
        sqlite_version: rusqlite::version(),
        bytes: fs::metadata(&look.path).map_or(0, |found| found.len()),
        page_size: pragma(look, "page_size")?,
        pages: pragma(look, "page_count")?,
        free_pages: pragma(look, "freelist_count")?,
        journal_mode: if look.is_wal { "wal" } else { "rollback" },
        log: None,
        encoding: pragma(look, "encoding")?,
        auto_vacuum: pragma(look, "auto_vacuum")?,
        user_version: pragma(look, "user_version")?,
        application_id: pragma(look, "application_id")?,
        tables: ask(&format!("SELECT count(*) {tables}"))?,
        strict_tables: ask(&format!("SELECT count(*) {tables} AND strict"))?,
        stamped_tables,
        last_commit,
        hard_links: hard_links(&look.path),
        network_file_system: network_name(&look.path),
    })
}

fn pragma<T: FromSql>(look: &Look, name: &str) -> Result<T> {
    look.connection
        .pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(unix)]
fn hard_links(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).map_or(1, |found| found.nlink())
}

#[cfg(not(unix))]
fn hard_links(_path: &Path) -> u64 {
    1
}

/// A line for each, in two columns.
impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "{name:<15}{}", plain(&value));
        line("file", self.path.clone())?;
        line("sqlite", self.sqlite_version.to_owned())?;
        let pages = format!(
            "{} bytes, {} pages of {}, {} free",
            self.bytes, self.pages, self.page_size, self.free_pages
        );
        line("size", pages)?;
        line("journal", self.journal_mode.to_owned())?;
        if let Some(log) = &self.log {
            line("log", log.to_string())?;
        }
        line("encoding", self.encoding.clone())?;
        let auto_vacuum = match self.auto_vacuum {
            0 => "none",
            1 => "full",
            _ => "incremental",
        };
        line("auto_vacuum", auto_vacuum.to_owned())?;
        let versions = format!(
            "user_version {}, application_id {}",
            self.user_version, self.application_id
        );
        line("versions", versions)?;
        line(
            "tables",
            format!("{}, {} of them STRICT", self.tables, self.strict_tables),
        )?;
        if let Some(last) = self.last_commit {
            let stamped = format!("{last} in {} tables", self.stamped_tables);
            line("commit numbers", stamped)?;
        }
        line("names", self.hard_links.to_string())?;
        let file_system = self.network_file_system.unwrap_or("local");
        line("file system", file_system.to_owned())
    }
}
