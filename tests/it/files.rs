//! What a path may lead to: names of one file, files that are none, folders that are missing.

use std::{
    fs::{self, Permissions},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
};

use anabranch::prelude::*;
use anabranch_tests::{
    again, assert_passed, execute, in_a_namespace, note::Note, outsider, scene, try_execute,
};

const INSERT: &str = "INSERT INTO note (text) VALUES ('row')";

/// The path to a file, relative to the folder in which the tests run.
fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    up.join(path.strip_prefix("/").unwrap())
}

#[tokio::test]
async fn one_file_has_one_engine_however_its_path_is_spelled() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("deep/er")).unwrap();
    let path = root.join("app.db");
    let db = Database::open(&path).await.unwrap();
    db.create_tables::<Note>().await.unwrap();

    symlink(&path, root.join("link.db")).unwrap();
    symlink(root.join("link.db"), root.join("link to a link.db")).unwrap();
    symlink(&root, root.join("folder")).unwrap();
    symlink(root.join("deep/er"), root.join("shortcut")).unwrap();
    fs::hard_link(&path, root.join("hard.db")).unwrap();
    let spellings = [
        relative(&path),
        Path::new(".").join(relative(&path)),
        root.join("./app.db"),
        root.join("deep/../app.db"),
        // `..` of where the link leads to, not of where it stands.
        root.join("shortcut/../../app.db"),
        PathBuf::from(format!("{}//app.db", root.display())),
        root.join("folder/folder/app.db"),
        root.join("link.db"),
        root.join("link to a link.db"),
        root.join("hard.db"),
    ];
    for (count, spelling) in spellings.iter().enumerate() {
        let other = Database::open(spelling).await.unwrap();
        assert_eq!(other.path(), path, "{}", spelling.display());
        execute(&other, INSERT).await;
        let transactions = db.statistics().transactions;
        assert_eq!(transactions, count as u64 + 1, "{}", spelling.display());
        let error = Database::builder(spelling).readers(1).open().await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Options);
    }
}

#[tokio::test]
async fn a_path_that_needs_quoting_anywhere_else_is_taken_as_it_is() {
    // Cases 122 and 124: spaces, escapes and the signs of URLs.
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "a b#c?d%20e.db",
        "päth.db",
        "'quoted\".db",
        "-minus",
        "a;b&c=d",
        "new\nline\t.db",
        "back\\slash",
        "~",
        "*.db",
        "\u{1f980}\u{202e}.db",
        ":memory:x",
    ] {
        let path = folder.path().join(name);
        let db = Database::open(&path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        execute(&db, INSERT).await;
        db.close().await.unwrap();
        drop(db);
        assert!(path.is_file(), "{name}");
        let db = Database::open(&path).await.unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), 1, "{name}");
    }
    assert_eq!(
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                !name.as_bytes().ends_with(b"-wal") && !name.as_bytes().ends_with(b"-shm")
            })
            .count(),
        11
    );
}

/// A name that would mean memory or a URI is a name like any other when a folder stands before it.
#[tokio::test]
async fn a_folder_in_front_makes_any_name_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:app.db?mode=memory", "file::memory:"] {
        let path = folder.path().join(name);
        let db = Database::open(&path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        execute(&db, INSERT).await;
        assert!(path.is_file(), "{name}");
    }
}

#[tokio::test]
async fn a_path_that_names_a_folder_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for name in ["new/", "new/.", "file/"] {
        let path = format!("{}/{name}", folder.path().display());
        let error = Database::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen, "{name}");
        assert!(error.to_string().contains("names a folder"), "{error}");
    }
    assert!(!folder.path().join("new").exists());
}

/// SQLite takes 504 bytes, and says of more only that it cannot open the file.
#[tokio::test]
async fn a_path_is_as_long_as_sqlite_takes_it_or_refused_with_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let mut root = folder.path().canonicalize().unwrap();
    while root.as_os_str().len() < 300 {
        root.push("a folder with a name of forty-two letters.");
    }
    fs::create_dir_all(&root).unwrap();
    let name = |length: usize| "n".repeat(length - root.as_os_str().len() - 1);
    let db = Database::open(root.join(name(504))).await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    execute(&db, INSERT).await;
    db.close().await.unwrap();
    let error = Database::open(root.join(name(505))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    assert!(error.to_string().contains("505 bytes"), "{error}");
    // By a shorter spelling it is as long.
    let link = folder.path().join("link");
    symlink(&root, &link).unwrap();
    let error = Database::open(link.join(name(505))).await.unwrap_err();
    assert!(error.to_string().contains("505 bytes"), "{error}");
    // A name that the file system takes, without room for `-journal`.
    let error = Database::open(folder.path().join("n".repeat(252))).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::CannotOpen);
}

