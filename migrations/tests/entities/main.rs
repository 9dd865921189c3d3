//! Entities from databases of other programs: what is written, that it compiles, and that it reads the same rows.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "what does not work here must fail the test"
)]

/// Pages that an application would show to its other modules.
#[allow(dead_code, unreachable_pub, reason = "not all is used here")]
mod generated {
    pub(crate) mod keys;
    pub(crate) mod nasty;
    pub(crate) mod relations;
}

use std::{
    fs,
    path::{Path, PathBuf},
};

use anabranch::{
    entity::Entity,
    prelude::*,
    query::Query,
    value::{Storage, Value},
};
use anabranch_migrations::entities::{Generated, Options, generate};
use expect_test::{expect, expect_file};
use rusqlite::{Connection, types};
use tempfile::TempDir;

use crate::generated::nasty;

/// A database file with this schema, in a folder that goes away.
fn database(name: &str, sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "foreign_keys", false)
        .unwrap();
    connection.execute_batch(sql).unwrap();
    (folder, path)
}

fn written(sql: &str, options: &Options) -> Generated {
    let (_folder, path) = database("app.db", sql);
    generate(&path, options).unwrap()
}

fn nasty() -> (TempDir, PathBuf) {
    database("nasty.db", include_str!("nasty.sql"))
}

