//! The commands that look at a database, and the one that copies it.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

mod hostile;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anabranch::prelude::*;
use anabranch_migrations::{
    doctor::{Check, Examined, Weight, examine},
    log::Watch,
};
use expect_test::expect;
use rusqlite::Connection;
use tempfile::TempDir;

/// A database file with this schema, in a folder that goes away.
fn database(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "foreign_keys", false)
        .unwrap();
    connection.execute_batch(sql).unwrap();
    (folder, path)
}

const WAL: &str =
    "PRAGMA journal_mode = WAL; CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT) STRICT;
    INSERT INTO note (text) VALUES ('one'), ('two');";

/// All files of a folder, but for the log's index, which readers share with writers. Another process reads them: this one
/// would lose its locks.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let is_index = name.ends_with("-shm");
            let bytes = if is_index {
                Vec::new()
            } else {
                Command::new("cat").arg(path).output().unwrap().stdout
            };
            (name, bytes)
        })
        .collect();
    files.sort();
    files
}

fn anabranch(args: &[&str], path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg(args[0]).arg(path).args(&args[1..]);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Examines it in each way, and makes sure that nothing has changed.
fn looked_at(path: &Path) -> Examined {
    let folder = path.parent().unwrap();
    let before = contents(folder);
    let examined = examine(path).unwrap();
    Watch::new(path).unwrap().look().unwrap();
    let output = anabranch(&["doctor", "--json"], path);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json, serde_json::to_value(&examined).unwrap());
    let code = i32::from(examined.has_problems());
    assert_eq!(output.status.code(), Some(code));
    assert!(contents(folder) == before, "a look has changed something");
    examined
}

fn findings(examined: &Examined) -> String {
    let lines = examined.findings.iter();
    lines
        .map(|finding| format!("{:?} {finding}\n", finding.check))
        .collect()
}

#[test]
fn nothing_of_a_database_changes_when_it_is_looked_at() {
    // In rollback mode, in use or not.
    let (_folder, path) = database("CREATE TABLE note (text TEXT) STRICT");
    assert_eq!(looked_at(&path).facts.journal_mode, "rollback");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("BEGIN; SELECT * FROM note; SELECT 1")
        .unwrap();
    looked_at(&path);
    drop(other);

    // Closed.
    let (folder, path) = database(WAL);
    let names = || -> Vec<String> {
        contents(folder.path())
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(names(), ["app.db"]);
    let examined = looked_at(&path);
    assert_eq!(examined.facts.journal_mode, "wal");
    assert_eq!(examined.facts.pages, 2);

    // In use: what is in the log alone is seen.
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE more (a TEXT) STRICT")
        .unwrap();
    let examined = looked_at(&path);
    assert_eq!(examined.facts.tables, 2);
    let log = examined.facts.log.unwrap();
    assert!(log.unmoved() > Some(0), "{log:?}");
    assert_eq!(names(), ["app.db", "app.db-shm", "app.db-wal"]);

    // What a crash leaves, where the index is lost.
    let crashed = tempfile::tempdir().unwrap();
    for name in ["app.db", "app.db-wal"] {
        fs::copy(folder.path().join(name), crashed.path().join(name)).unwrap();
    }
    let examined = looked_at(&crashed.path().join("app.db"));
    assert_eq!(examined.facts.tables, 2, "the log is read");
    // And where it is there.
    let index = folder.path().join("app.db-shm");
    fs::copy(index, crashed.path().join("app.db-shm")).unwrap();
    let examined = looked_at(&crashed.path().join("app.db"));
    assert_eq!(examined.facts.tables, 2);
    assert_eq!(contents(crashed.path()).len(), 3);
    drop(other);
}

#[test]
fn a_name_with_signs_is_the_same_in_a_uri() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("50%25?mode=rw#ü 'x'.db");
    Connection::open(&path).unwrap().execute_batch(WAL).unwrap();
    assert_eq!(looked_at(&path).facts.tables, 1);
}

