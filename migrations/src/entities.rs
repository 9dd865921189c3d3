//! Entity structs from an existing database.
//!
//! [`generate`] reads what the tables say of themselves, and then looks at every row: SQLite keeps what it is given,
//! so that a column declared INTEGER may hold text. A field gets a type that reads, and writes again, all that the
//! column holds; what no attribute of the derive can say is told in a note.
//!
//! The way of a table: `catalog` and `definition` read what it says, `values` what it holds, `draft` gives its columns
//! types and chooses the key, `references` and `relations` bring the tables together, `model` names everything, and
//! `source` writes it.

mod catalog;
mod choices;
mod definition;
mod draft;
mod indexes;
mod model;
mod names;
mod notes;
pub(crate) mod open;
mod references;
mod relations;
mod source;
mod text;
mod token;
mod values;

use std::path::Path;

use anabranch::error::{Error, ErrorKind, Result};
use rusqlite::Connection;

use crate::{
    entities::{
        catalog::{Class, Listed, Table},
        draft::Draft,
        indexes::{IndexNames, Indexes},
        notes::{Notes, shown},
    },
    look,
};

/// What to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Options {
    tables: Vec<String>,
    relations: bool,
    rowid_keys: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            relations: true,
            rowid_keys: false,
        }
    }
}

impl Options {
    /// All tables, with their relations.
    pub fn new() -> Self {
        Self::default()
    }

    /// These tables alone, however their names are capitalised.
    pub fn tables<N: Into<String>>(mut self, tables: impl IntoIterator<Item = N>) -> Self {
        self.tables = tables.into_iter().map(Into::into).collect();
        self
    }

    /// Whether relations are written beside the foreign keys: `has_many`, `has_one`, and names for those of the other
    /// side. On by default.
    pub const fn relations(mut self, relations: bool) -> Self {
        self.relations = relations;
        self
    }

    /// Whether a table without a key gets an entity too, whose key is SQLite's own number of the row, the rowid. Off by
    /// default: `VACUUM` may give the rows other numbers, so do not keep such a key for longer than a transaction.
    pub const fn rowid_keys(mut self, rowid_keys: bool) -> Self {
        self.rowid_keys = rowid_keys;
        self
    }

    /// The command that does the same.
    fn command(&self, path: &Path) -> String {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let mut command = format!("anabranch entities --from {file}");
        if !self.tables.is_empty() {
            command.push_str(" --tables ");
            command.push_str(&self.tables.join(","));
        }
        if !self.relations {
            command.push_str(" --no-relations");
        }
        if self.rowid_keys {
            command.push_str(" --rowid-keys");
        }
        command
    }
}

/// The entities of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// A page of Rust: one struct a table, and an enum for each column that is one.
    pub source: String,
    /// What could not be said in it, and what was left out; each begins with the table and perhaps the column.
    pub notes: Vec<String>,
}

/// Reads the database at `path`, and writes an entity for each of its tables.
///
/// The database is only read, in one transaction, all rows included. The same database gives the same text. Views and
/// virtual tables are left out, with a note.
///
/// # Errors
///
/// * [`ErrorKind::CannotOpen`]: there is no such file, or it cannot be opened. The message shows the absolute path.
/// * [`ErrorKind::NotADatabase`], [`ErrorKind::Corrupt`], [`ErrorKind::Io`]: it cannot be read.
/// * [`ErrorKind::Busy`]: another process locks it for more than some seconds.
/// * [`ErrorKind::Options`]: there is no table of a name that was asked for.
///
/// # Examples
///
/// ```
/// use anabranch_migrations::entities::{Options, generate};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// # rusqlite::Connection::open(&path)?.execute_batch(
/// #     "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, price REAL)",
/// # )?;
/// let generated = generate(&path, &Options::new())?;
/// assert!(generated.source.ends_with(
///     r#"
/// /// A row of `orders`.
/// #[derive(Debug, Clone, PartialEq, Entity)]
/// #[entity(table = "orders", strict = false)]
/// pub struct Order {
///     #[entity(id)]
///     pub id: i64,
///     pub item: String,
///     pub price: Option<f64>,
/// }
/// "#
/// ));
/// assert!(generated.notes.is_empty());
/// # Ok(()) }
/// ```
pub fn generate(path: &Path, options: &Options) -> Result<Generated> {
    let look = look::open(path)?;
    let read = read(&look.connection, options);
    let (page, notes) = read.map_err(|error| match error {
        Failed::Sqlite(error) => open::failed(path, &error),
        Failed::Known(error) => error,
    })?;
    let (entities, indexes) = page;
    Ok(Generated {
        source: source::page(&entities, &indexes, &options.command(path)),
        notes: notes.0,
    })
}