/// A relative path is made absolute once: what opens connections later finds the same file.
#[tokio::test]
async fn a_change_of_the_working_folder_changes_no_database() {
    let Some(folder) = scene() else {
        let folder = tempfile::tempdir().unwrap();
        let test = "files::a_change_of_the_working_folder_changes_no_database";
        let output = again(test, folder.path().to_str().unwrap()).output();
        return assert_passed(&output.unwrap());
    };
    let folder = Path::new(&folder).canonicalize().unwrap();
    std::env::set_current_dir(&folder).unwrap();
    let db = Database::open("app.db").await.unwrap();
    fs::create_dir(folder.join("other")).unwrap();
    std::env::set_current_dir(folder.join("other")).unwrap();
    assert_eq!(db.path(), folder.join("app.db"));
    db.create_tables::<Note>().await.unwrap();
    // The connection of transactions is made only now.
    execute(&db, INSERT).await;
    assert_eq!(Note::query().count(&db).await.unwrap(), 1);
    let same = Database::open("../app.db").await.unwrap();
    assert_eq!(Note::query().count(&same).await.unwrap(), 1);
    db.close().await.unwrap();
    let left = fs::read_dir(folder.join("other")).unwrap().count();
    assert_eq!(left, 0, "nothing was made there");
}

#[tokio::test]
async fn a_link_that_leads_nowhere_yet_makes_the_file_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target.db");
    let link = folder.path().join("link.db");
    symlink(&target, &link).unwrap();
    let db = Database::open(&link).await.unwrap();
    assert!(target.is_file());
    let same = Database::open(&target).await.unwrap();
    assert_eq!(db.path(), same.path());
}

/// Case 125: a bare "unable to open database file".
#[tokio::test]
async fn a_missing_folder_is_named_beside_the_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("there")).unwrap();
    fs::write(root.join("file"), "").unwrap();
    for (path, part, what) in [
        (
            root.join("there/gone/deeper/app.db"),
            "there/gone",
            "does not exist",
        ),
        (
            relative(&root.join("gone/app.db")),
            "gone",
            "does not exist",
        ),
        (root.join("file/app.db"), "file", "is no folder"),
    ] {
        let error = Database::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen);
        let text = error.to_string();
        let absolute = std::path::absolute(&path).unwrap();
        assert!(text.contains(&absolute.display().to_string()), "{text}");
        assert!(
            text.contains(&format!("{part} {what}")),
            "{part} {what}: {text}"
        );
    }
    assert!(!root.join("there/gone").exists(), "no folder is made");
}

#[tokio::test]
async fn a_folder_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let error = Database::open(folder.path()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    assert!(error.to_string().contains("is a folder"), "{error}");
}

#[tokio::test]
async fn a_path_that_sqlite_cannot_take_is_refused() {
    let nul = PathBuf::from("a\0b.db");
    let not_text = PathBuf::from(std::ffi::OsStr::from_bytes(b"a\xff.db"));
    for path in [nul, not_text] {
        let error = Database::open(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen, "{error}");
    }
}

#[tokio::test]
async fn a_file_of_another_kind_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    let letter = "Dear Ada, ".repeat(1000);
    fs::write(&path, &letter).unwrap();
    let error = Database::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotADatabase, "{error}");
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        letter,
        "it is untouched"
    );
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    fs::write(&path, "").unwrap();
    let db = Database::open(&path).await.unwrap();
    db.create_tables::<Note>().await.unwrap();
}

/// A file with a table, the pages of which are overwritten.
fn damaged(folder: &Path) -> PathBuf {
    let path = folder.join("damaged.db");
    let connection = outsider(&path);
    connection
        .execute_batch(
            "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
             INSERT INTO note (text)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)
             SELECT 'a text of some length' FROM n",
        )
        .unwrap();
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 4 * 4096);
    bytes[4096..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    path
}

#[tokio::test]
async fn a_damaged_file_is_told_as_such_by_whatever_meets_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(damaged(folder.path())).await.unwrap();
    let mut ctx = db.context();
    ctx.add(Note {
        id: 0,
        text: "new".to_owned(),
    });
    let errors = [
        Note::query().all(&db).await.unwrap_err(),
        Note::find(&db, 7).await.unwrap_err(),
        ctx.save_changes().await.unwrap_err(),
        try_execute(&db, INSERT).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        assert!(error.to_string().contains("backup"), "{error}");
        assert!(error.sqlite_code().is_some_and(|code| code & 0xff == 11));
    }
    // What needs none of those pages still works: nothing was given up for good.
    execute(&db, "CREATE TABLE other (a); INSERT INTO other VALUES (1)").await;
}