#[test]
fn the_doctor_finds_what_is_wrong_and_what_could_be_better() {
    let (folder, path) = database(
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT) STRICT;
         CREATE TABLE loose (id INTEGER PRIMARY KEY, name TEXT, size INT, part ANY, CHECK (size < 9));
         INSERT INTO loose VALUES (1, 'a', 1, 'x'), (2, 'b', NULL, 2);
         CREATE TABLE misfit (id INTEGER PRIMARY KEY, size INT); INSERT INTO misfit VALUES (1, 'large');
         CREATE TABLE odd (name VARCHAR(10));
         CREATE TABLE bill (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer,
             twin INTEGER REFERENCES bill) STRICT;
         CREATE INDEX bill_twin ON bill (twin, id);
         CREATE INDEX bill_some ON bill (customer) WHERE customer > 5;
         INSERT INTO bill VALUES (1, 7, NULL);
         CREATE TABLE pair (a INT, b INT, PRIMARY KEY (a, b), FOREIGN KEY (b, a) REFERENCES pair) STRICT;
         CREATE TABLE event (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
         INSERT INTO event VALUES (1, 5), (2, 0), (3, 0);
         CREATE TABLE anabranch_sequence (id INTEGER PRIMARY KEY, last INTEGER) STRICT;
         INSERT INTO anabranch_sequence VALUES (1, 5);
         CREATE TABLE anabranch_stamped (table_name TEXT PRIMARY KEY NOT NULL, column_name TEXT NOT NULL) STRICT;
         INSERT INTO anabranch_stamped VALUES ('event', 'seq'), ('gone', 'seq');
         CREATE VIRTUAL TABLE words USING fts5 (text);",
    );
    fs::hard_link(&path, folder.path().join("other name")).unwrap();
    let examined = looked_at(&path);
    assert!(examined.has_problems());
    assert_eq!(examined.facts.last_commit, Some(5));
    expect![[r#"
        BrokenReference bill: row 1 refers to a row of customer that is not there
        Unstamped event: 2 rows have no commit number in seq: a program without the library wrote them, or they are older than the column; stamp_foreign_writes stamps those to come
        HardLinks the file has 2 names (hard links): whoever opens it by another one than the rest does not find its log, and damages it: remove the others
        MissingIndex bill: no index begins with customer: deleting or changing what it refers to reads the whole table; CREATE INDEX "bill_customer" ON "bill" ("customer")
        Strict loose: all values fit their types: the table could be STRICT
    "#]]
    .assert_eq(&findings(&examined));
    let output = anabranch(&["doctor"], &path);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    let headings: Vec<_> = said
        .lines()
        .filter(|line| ["problems", "advice"].contains(line))
        .collect();
    assert_eq!(headings, ["problems", "advice"]);
}

#[test]
fn damage_is_a_finding_and_what_is_no_database_an_error() {
    let (folder, path) = database(
        "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT) STRICT;
         CREATE INDEX by_text ON note (text);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO note SELECT i, i || ' and some text' FROM n;",
    );
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 4096;
    bytes[last..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let examined = looked_at(&path);
    assert!(examined.has_problems());
    let first = &examined.findings[0];
    assert_eq!(
        (first.check, first.weight),
        (Check::Integrity, Weight::Problem)
    );

    let text_file = folder.path().join("text");
    fs::write(&text_file, "no database at all, by no means".repeat(40)).unwrap();
    let missing = folder.path().join("missing");
    for (path, kind) in [
        (text_file.as_path(), ErrorKind::NotADatabase),
        (&missing, ErrorKind::CannotOpen),
        (folder.path(), ErrorKind::CannotOpen),
    ] {
        assert_eq!(examine(path).unwrap_err().kind(), kind);
        let output = anabranch(&["doctor"], path);
        assert_eq!(output.status.code(), Some(2), "{path:?}");
        assert!(text(&output.stderr).starts_with("anabranch: "));
    }
}

#[test]
fn a_database_without_fault_passes() {
    let (_folder, path) = database(WAL);
    assert!(looked_at(&path).findings.is_empty());
    let output = anabranch(&["doctor"], &path);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(said.ends_with("nothing is wrong\n"), "{said}");
}

#[tokio::test]
async fn a_database_of_the_library_in_use_is_examined_from_the_same_process() {
    let db = Database::temporary().await.unwrap();
    db.write(async |tx| {
        sqlx::raw_sql("CREATE TABLE note (text TEXT) STRICT; INSERT INTO note VALUES ('row')")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    assert!(!examine(db.path()).unwrap().has_problems());
    // No lock was lost, and nobody waits.
    db.vacuum().await.unwrap();
    assert!(db.integrity().await.unwrap().is_ok());
}

#[test]
fn backup_copies_a_database_that_is_in_use() {
    let (folder, path) = database(WAL);
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("INSERT INTO note (text) VALUES ('three')")
        .unwrap();
    let target = folder.path().join("copy.db");
    let to = target.to_str().unwrap();
    let output = anabranch(&["backup", to], &path);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("3 rows in 1 table, "));
    expect![[r#"
        copying 2 pages
        verifying 2 pages
    "#]]
    .assert_eq(&text(&output.stderr));
    let output = anabranch(&["backup", to], &path);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("is there already: --replace"), "{said}");
    let output = anabranch(&["backup", to, "--replace", "--compact"], &path);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(examine(&target).unwrap().findings.is_empty());
    other
        .execute_batch("INSERT INTO note (text) VALUES ('four')")
        .unwrap();
}

#[test]
fn backup_leaves_the_mode_of_a_database_as_it_is() {
    let (folder, path) = database("CREATE TABLE note (text TEXT) STRICT");
    let before = contents(folder.path());
    let target = folder.path().join("copy.db");
    let output = anabranch(&["backup", target.to_str().unwrap()], &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not in mode WAL"));
    assert!(contents(folder.path()) == before);
}

#[test]
fn a_database_in_rollback_mode_has_no_log() {
    let (_folder, path) = database("CREATE TABLE note (text TEXT) STRICT");
    let output = anabranch(&["wal"], &path);
    assert_eq!(
        text(&output.stdout),
        "no log: the database is in rollback mode\n"
    );
}

#[test]
fn wal_shows_what_waits_in_the_log() {
    let (_folder, path) = database(WAL);
    let output = anabranch(&["wal", "--once"], &path);
    assert_eq!(text(&output.stdout), "0 bytes\n");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("INSERT INTO note (text) VALUES ('three')")
        .unwrap();
    let output = anabranch(&["wal"], &path);
    assert_eq!(
        text(&output.stdout),
        "4152 bytes, 1 frame, 1 of them not in the file yet\n"
    );
    let output = anabranch(&["wal", "--json"], &path);
    assert_eq!(
        text(&output.stdout),
        "{\"is_wal\":true,\"bytes\":4152,\"frames\":1,\"moved\":0}\n"
    );
    // A line each second, until it is ended.
    let mut watching = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .arg("wal")
        .arg(&path)
        .arg("--watch")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("1 of them not in the file yet"), "{first}");
    other
        .execute_batch("PRAGMA wal_checkpoint(PASSIVE)")
        .unwrap();
    let next = lines.find(|line| line.as_ref().unwrap() != &first);
    let next = next.unwrap().unwrap();
    assert!(next.contains("0 of them not in the file yet"), "{next}");
    watching.kill().unwrap();
    watching.wait().unwrap();
}
