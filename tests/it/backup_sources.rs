//! Backups of what other programs made, and under names that are hard to take.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
};

use anabranch::{error::Error, prelude::*};
use anabranch_tests::{
    Mode,
    note::{note, notes},
    outsider,
};

/// A database of another program.
async fn theirs(folder: &Path, sql: &str) -> Database {
    let path = folder.join("theirs.db");
    outsider(&path).execute_batch(sql).unwrap();
    Database::open(&path).await.unwrap()
}

/// Makes a definition call for something that only another program has.
fn edited(sql: &str, name: &str, from: &str, to: &str) -> String {
    format!(
        "{sql}; PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = '{name}'"
    )
}

fn listing(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn a_database_of_any_make_is_backed_up() {
    let row = "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('ä')";
    for (sql, rows) in [
        (format!("PRAGMA encoding = 'UTF-16le'; {row}"), 1),
        (format!("PRAGMA encoding = 'UTF-16be'; {row}"), 1),
        (format!("PRAGMA page_size = 512; {row}"), 1),
        (format!("PRAGMA page_size = 65536; {row}"), 1),
        (format!("PRAGMA auto_vacuum = FULL; {row}"), 1),
        (format!("{row}; CREATE VIEW v AS SELECT * FROM nowhere"), 1),
        (
            "CREATE TABLE t (a TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES ('x')".into(),
            1,
        ),
        (
            "CREATE TABLE t (a INT, b INT AS (a + 1) STORED, c INT AS (a * 2)); CREATE INDEX i ON t (c);
             INSERT INTO t (a) VALUES (1)"
                .into(),
            1,
        ),
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO t (a) VALUES (1); ANALYZE".into(),
            1,
        ),
        (
            "CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES ('hello world')".into(),
            7,
        ),
        (
            "CREATE VIRTUAL TABLE r USING rtree(a, b, c); INSERT INTO r VALUES (1, 2, 3)".into(),
            2,
        ),
        (
            "CREATE TABLE \"a''b\"\"c\nd\" (\"x\"\"y\" TEXT); INSERT INTO \"a''b\"\"c\nd\" VALUES (3)".into(),
            1,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let db = theirs(folder.path(), &sql).await;
        assert!(db.integrity().await.unwrap().is_ok(), "{sql}");
        for (name, compact) in [("whole.db", false), ("compact.db", true)] {
            let backup = db.backup_to(folder.path().join(name));
            let backup = if compact { backup.compact() } else { backup };
            let report = backup.await.unwrap();
            assert_eq!(report.rows, rows, "{sql}");
            assert!(report.unchecked.is_empty(), "{sql}: {report:?}");
            let copy = Database::open(&report.path).await.unwrap();
            assert!(copy.integrity().await.unwrap().is_ok(), "{sql}");
        }
        db.vacuum().await.unwrap();
    }
}

/// A foreign key to columns that are no key, a function and a collation of another program, a name that is not UTF-8: SQLite
/// fails a check as a whole for one of them, and no backup could be made.
#[tokio::test]
async fn what_cannot_be_checked_is_backed_up_and_told() {
    let strange =
        "CREATE TABLE strange (a INT, b INT AS (abs(a))); INSERT INTO strange (a) VALUES (1)";
    for (sql, why, rows) in [
        (
            "CREATE TABLE p (a INT, b INT); PRAGMA foreign_keys = OFF;
             CREATE TABLE strange (x REFERENCES p (b)); INSERT INTO strange VALUES (1)"
                .into(),
            "foreign key mismatch",
            1,
        ),
        (
            edited(strange, "strange", "abs(", "theirs("),
            "unknown function: theirs()",
            1,
        ),
        (
            edited(
                "CREATE TABLE strange (a TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO strange VALUES ('x')",
                "strange",
                "TEXT PRIMARY",
                "TEXT COLLATE theirs PRIMARY",
            ),
            "no such collation sequence: theirs",
            0,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let sound = format!("CREATE TABLE sound (a); INSERT INTO sound VALUES (1), (2); {sql}");
        let db = theirs(folder.path(), &sound).await;
        let found = db.integrity().await.unwrap();
        assert!(!found.is_ok() && found.messages.is_empty(), "{found:?}");
        let [unchecked] = &found.unchecked[..] else {
            panic!("{found:?}");
        };
        assert!(unchecked.starts_with("strange: "), "{unchecked}");
        assert!(unchecked.contains(why), "{unchecked}");
        let report = db.backup_to(folder.path().join("copy.db")).await.unwrap();
        assert_eq!(
            (report.rows, &report.unchecked),
            (2 + rows, &found.unchecked)
        );
        let copied: i64 = outsider(&report.path)
            .query_row("SELECT count(*) FROM sound", [], |row| row.get(0))
            .unwrap();
        assert_eq!(copied, 2);
    }
    let folder = tempfile::tempdir().unwrap();
    let name =
        "CREATE TABLE strange (a); INSERT INTO strange VALUES (1); PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET name = CAST(x'6eff' AS TEXT), tbl_name = CAST(x'6eff' AS TEXT),
            sql = CAST(replace(CAST(sql AS BLOB), x'737472616e6765', x'6eff') AS TEXT)";
    let db = theirs(folder.path(), name).await;
    assert!(db.integrity().await.unwrap().is_ok());
    let report = db.backup_to(folder.path().join("copy.db")).await.unwrap();
    assert_eq!(
        (report.tables, report.rows),
        (1, 0),
        "its rows cannot be counted"
    );
}

/// VACUUM passes over definitions that do not begin as SQLite writes them, and all rows are gone.
#[tokio::test]
async fn vacuum_loses_no_table_that_was_edited_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "CREATE TABLE t (a); INSERT INTO t VALUES (1)";
    let db = theirs(
        folder.path(),
        &edited(sql, "t", "CREATE TABLE", "create table"),
    )
    .await;
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(
            error.to_string().contains("the definition of t was edited"),
            "{error}"
        );
    };
    refused(db.vacuum().await.unwrap_err());
    let copy = folder.path().join("copy.db");
    refused(db.backup_to(&copy).compact().await.unwrap_err());
    assert_eq!(db.backup_to(&copy).await.unwrap().rows, 1);
}