#[test]
fn the_committed_entities_are_those_of_the_schema() {
    let (_folder, path) = nasty();
    let options = Options::new().rowid_keys(true);
    let found = generate(&path, &options).unwrap();
    expect_file!["generated/nasty.rs"].assert_eq(&found.source);
    expect![[r#"
        sqlite_sequence: no entity: it is a table of SQLite's own
        tags.name: a part of the key that the table allows to be NULL; a row with NULL in it could not be read
        no_key: it has no primary key (a rowid is none unless a column is declared INTEGER PRIMARY KEY); its key is the rowid, which VACUUM may change
        unique_key: it has no primary key (a rowid is none unless a column is declared INTEGER PRIMARY KEY); its unique a, b is the key instead
        null_key: there are rows with NULL in id, a part of its key; its key is the rowid, which VACUUM may change
        wide_key: its primary key has 13 columns, and the key of an entity at most 12; its key is the rowid, which VACUUM may change
        anabranch_mine: no entity: it is a table of anabranch's own
        seen: no entity: it is a view; an entity is a table
        words: no entity: it is a virtual table; an entity is an ordinary one
        words_data: no entity: it is a part of a virtual table
        words_idx: no entity: it is a part of a virtual table
        words_content: no entity: it is a part of a virtual table
        words_docsize: no entity: it is a part of a virtual table
        words_config: no entity: it is a part of a virtual table
        Mixed.declared_integer: it holds values of several classes, so the field is a `Value`
        Mixed.declared_text: it holds values of several classes, so the field is a `Value`
        Mixed.anything: it holds values of several classes, so the field is a `Value`
        Mixed.moment: it holds values of several classes, so the field is a `Value`
        Mixed.huge: it holds values of several classes, so the field is a `Value`
        Mixed.string: it holds text, but is declared STRING: SQLite would make a number of text that looks like one, which the field could not read
        Mixed.real_as_text: it holds values of several classes, so the field is a `Value`
        damaged.broken: left out: it holds text that is not UTF-8, which no type reads
        damaged.cut: a text in it contains a NUL character: it is read, but not written
        mixed_keys.code: it holds values of several classes, so the field is a `Value`
        mixed_keys.parent: it holds values of several classes, so the field is a `Value`
        strict_one.x: it holds values of several classes, so the field is a `Value`
        options: a constraint says ON CONFLICT, which is left out; a save that breaks it may replace or drop rows without a word
        options.: left out: its name is empty
        lost.gone_id: the reference to nowhere is left out: there is no such table
        lost.email: the reference to customers is left out: it refers to other columns than the key of that entity
        lost.key_id: the reference to no_key is left out: it refers to other columns than the key of that entity
        orders.seller: it is SET NULL, and a column of it is NOT NULL: the action is left out
        lost.word: the reference to customers is left out: the columns of the two tables hold values of different types"#]].assert_eq(&found.notes.join("\n"));
    assert_eq!(generate(&path, &options).unwrap(), found, "the second time");
}

/// The rows of a table as SQLite has them, in the order of the entity's columns.
fn stored(connection: &Connection, table: &anabranch::entity::TableDef) -> Vec<Vec<Value>> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<_> = (table.columns.iter())
        .map(|column| quoted(column.name))
        .collect();
    let sql = format!("SELECT {} FROM {}", columns.join(", "), quoted(table.name));
    let mut statement = connection.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| {
        let values = (0..columns.len()).map(|at| match row.get_ref(at).unwrap() {
            types::ValueRef::Null => Value::Null,
            // A whole number of a numeric column is an integer in the file.
            types::ValueRef::Integer(value) if table.columns[at].storage == Storage::Real => {
                Value::Real(value as f64)
            }
            types::ValueRef::Integer(value) => Value::Integer(value),
            types::ValueRef::Real(value) => Value::Real(value),
            types::ValueRef::Text(value) => Value::Text(String::from_utf8(value.to_vec()).unwrap()),
            types::ValueRef::Blob(value) => Value::Blob(value.to_vec()),
        });
        Ok(values.collect())
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Reads a table through its entity, and compares every value with what the file holds.
async fn reads_the_same<E: Entity + Send + 'static>(
    db: &Database,
    connection: &Connection,
) -> usize {
    let rows = Query::<E>::new().all(db).await.unwrap();
    let columns = E::TABLE.columns.len();
    let mut read: Vec<Vec<_>> = (rows.iter())
        .map(|row| (0..columns).map(|at| row.encode(at).unwrap()).collect())
        .collect();
    let mut stored = stored(connection, E::TABLE);
    for rows in [&mut read, &mut stored] {
        rows.sort_by_key(|row| format!("{row:?}"));
    }
    assert_eq!(read, stored, "{}", E::TABLE.name);
    read.len()
}

/// Every entity that was generated, but `Damaged`, whose NUL is not written.
macro_rules! all_read_the_same {
    ($db:expr, $connection:expr, $($entity:ident)*) => {{
        let mut read = Vec::new();
        $(
            let rows = reads_the_same::<nasty::$entity>($db, $connection).await;
            read.push(format!("{} {rows}", stringify!($entity)));
        )*
        read
    }};
}

#[tokio::test]
async fn the_entities_read_the_rows_that_are_stored() {
    let (_folder, path) = nasty();
    let db = Database::open(&path).await.unwrap();
    let connection = Connection::open(&path).unwrap();
    let read = all_read_the_same!(
        &db,
        &connection,
        Customer Select Mixed MixedKey Order Tag OrderTag StrictOne NoKey UniqueKey NullKey WideKey
        Lost Hen Egg Profile OptionRow OptionRow2
    );
    expect!["Customer 3, Select 2, Mixed 4, MixedKey 3, Order 3, Tag 2, OrderTag 2, StrictOne 2, NoKey 3, UniqueKey 2, NullKey 2, WideKey 0, Lost 1, Hen 1, Egg 2, Profile 1, OptionRow 1, OptionRow2 0"].assert_eq(&read.join(", "));
    let structs = include_str!("generated/nasty.rs")
        .matches("\npub struct ")
        .count();
    assert_eq!(
        read.len() + 1,
        structs,
        "all but Damaged, whose NUL is not written"
    );
    let damaged = nasty::Damaged::query().one(&db).await.unwrap();
    assert_eq!(damaged.cut.as_deref(), Some("A\0B"));
}

type All = (
    (
        nasty::Customer,
        nasty::Select,
        nasty::Mixed,
        nasty::Damaged,
        nasty::MixedKey,
    ),
    (
        nasty::Order,
        nasty::Tag,
        nasty::OrderTag,
        nasty::StrictOne,
        nasty::UniqueKey,
    ),
    (
        nasty::Lost,
        nasty::Hen,
        nasty::Egg,
        nasty::Profile,
        nasty::OptionRow,
        nasty::OptionRow2,
    ),
);

/// What the derive writes for a table is what the generator read, as far as the notes do not say otherwise.
#[tokio::test]
async fn tables_made_from_the_entities_are_like_those_they_were_made_from() {
    let (_folder, path) = nasty();
    let db = Database::temporary().await.unwrap();
    db.create_tables::<All>().await.unwrap();
    let [there, here] = [&path, db.path()].map(|path| Connection::open(path).unwrap());
    for table in [
        "customers",
        "select",
        "orders",
        "order_tags",
        "mixed_keys",
        "hens",
        "eggs",
        "profiles",
    ] {
        for pragma in [
            "SELECT name, \"notnull\" OR pk, pk, hidden FROM pragma_table_xinfo(?) ORDER BY name",
            "SELECT lower(\"table\"), \"from\", on_delete, on_update FROM pragma_foreign_key_list(?)
             WHERE \"from\" <> 'seller' ORDER BY 2, 1",
            "SELECT x.name, x.\"desc\", x.coll, l.\"unique\", l.partial FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) x
             WHERE x.key ORDER BY l.\"unique\", l.partial, x.seqno, x.name",
        ] {
            let rows = |connection: &Connection| -> Vec<String> {
                let mut statement = connection.prepare(pragma).unwrap();
                let columns = statement.column_count();
                let rows = statement.query_map([table], |row| {
                    let values = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap()));
                    Ok(values.collect::<Vec<_>>().join(" "))
                });
                rows.unwrap().collect::<Result<_, _>>().unwrap()
            };
            assert_eq!(rows(&here), rows(&there), "{table}: {pragma}");
        }
    }
}