/// Why it was not read.
enum Failed {
    Sqlite(rusqlite::Error),
    Known(Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

type Page = (Vec<model::Entity>, Vec<Indexes>);

fn read(connection: &Connection, options: &Options) -> std::result::Result<(Page, Notes), Failed> {
    // One state of it.
    connection.execute_batch("BEGIN")?;
    let listed = catalog::list(connection)?;
    check_wanted(&listed, options).map_err(Failed::Known)?;
    let mut notes = Notes::default();
    let mut names = IndexNames::default();
    let mut drafts = Vec::new();
    for listed in &listed {
        names.add(&listed.name);
        if !is_wanted(listed, options) || is_left_out(listed, &mut notes) {
            continue;
        }
        drafts.extend(draft(connection, listed, options, &mut notes)?);
    }
    for draft in &drafts {
        for index in &draft.table.indexes {
            names.add(&index.name);
        }
        note_conflict_clauses(&draft.table, &mut notes);
        note_columns(draft, &mut notes);
    }
    let tables: Vec<_> = listed.into_iter().map(|listed| listed.name).collect();
    let references = references::resolve(&mut drafts, &tables, &mut notes);
    let mut entities = model::entities(drafts, references);
    relations::name_all(&mut entities, options.relations);
    let indexes = (entities.iter())
        .map(|entity| Indexes::of(entity, &mut names, &mut notes))
        .collect();
    Ok(((entities, indexes), notes))
}

fn is_wanted(listed: &Listed, options: &Options) -> bool {
    let mut wanted = options.tables.iter();
    options.tables.is_empty() || wanted.any(|name| name.eq_ignore_ascii_case(&listed.name))
}

/// Every table that was asked for is there.
fn check_wanted(listed: &[Listed], options: &Options) -> Result<()> {
    for wanted in &options.tables {
        let mut tables = listed.iter();
        if !tables.any(|listed| listed.name.eq_ignore_ascii_case(wanted)) {
            let names: Vec<_> = (listed.iter())
                .filter(|listed| listed.class == Class::Table)
                .map(|listed| shown(&listed.name))
                .collect();
            return Err(Error::new(
                ErrorKind::Options,
                format!(
                    "there is no table {}: the tables are {}",
                    shown(wanted),
                    names.join(", ")
                ),
            ));
        }
    }
    Ok(())
}

/// Whether it is nothing for an entity; a note says why.
fn is_left_out(listed: &Listed, notes: &mut Notes) -> bool {
    let folded = listed.name.to_ascii_lowercase();
    let why = match listed.class {
        Class::View => "a view; an entity is a table",
        Class::Virtual => "a virtual table; an entity is an ordinary one",
        Class::Shadow => "a part of a virtual table",
        Class::Table if folded.starts_with("sqlite_") => "a table of SQLite's own",
        Class::Table if folded.starts_with("anabranch_") => "a table of anabranch's own",
        Class::Table if folded.trim().is_empty() => "a table without a name",
        Class::Table => return false,
    };
    notes.add(&listed.name, &format!("no entity: it is {why}"));
    true
}

/// Looks at one table; one that cannot be read by itself, as its computed columns call functions that are not here,
/// is left out.
fn draft(
    connection: &Connection,
    listed: &Listed,
    options: &Options,
    notes: &mut Notes,
) -> rusqlite::Result<Option<Draft>> {
    let table = Table::read(connection, listed)?;
    let drafted = Draft::of(connection, table, options.rowid_keys, notes);
    if let Err(rusqlite::Error::SqliteFailure(code, Some(message))) = &drafted
        && code.extended_code == rusqlite::ffi::SQLITE_ERROR
    {
        notes.add(
            &listed.name,
            &format!("no entity: it cannot be read ({message})"),
        );
        return Ok(None);
    }
    drafted
}

fn note_conflict_clauses(table: &Table, notes: &mut Notes) {
    if table.on_conflict {
        notes.add(
            &table.name,
            "a constraint says ON CONFLICT, which is left out; a save that breaks it may replace or drop rows without a word",
        );
    }
}

/// What a reader of the struct would not expect.
fn note_columns(draft: &Draft, notes: &mut Notes) {
    use crate::entities::values::RustType;
    for (at, column) in draft.table.columns.iter().enumerate() {
        let drafted = &draft.columns[at];
        let mut add = |note: &str| notes.of_column(&draft.table, at, note);
        let declared = column.declared.to_ascii_uppercase();
        match drafted.rust_type {
            None if column.name.trim().is_empty() => add("left out: its name is empty"),
            None => add("left out: it holds text that is not UTF-8, which no type reads"),
            Some(RustType::Any)
                if drafted.held.values
                    && (drafted.held.fits(RustType::Bytes) || drafted.held.fits(RustType::F64)) =>
            {
                add("no type of a key keeps what it holds, so the field is a `Value`");
            }
            Some(RustType::Any) if drafted.held.values => {
                add("it holds values of several classes, so the field is a `Value`");
            }
            Some(RustType::String)
                if column.affinity.is_number()
                    && drafted.choices.is_none()
                    && !["DATE", "TIME"].iter().any(|word| declared.contains(word)) =>
            {
                add(&format!(
                    "it holds text, but is declared {}: SQLite would make a number of text that looks like one, which the field could not read",
                    shown(&declared)
                ));
            }
            Some(_) => {}
        }
        if drafted.held.nul {
            add("a text in it contains a NUL character: it is read, but not written");
        }
        let known = ["BINARY", "NOCASE", "RTRIM"];
        if let Some(collate) = &column.collate
            && !known.iter().any(|name| name.eq_ignore_ascii_case(collate))
        {
            add(&format!(
                "its collation {} is not SQLite's own: to compare, sort or index by it fails",
                shown(collate)
            ));
        }
    }
}
