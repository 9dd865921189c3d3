//! What is no database, or hardly one, and what another program is at.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use anabranch::prelude::*;
use anabranch_migrations::doctor::{Check, Weight, examine};
use rusqlite::Connection;
use serde_json::Value;

use crate::{WAL, anabranch, contents, database, findings, looked_at, text};

/// Tells of an error of this kind, for people and for programs, and changes nothing.
fn refused(path: &Path, kind: ErrorKind, words: &str) {
    let folder = path.parent().unwrap();
    let before = contents(folder);
    let error = examine(path).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    for (args, code) in [(["doctor", "--json"], 2), (["wal", "--json"], 1)] {
        let output = anabranch(&args, path);
        assert_eq!(output.status.code(), Some(code), "{path:?}");
        assert!(text(&output.stderr).starts_with("anabranch: "));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["error"]["kind"], format!("{kind:?}"));
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    assert!(contents(folder) == before, "a look has changed something");
}

fn entities(path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["entities", "--from"]).arg(path);
    command.output().unwrap()
}

/// SQLite would wait for ever for somebody who writes into the pipe, and take a device for an empty database.
#[test]
fn what_is_no_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for path in [pipe.as_path(), Path::new("/dev/null")] {
        let error = examine(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen);
        assert!(error.to_string().contains("a device, a pipe"), "{error}");
        assert_eq!(entities(path).status.code(), Some(1));
    }
}

#[test]
fn errors_are_told_to_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    fs::write(&file, "no database at all, by no means".repeat(40)).unwrap();
    refused(&file, ErrorKind::NotADatabase, "no SQLite database");
    let missing = folder.path().join("missing");
    refused(&missing, ErrorKind::CannotOpen, "cannot be opened");
}

/// SQLite removes what is beside an empty file, as left over.
#[test]
fn what_is_beside_an_empty_file_stays() {
    for suffix in ["-journal", "-wal"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        fs::write(&path, "").unwrap();
        fs::write(folder.path().join(format!("app.db{suffix}")), [1; 5000]).unwrap();
        let examined = looked_at(&path);
        assert_eq!((examined.facts.bytes, examined.facts.tables), (0, 0));
        let output = entities(&path);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(contents(folder.path()).len(), 2, "{suffix}");
    }
}

/// Half a transaction is in the file, and what it was before in the journal: reading it means writing to it.
#[test]
fn what_a_crash_left_in_a_journal_is_told_and_left() {
    let (folder, path) = database("CREATE TABLE note (text TEXT) STRICT");
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO note SELECT hex(randomblob(1000)) FROM n",
        )
        .unwrap();
    let crashed = tempfile::tempdir().unwrap();
    for name in ["app.db", "app.db-journal"] {
        // By another process: this one would lose its locks.
        let from = folder.path().join(name);
        let copied = Command::new("cp").arg(from).arg(crashed.path()).status();
        assert!(copied.unwrap().success());
    }
    let path = crashed.path().join("app.db");
    refused(&path, ErrorKind::CannotOpen, "the -journal beside it");
}

#[test]
fn a_file_that_another_program_locks_is_told() {
    let (_folder, path) = database("CREATE TABLE note (text TEXT) STRICT");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    refused(&path, ErrorKind::Busy, "another process locks it");
    // Who only means to write is in nobody's way.
    other
        .execute_batch("ROLLBACK; BEGIN IMMEDIATE; INSERT INTO note VALUES ('row')")
        .unwrap();
    looked_at(&path);
}

/// It has the log's index in its memory, where nobody finds it: what is read beside it may be half of a commit.
#[test]
fn a_file_that_another_program_has_for_itself_is_told() {
    let (folder, path) = database(WAL);
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; INSERT INTO note (text) VALUES ('three')")
        .unwrap();
    assert_eq!(contents(folder.path()).len(), 2, "there is no index");
    refused(&path, ErrorKind::Busy, "another process locks it");
}

/// Another program has functions and collations of its own, and references that SQLite cannot follow.
#[test]
fn what_cannot_be_checked_is_a_finding_and_the_rest_is_checked() {
    let (_folder, path) = database(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT) STRICT;
         CREATE TABLE child (parent INTEGER REFERENCES parent) STRICT; INSERT INTO child VALUES (7);
         CREATE INDEX child_parent ON child (parent);
         CREATE TABLE odd (name TEXT REFERENCES parent (name)) STRICT; INSERT INTO odd VALUES (1);
         CREATE INDEX odd_name ON odd (name);
         CREATE TABLE made (size INT, half INT AS (abs(size))); INSERT INTO made (size) VALUES (1);
         CREATE TABLE sorted (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID; INSERT INTO sorted VALUES ('a');
         CREATE TABLE anabranch_stamped (what INT) STRICT; CREATE TABLE anabranch_sequence (last TEXT) STRICT;
         INSERT INTO anabranch_sequence VALUES ('none');
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'abs(', 'theirs(') WHERE name = 'made';
         UPDATE sqlite_schema SET sql = replace(sql, 'TEXT PRIMARY', 'TEXT COLLATE theirs PRIMARY') WHERE name = 'sorted';",
    );
    let examined = looked_at(&path);
    assert_eq!(examined.facts.last_commit, None);
    let unchecked: Vec<_> = (examined.findings.iter())
        .filter(|finding| finding.check == Check::Unchecked)
        .map(|finding| (finding.weight, finding.table.as_deref().unwrap()))
        .collect();
    let expected = [
        (Weight::Advice, "made"),
        (Weight::Advice, "sorted"),
        (Weight::Problem, "odd"),
    ];
    assert_eq!(unchecked, expected, "{}", findings(&examined));
    let said = findings(&examined);
    assert!(said.contains("child: row 1 refers to a row"), "{said}");
    assert!(said.contains("foreign key mismatch"), "{said}");
}