#[tokio::test]
async fn rows_are_written_through_the_entities() {
    let (_folder, path) = nasty();
    let db = Database::open(&path).await.unwrap();
    let mut ctx = db.context();
    let row = ctx.add(nasty::NoKey {
        a: Some("new".into()),
        b: None,
        rowid: 0,
    });
    let key = ctx.add(nasty::MixedKey {
        code: Value::Text("b".into()),
        parent: Some(Value::Integer(1)),
    });
    let mut customer = nasty::Customer::find(&db, 1).await.unwrap().unwrap();
    customer.grade = Some(nasty::CustomerGrade::Empty);
    customer.level = Some(nasty::CustomerLevel::Minus1);
    customer.balance = Some(3.0);
    ctx.update(customer).unwrap();
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[row].rowid, 4);
    assert_eq!(ctx[key].code, Value::Text("b".into()));
    let connection = Connection::open(&path).unwrap();
    let row = "SELECT (SELECT a FROM no_key WHERE rowid = 4), (SELECT typeof(parent) FROM mixed_keys WHERE code = 'b'),
        (SELECT grade || level || typeof(balance) FROM customers WHERE id = 1)";
    let found = connection.query_row(row, [], |row| {
        Ok([row.get::<_, String>(0)?, row.get(1)?, row.get(2)?])
    });
    assert_eq!(found.unwrap(), ["new", "integer", "-1integer"]);
}

/// What stands in the source beside what every page has.
fn structs(generated: &Generated) -> &str {
    let (_, structs) = generated.source.split_once("\n\n").unwrap();
    structs
}