/// Texts in double quotes, as SQLite takes them unless it is told otherwise.
#[tokio::test]
async fn vacuum_takes_the_definitions_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "CREATE TABLE t (a TEXT CHECK (a IN (\"x\", \"y\"))); CREATE INDEX i ON t (a) WHERE a <> \"u\";
        INSERT INTO t VALUES ('x')";
    let db = theirs(folder.path(), sql).await;
    db.vacuum().await.unwrap();
    assert!(db.integrity().await.unwrap().is_ok());
    // Only there.
    let again =
        anabranch_tests::try_execute(&db, "CREATE TABLE u (a TEXT CHECK (a <> \"x\"))").await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Statement);
}

#[tokio::test]
async fn long_names_are_taken_or_refused_before_anything_is_copied() {
    let db = notes(Mode::Inline).await;
    let folder = tempfile::tempdir().unwrap();
    let name = |length: usize| "n".repeat(length);
    for length in [239, 247] {
        let path = folder.path().join(name(length));
        db.backup_to(&path).await.unwrap();
        Database::open(&path).await.unwrap().close().await.unwrap();
    }
    let error = db
        .backup_to(folder.path().join(name(248)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen, "{error}");
    let mut deep = folder.path().to_owned();
    while deep.as_os_str().len() < 400 {
        deep = deep.join("d".repeat(50));
    }
    fs::create_dir_all(&deep).unwrap();
    let rest = 504 - deep.as_os_str().len() - 1;
    let path = deep.join(name(rest));
    db.backup_to(&path).await.unwrap();
    db.backup_to(&path).compact().replace().await.unwrap();
    assert_eq!(listing(&deep), 1);
    let deeper = deep.join(name(rest - 5));
    fs::create_dir(&deeper).unwrap();
    let error = db.backup_to(deeper.join("a.db")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen, "{error}");
    assert!(error.to_string().contains("its folder 500"), "{error}");
}

#[tokio::test]
async fn a_folder_whose_name_is_not_utf_8_takes_a_backup() {
    let db = notes(Mode::Inline).await;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    let link = folder.path().join("link");
    symlink(&odd, &link).unwrap();
    db.backup_to(link.join("whole.db")).await.unwrap();
    db.backup_to(link.join("compact.db"))
        .compact()
        .await
        .unwrap();
    assert_eq!(listing(&odd), 2);
}

/// Whoever opened the other database next would have had SQLite remove the backup.
#[tokio::test]
async fn a_backup_does_not_get_the_name_of_the_log_of_another_database() {
    let db = notes(Mode::Inline).await;
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.db");
    outsider(&other)
        .execute_batch("CREATE TABLE t (a)")
        .unwrap();
    for suffix in ["-journal", "-wal", "-shm"] {
        let path = folder.path().join(format!("other.db{suffix}"));
        let error = db.backup_to(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(
            error.to_string().contains("other.db, and remove it"),
            "{error}"
        );
    }
    assert_eq!(listing(folder.path()), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_backups_to_one_place_one_gets_it() {
    let db = notes(Mode::Threaded).await;
    db.bulk_insert_optimized((0..2_000).map(|_| note("x".repeat(1000))))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    let made = tokio::join!(
        db.backup_to(&path),
        db.backup_to(&path),
        db.backup_to(&path)
    );
    let refused: Vec<_> = [made.0, made.1, made.2]
        .into_iter()
        .filter_map(|made| made.err().map(|error| error.kind()))
        .collect();
    assert_eq!(refused, [ErrorKind::Refused; 2]);
    let replace = || db.backup_to(&path).replace();
    let made = tokio::join!(replace(), replace());
    assert_eq!((made.0.unwrap().rows, made.1.unwrap().rows), (2_000, 2_000));
    assert_eq!(listing(folder.path()), 1);
}

/// What is written to a device is gone, and a pipe waits for whoever reads it.
#[tokio::test]
async fn a_device_or_a_pipe_is_no_database_and_takes_no_backup() {
    let db = notes(Mode::Inline).await;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [&pipe, Path::new("/dev/null")] {
        let error = Database::open(path).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen);
        assert!(error.to_string().contains("a device, a pipe"), "{error}");
        let error = db.backup_to(path).replace().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen);
    }
}