/// What is in the log counts: its file stays as long as it once was.
#[test]
fn a_log_that_was_long_once_is_no_problem() {
    let (_folder, path) = database(WAL);
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; CREATE TABLE large (a BLOB) STRICT;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70)
             INSERT INTO large SELECT zeroblob(1000000) FROM n",
        )
        .unwrap();
    let weight = || {
        let examined = looked_at(&path);
        let [finding] = &examined.findings[..] else {
            panic!("{}", findings(&examined));
        };
        assert_eq!(finding.check, Check::LongLog);
        finding.weight
    };
    assert_eq!(weight(), Weight::Problem);
    other
        .query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
        .unwrap();
    other
        .execute_batch("INSERT INTO note (text) VALUES ('row')")
        .unwrap();
    assert_eq!(weight(), Weight::Advice);
}

/// A user who may read all of it and write none.
#[test]
fn who_may_only_read_a_database_in_use_sees_it() {
    let (folder, path) = database(WAL);
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE more (a TEXT) STRICT")
        .unwrap();
    // Nobody's, whatever it is that runs the tests.
    let as_reader = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(args).output()
    };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("anabranch");
    fs::copy(env!("CARGO_BIN_EXE_anabranch"), &copy).unwrap();
    let [copy, file] = [&copy, &path].map(|path| path.to_str().unwrap());
    match as_reader(&[copy, "--version"]) {
        Ok(output) if output.status.success() => {}
        other => {
            println!("nobody else can be had here: {other:?}");
            return;
        }
    }
    let output = as_reader(&[copy, "doctor", "--json", file]).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let examined: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(examined["facts"]["tables"], 2, "the log is read");
    assert_eq!(examined["facts"]["log"]["frames"], Value::Null);
    let output = as_reader(&[copy, "wal", file]).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// A name may hold what a terminal takes for an order, and what is not UTF-8.
#[test]
fn names_of_a_foreign_file_are_shown_on_one_line() {
    let (_folder, path) = database(
        "CREATE TABLE \"red\u{1b}[31m\nproblems\" (text TEXT);
         CREATE TABLE broken (text TEXT);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET name = CAST(x'6eff' AS TEXT), tbl_name = CAST(x'6eff' AS TEXT),
             sql = CAST(replace(CAST(sql AS BLOB), x'62726f6b656e', x'6eff') AS TEXT) WHERE name = 'broken';",
    );
    looked_at(&path);
    let said = text(&anabranch(&["doctor"], &path).stdout);
    assert!(
        said.contains("red\\u{1b}[31m\\nproblems: all values"),
        "{said}"
    );
    assert!(!said.contains("\nproblems\n") && !said.contains('\u{1b}'));
}

/// As `head -1` does.
#[test]
fn who_reads_no_more_ends_the_command_in_silence() {
    let (_folder, path) = database(WAL);
    let mut watching = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["wal", "--watch"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(watching.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    assert_eq!(first, "0 bytes\n");
    drop(lines);
    let mut said = String::new();
    let ended = ended(&mut watching, &mut said);
    assert_eq!((ended, said.as_str()), (Some(0), ""));
}

/// A backup does not depend on who sees its progress.
#[test]
fn a_backup_goes_on_when_nobody_reads_its_progress() {
    let (folder, path) = database(WAL);
    let (reads, writes) = std::io::pipe().unwrap();
    drop(reads);
    let status = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .arg("backup")
        .arg(&path)
        .arg(folder.path().join("copy.db"))
        .stdout(Stdio::null())
        .stderr(writes)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(folder.path().join("copy.db").exists());
}

/// Whoever closes a database last moves its log and removes it: between two looks nobody but that program has it open.
#[test]
fn watching_a_log_does_not_keep_a_database_open() {
    let (folder, path) = database(WAL);
    let theirs = Connection::open(&path).unwrap();
    theirs
        .execute_batch("INSERT INTO note (text) VALUES ('three')")
        .unwrap();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["wal", "--watch"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("1 frame, "));
    drop(theirs);
    assert_eq!(lines.next().unwrap().unwrap(), "0 bytes");
    assert_eq!(contents(folder.path()).len(), 1);
    // And where the file goes away it ends.
    fs::remove_file(&path).unwrap();
    let mut said = String::new();
    assert_eq!(ended(&mut watching, &mut said), Some(1));
    assert!(said.contains("cannot be opened"), "{said}");
}

/// Its exit code, and what it wrote to standard error.
fn ended(child: &mut Child, said: &mut String) -> Option<i32> {
    let mut errors = child.stderr.take().unwrap();
    errors.read_to_string(said).unwrap();
    child.wait().unwrap().code()
}