#[test]
fn relations_are_on_both_sides() {
    let (_folder, path) = database("relations.db", include_str!("relations.sql"));
    let found = generate(&path, &Options::new()).unwrap();
    expect_file!["generated/relations.rs"].assert_eq(&found.source);
    expect![[r#"
        friendships.person_id: a part of the key that the table allows to be NULL; a row with NULL in it could not be read
        friendships.friend_id: a part of the key that the table allows to be NULL; a row with NULL in it could not be read"#]].assert_eq(&found.notes.join("\n"));
}

/// The page begins with a program: SQL in raw strings, and what is written for it.
#[test]
fn the_guide_shows_what_is_written() {
    let page = include_str!("../../../docs/guide/src/existing.md");
    let between = |from: &str, to: &str| {
        let (_, after) = page.split_once(from).unwrap();
        after.split_once(to).unwrap().0.to_owned()
    };
    let table = between("r#\"", "\"#");
    let rows = between("let rows = \"", "\";");
    let found = written(&format!("{table}; {rows}"), &Options::new());
    assert_eq!(found.notes, [""; 0]);
    let shown = between("```rust\n", "\n#[tokio::main]");
    assert_eq!(structs(&found), shown);
}

#[test]
fn keys_are_of_every_kind() {
    let (_folder, path) = database("keys.db", include_str!("keys.sql"));
    let found = generate(&path, &Options::new()).unwrap();
    expect_file!["generated/keys.rs"].assert_eq(&found.source);
    expect![[r#"
        descending.id: a part of the key that the table allows to be NULL; a row with NULL in it could not be read
        partial: it has no primary key (a rowid is none unless a column is declared INTEGER PRIMARY KEY); its unique b, c is the key instead
        hashes.id: no type of a key keeps what it holds, so the field is a `Value`
        points.x: no type of a key keeps what it holds, so the field is a `Value`
        points.y: no type of a key keeps what it holds, so the field is a `Value`
        folded: the index sqlite_autoindex_folded_1 is left out: it is a UNIQUE by another collation than that of the column
        folded: the index  is left out: its name is empty"#]].assert_eq(&found.notes.join("\n"));
}

#[test]
fn a_reference_has_the_type_of_the_key() {
    let sql = "
        CREATE TABLE states (name TEXT PRIMARY KEY NOT NULL);
        CREATE TABLE flags (id BOOLEAN PRIMARY KEY NOT NULL);
        INSERT INTO flags VALUES (0), (1);
        CREATE TABLE shared (id NUMERIC PRIMARY KEY NOT NULL REFERENCES flags);
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY,
            state TEXT REFERENCES states CHECK (state IN ('on', 'off')),
            flag BOOLEAN REFERENCES shared,
            number INTEGER REFERENCES states
        )";
    let found = written(sql, &Options::new().relations(false));
    expect![[r#"
        use anabranch::prelude::*;

        /// A row of `states`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(table = "states", strict = false)]
        pub struct State {
            #[entity(id)]
            pub name: String,
        }

        /// A row of `flags`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(table = "flags", strict = false)]
        pub struct Flag {
            #[entity(id)]
            pub id: i64,
        }

        /// A row of `shared`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(strict = false)]
        pub struct Shared {
            #[entity(id, references = Flag)]
            pub id: i64,
        }

        /// A row of `jobs`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(table = "jobs", strict = false)]
        pub struct Job {
            #[entity(id)]
            pub id: i64,
            #[entity(check = "state IN ('on', 'off')", references = State)]
            pub state: Option<String>,
            #[entity(references = Shared)]
            pub flag: Option<i64>,
            pub number: Option<i64>,
        }
    "#]]
    .assert_eq(structs(&found));
    expect!["jobs.number: the reference to states is left out: the columns of the two tables hold values of different types"].assert_eq(&found.notes.join("\n"));
}

#[test]
fn a_list_is_an_enum_only_if_every_row_keeps_to_it() {
    let sql = "
        CREATE TABLE a (
            id INTEGER PRIMARY KEY,
            empty TEXT CHECK (empty IN ('x', 'y')),
            broken TEXT CHECK (broken IN ('x', 'y')),
            folded TEXT COLLATE NOCASE CHECK (folded IN ('x', 'y')),
            digits NUMERIC CHECK (digits IN ('1', '2')),
            blank TEXT CHECK (blank IN ('x', ' ')),
            two TEXT CHECK (two IN ('x', 'y')) CHECK (two <> 'z'),
            row_s TEXT,
            CHECK (row_s = 'PG-13' OR row_s = 'R')
        );
        PRAGMA ignore_check_constraints = ON;
        INSERT INTO a (id, broken) VALUES (1, 'z')";
    let found = written(sql, &Options::new());
    expect![[r#"
        use anabranch::prelude::*;

        /// What `empty` can be.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
        #[entity(check, rename_all = "snake_case")]
        pub enum AEmpty {
            X,
            Y,
        }

        /// What `row_s` can be.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
        #[entity(check)]
        pub enum ARowS {
            #[entity(rename = "PG-13")]
            Pg13,
            R,
        }

        /// A row of `a`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(strict = false)]
        pub struct A {
            #[entity(id)]
            pub id: i64,
            pub empty: Option<AEmpty>,
            #[entity(check = "broken IN ('x', 'y')")]
            pub broken: Option<String>,
            #[entity(collate = "NOCASE", check = "folded IN ('x', 'y')")]
            pub folded: Option<String>,
            #[entity(check = "digits IN ('1', '2')")]
            pub digits: Option<f64>,
            #[entity(check = "blank IN ('x', ' ')")]
            pub blank: Option<String>,
            #[entity(check = "(two IN ('x', 'y')) AND (two <> 'z')")]
            pub two: Option<String>,
            pub row_s: Option<ARowS>,
        }
    "#]]
    .assert_eq(structs(&found));
}

#[test]
fn names_of_columns_in_another_case_are_one_rule() {
    let sql = "
        CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, Title NVARCHAR(160) NOT NULL, ArtistId INTEGER, odd_one TEXT);
        CREATE TABLE camel (id INTEGER PRIMARY KEY, placedAt TEXT, itemName TEXT) STRICT;
        CREATE TABLE LOUD (ID INTEGER PRIMARY KEY, FIRST_NAME TEXT)";
    let generated = written(sql, &Options::new());
    expect![[r#"
        use anabranch::prelude::*;

        /// A row of `Album`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(table = "Album", strict = false, rename_all = "PascalCase")]
        pub struct Album {
            #[entity(id)]
            pub album_id: i64,
            pub title: String,
            pub artist_id: Option<i64>,
            #[entity(column = "odd_one")]
            pub odd_one: Option<String>,
        }

        /// A row of `camel`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(rename_all = "camelCase")]
        pub struct Camel {
            #[entity(id)]
            pub id: i64,
            pub placed_at: Option<String>,
            pub item_name: Option<String>,
        }

        /// A row of `LOUD`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(table = "LOUD", strict = false, rename_all = "UPPERCASE")]
        pub struct Loud {
            #[entity(id)]
            pub id: i64,
            pub first_name: Option<String>,
        }
    "#]]
    .assert_eq(structs(&generated));
}

#[test]
fn only_the_tables_that_are_asked_for_are_written() {
    let sql = "
        CREATE TABLE a (id INTEGER PRIMARY KEY);
        CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER REFERENCES a, c_id INTEGER REFERENCES c);
        CREATE TABLE c (id INTEGER PRIMARY KEY)";
    let found = written(sql, &Options::new().tables(["B", "a"]));
    expect![[r#"
        //! Entities of the tables `a` and `b`.
        //!
        //! Made by `anabranch entities --from app.db --tables B,a`.

        use anabranch::prelude::*;

        /// A row of `a`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(strict = false)]
        #[entity(has_many(bs: B))]
        pub struct A {
            #[entity(id)]
            pub id: i64,
        }

        /// A row of `b`.
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(strict = false)]
        pub struct B {
            #[entity(id)]
            pub id: i64,
            #[entity(references = A)]
            pub a_id: Option<i64>,
            pub c_id: Option<i64>,
        }
    "#]]
    .assert_eq(&found.source);
    expect!["b.c_id: the reference to c is left out: that table has no entity here"]
        .assert_eq(&found.notes.join("\n"));

    let (_folder, path) = database("app.db", sql);
    let error = generate(&path, &Options::new().tables(["a", "d"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Options);
    assert_eq!(
        error.to_string(),
        "there is no table d: the tables are a, b, c"
    );
}

#[test]
fn a_database_without_tables_is_a_page_without_entities() {
    let found = written("CREATE VIEW v AS SELECT 1", &Options::new());
    expect![[r#"
        //! No entities: no table could be one.
        //!
        //! Made by `anabranch entities --from app.db`.
    "#]]
    .assert_eq(&found.source);
}

#[test]
fn what_cannot_be_read_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let message = |path: &Path, kind: ErrorKind| {
        let error = generate(path, &Options::new()).unwrap_err();
        assert_eq!(error.kind(), kind);
        error.to_string().replace(&place, "/folder")
    };
    let text = folder.path().join("text.db");
    fs::write(&text, "this is no database, ".repeat(100)).unwrap();
    let (_folder, damaged) = database("damaged.db", "CREATE TABLE a (id INTEGER PRIMARY KEY)");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes.truncate(5000);
    bytes[100..200].fill(255);
    let damaged = folder.path().join("damaged.db");
    fs::write(&damaged, bytes).unwrap();
    let messages = [
        message(&folder.path().join("none.db"), ErrorKind::CannotOpen),
        message(folder.path(), ErrorKind::CannotOpen),
        message(&text, ErrorKind::NotADatabase),
        message(&damaged, ErrorKind::Corrupt),
    ];
    expect![[r#"
        /folder/none.db cannot be opened: No such file or directory (os error 2)
        /folder is a folder: name the database file in it
        /folder/text.db cannot be read (file is not a database): it is no SQLite database, or it is encrypted
        /folder/damaged.db cannot be read (database disk image is malformed): the file is damaged: restore a backup, or read what is left with the sqlite3 shell's .recover"#]].assert_eq(&messages.join("\n"));
}

/// A folder in place of the log, as root may open whatever is a file.
#[test]
fn a_log_that_cannot_be_read_is_an_error_that_says_what_to_do() {
    let sql = "PRAGMA journal_mode = WAL; CREATE TABLE a (id INTEGER PRIMARY KEY)";
    let (folder, path) = database("app.db", sql);
    fs::create_dir(folder.path().join("app.db-wal")).unwrap();
    let error = generate(&path, &Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    let place = folder.path().display().to_string();
    expect!["/folder/app.db cannot be read (unable to open database file): whoever looks has to be allowed to read it; in WAL mode a reader also needs the -wal and -shm beside it, or may make them; after a crash somebody who may write has to open it first: copy the file with what is beside it to a folder of yours, and name the copy"].assert_eq(&error.to_string().replace(&place, "/folder"));
}

#[test]
fn the_file_is_not_changed() {
    assert_unchanged(nasty());
    // A reader makes the log and its index where there are none.
    let sql = "PRAGMA journal_mode = WAL; CREATE TABLE a (id INTEGER PRIMARY KEY)";
    assert_unchanged(database("app.db", sql));
}

fn assert_unchanged((folder, path): (TempDir, PathBuf)) {
    let files = || -> Vec<_> {
        let files = fs::read_dir(folder.path()).unwrap();
        let mut files: Vec<_> = files
            .map(|file| file.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = files();
    generate(&path, &Options::new()).unwrap();
    assert!(files() == before);
}

#[test]
fn a_table_that_calls_unknown_functions_is_left_out() {
    let (_folder, path) = database("app.db", "CREATE TABLE good (id INTEGER PRIMARY KEY)");
    let connection = Connection::open(&path).unwrap();
    let flags = rusqlite::functions::FunctionFlags::SQLITE_DETERMINISTIC
        | rusqlite::functions::FunctionFlags::SQLITE_UTF8;
    connection
        .create_scalar_function("mine", 1, flags, |_| Ok(1))
        .unwrap();
    connection
        .execute_batch("CREATE TABLE bad (id INTEGER PRIMARY KEY, x AS (mine(id)))")
        .unwrap();
    let found = generate(&path, &Options::new()).unwrap();
    assert!(found.source.contains("pub struct Good"));
    assert!(!found.source.contains("pub struct Bad"));
    expect!["bad: no entity: it cannot be read (unknown function: mine())"]
        .assert_eq(&found.notes.join("\n"));
}

mod command {
    //! `anabranch entities`.

    use std::{
        fs,
        process::{Command, Output},
    };

    use crate::database;

    fn anabranch(arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(arguments).output().unwrap()
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    const SQL: &str = "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (x TEXT); CREATE VIEW v AS SELECT 1";

    #[test]
    fn entities_go_to_a_file_or_to_standard_output_and_notes_to_standard_error() {
        let (folder, path) = database("app.db", SQL);
        let path = path.to_str().unwrap();
        let output = anabranch(&[
            "entities",
            "--from",
            path,
            "--tables",
            "a",
            "--no-relations",
        ]);
        assert!(output.status.success());
        let source = text(&output.stdout).to_owned();
        assert!(source.starts_with(
            "//! The entity of the table `a`.\n//!\n//! Made by `anabranch entities --from app.db --tables a --no-relations`.\n"
        ));
        assert_eq!(text(&output.stderr), "");

        let to = folder.path().join("entities.rs");
        let output = anabranch(&[
            "entities",
            "--from",
            path,
            "--rowid-keys",
            "--to",
            to.to_str().unwrap(),
        ]);
        assert!(output.status.success());
        assert_eq!(text(&output.stdout), "");
        assert_eq!(
            text(&output.stderr),
            "note: b: it has no primary key (a rowid is none unless a column is declared INTEGER PRIMARY KEY); its key is the rowid, which VACUUM may change\n\
             note: v: no entity: it is a view; an entity is a table\n"
        );
        assert!(fs::read_to_string(&to).unwrap().contains("pub struct B {"));
    }

    #[test]
    fn what_fails_is_told_with_exit_code_1() {
        let (folder, path) = database("app.db", SQL);
        let path = path.to_str().unwrap();
        let none = folder.path().join("none.db");
        let output = anabranch(&["entities", "--from", none.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).starts_with(&format!("anabranch: {}", none.display())));
        let nowhere = folder.path().join("no/folder.rs");
        let output = anabranch(&[
            "entities",
            "--from",
            path,
            "--to",
            nowhere.to_str().unwrap(),
        ]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("folder.rs cannot be written"));
    }
}