/// Permissions do not bind the superuser: there the test runs again as somebody else.
#[tokio::test]
async fn what_may_only_be_read_is_told_as_such() {
    if let Some(folder) = scene() {
        return read_only(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    prepare_read_only(root);
    if fs::metadata(root).unwrap().uid() != 0 {
        read_only(root).await;
        return;
    }
    let binary = root.join("it");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(root, Permissions::from_mode(0o755)).unwrap();
    let test = "files::what_may_only_be_read_is_told_as_such";
    let same = again(test, root.to_str().unwrap());
    let mut command = std::process::Command::new(binary);
    command.args(same.get_args()).current_dir("/").uid(65534);
    for (name, value) in same.get_envs() {
        command.env(name, value.unwrap());
    }
    assert_passed(&command.output().unwrap());
    allow_removal(root);
}

/// Files that may be read, in folders that may be written or not.
fn prepare_read_only(root: &Path) {
    for (name, mode) in [("wal", "wal"), ("rollback", "delete")] {
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        let path = folder.join("app.db");
        outsider(&path)
            .execute_batch(&format!(
                "PRAGMA journal_mode = {mode};
                 CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"
            ))
            .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    }
    fs::create_dir(root.join("only the file")).unwrap();
    let path = root.join("only the file/app.db");
    outsider(&path)
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (id INTEGER PRIMARY KEY)")
        .unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(root.join("only the file"), Permissions::from_mode(0o777)).unwrap();
    fs::create_dir(root.join("only the folder")).unwrap();
    let path = root.join("only the folder/app.db");
    outsider(&path)
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (id INTEGER PRIMARY KEY)")
        .unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let folder = root.join("only the folder");
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    fs::create_dir(root.join("locked")).unwrap();
    fs::set_permissions(root.join("locked"), Permissions::from_mode(0o555)).unwrap();
    fs::write(root.join("secret.db"), "").unwrap();
    fs::set_permissions(root.join("secret.db"), Permissions::from_mode(0o000)).unwrap();
}

fn allow_removal(root: &Path) {
    for name in ["wal", "rollback", "locked", "only the folder"] {
        fs::set_permissions(root.join(name), Permissions::from_mode(0o755)).unwrap();
    }
}

async fn read_only(root: &Path) {
    for name in ["wal", "rollback"] {
        let path = root.join(name).join("app.db");
        let error = Database::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{name}: {error:?}");
        assert!(
            error
                .to_string()
                .contains("app.db cannot be written (Permission denied"),
            "{error}"
        );
    }
    // SQLite opens such a file without a word, and fails at the first write.
    let error = Database::open(root.join("only the file/app.db")).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
    let error = Database::open(root.join("only the folder/app.db")).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::CannotOpen),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("only the folder cannot be written"),
        "{error}"
    );
    for name in ["locked/new.db", "secret.db"] {
        let error = Database::open(root.join(name)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen, "{name}: {error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// What binds the superuser too.
#[tokio::test]
async fn a_file_system_that_is_mounted_for_reading_is_told_as_such() {
    let Some(folder) = scene() else {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().display();
        outsider(&folder.path().join("app.db"))
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE note (id INTEGER PRIMARY KEY)")
            .unwrap();
        let words = format!(
            "mount --bind '{shown}' '{shown}' && mount -o remount,bind,ro '{shown}' '{shown}'"
        );
        let test = "files::a_file_system_that_is_mounted_for_reading_is_told_as_such";
        return in_a_namespace(&words, test, folder.path().to_str().unwrap());
    };
    for name in ["app.db", "new.db"] {
        let error = Database::open(Path::new(&folder).join(name)).await;
        let error = error.unwrap_err();
        let expected = [ErrorKind::ReadOnly, ErrorKind::CannotOpen];
        assert!(expected.contains(&error.kind()), "{name}: {error:?}");
        let text = error.to_string();
        assert!(text.contains("Read-only file system"), "{name}: {text}");
        assert!(text.contains(name), "{name}: {text}");
    }
}

/// ATTACH has room for ten (case 120), and no transaction over them that a crash leaves whole (121).
#[tokio::test]
async fn many_files_are_open_at_once_and_a_transaction_is_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for number in 0..12 {
        let path = folder.path().join(format!("{number}.db"));
        let db = Database::open(path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        files.push(db);
    }
    let saves = files.iter().map(|db| execute(db, INSERT));
    futures_util::future::join_all(saves).await;
    let (first, second) = (&files[0], &files[1]);
    let mut tx = first.begin().await.unwrap();
    execute(second, INSERT).await;
    let attached = sqlx::query("ATTACH ? AS other")
        .bind(second.path().to_str())
        .execute(&mut *tx)
        .await;
    let error = Error::from(attached.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    tx.rollback().await.unwrap();
    for (number, db) in files.iter().enumerate() {
        let expected = if number == 1 { 2 } else { 1 };
        assert_eq!(Note::query().count(db).await.unwrap(), expected, "{number}");
    }
}
