//! A file that is removed, renamed or replaced while it is open.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anabranch::{error::Result, prelude::*};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note},
    outsider, try_execute, until,
};
use futures_util::StreamExt;

/// How a file is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Removed,
    Renamed,
    Replaced,
}

impl Lost {
    const ALL: [Self; 3] = [Self::Removed, Self::Renamed, Self::Replaced];

    fn happens_to(self, path: &Path) {
        match self {
            Self::Removed => fs::remove_file(path).unwrap(),
            Self::Renamed => fs::rename(path, aside(path)).unwrap(),
            Self::Replaced => fs::rename(another(path), path).unwrap(),
        }
    }
}

fn aside(path: &Path) -> PathBuf {
    path.with_file_name("aside.db")
}

/// Another database, with one note.
fn another(path: &Path) -> PathBuf {
    let path = path.with_file_name("another.db");
    outsider(&path)
        .execute_batch(
            "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
             INSERT INTO note (text) VALUES ('of the other file')",
        )
        .unwrap();
    path
}

fn log_of(path: &Path) -> PathBuf {
    path.with_file_name("app.db-wal")
}

async fn opened(mode: Mode, folder: &Path) -> (PathBuf, Database) {
    let path = folder.canonicalize().unwrap().join("app.db");
    let db = mode.set(Database::builder(&path)).open().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    (path, db)
}

async fn save(db: &Database) -> Result<()> {
    let mut ctx = db.context();
    ctx.add(note("row"));
    ctx.save_changes().await.map(drop)
}

#[track_caller]
fn assert_told<T: std::fmt::Debug>(path: &Path, what: &str, outcome: Result<T>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileMoved, "{what}: {error:?}");
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{what}: {text}");
    assert!(text.contains("open the database again"), "{what}: {text}");
}

/// Saves until that fails; returns how many were acknowledged.
async fn save_until_told(path: &Path, db: &Database) -> i64 {
    let mut acknowledged = 0;
    until("a save is told", async || match save(db).await {
        Ok(()) => {
            acknowledged += 1;
            false
        }
        told => {
            assert_told(path, "a save", told);
            true
        }
    })
    .await;
    acknowledged
}

/// Files that are lost were written on and on, and all of it was gone with the process.
#[tokio::test]
async fn a_file_that_was_lost_is_told_to_everybody_and_not_written_any_more() {
    for mode in Mode::ALL {
        for lost in Lost::ALL {
            let folder = tempfile::tempdir().unwrap();
            let (path, db) = opened(mode, folder.path()).await;
            save(&db).await.unwrap();
            let mut early = db.context();
            early.add(note("an early one"));
            lost.happens_to(&path);

            let acknowledged = 1 + save_until_told(&path, &db).await;
            let log = fs::read(log_of(&path)).unwrap();
            assert_told(&path, "a save", early.save_changes().await);
            assert_told(&path, "a query", Note::query().all(&db).await);
            assert_told(&path, "a read by key", Note::find(&db, 1).await);
            let first = Note::query().stream(&db).next().await.unwrap();
            assert_told(&path, "a stream", first);
            assert_told(&path, "a transaction", db.begin().await);
            let write = try_execute(&db, "INSERT INTO note (text) VALUES ('row')");
            assert_told(&path, "a write", write.await);
            assert_told(&path, "a checkpoint", db.checkpoint().await);
            assert_told(&path, "vacuum", db.vacuum().await);
            let tables = db.create_tables::<Note>().await;
            assert_told(&path, "tables", tables);
            let closed = db.close().await.unwrap();
            assert!(!closed.is_complete(), "its log stays as it is");
            assert_told(&path, "a save after closing", save(&db).await);
            assert_eq!(fs::read(log_of(&path)).unwrap(), log, "{mode:?} {lost:?}");

            if lost == Lost::Renamed {
                fs::rename(log_of(&path), aside(&path).with_file_name("aside.db-wal")).unwrap();
                let found: i64 = outsider(&aside(&path))
                    .query_row("SELECT count(*) FROM note", [], |row| row.get(0))
                    .unwrap();
                assert_eq!(found, acknowledged, "what was acknowledged is there");
            }
        }
    }
}

/// Without anybody who asks: the thread looks, and closes what is idle.
#[tokio::test]
async fn a_lost_file_is_noticed_and_let_go_of_when_nobody_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, db) = opened(Mode::Inline, folder.path()).await;
    let open = || {
        let known = |link: fs::DirEntry| fs::read_link(link.path()).ok();
        fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|link| known(link.ok()?))
            .filter(|file| file.starts_with(path.parent().unwrap()))
            .count()
    };
    assert_ne!(open(), 0);
    Lost::Renamed.happens_to(&path);
    until("the file is closed", async || open() == 0).await;
    assert_told(&path, "a save", save(&db).await);
}

#[tokio::test]
async fn the_new_file_at_the_path_is_opened_at_once() {
    for lost in Lost::ALL {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = opened(Mode::Inline, folder.path()).await;
        save(&old).await.unwrap();
        // All of it is moved into the file, so that the log that stays behind is empty.
        old.checkpoint().await.unwrap();
        lost.happens_to(&path);

        let db = Database::open(&path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        let found = Note::query().count(&db).await.unwrap();
        assert_eq!(found, u64::from(lost == Lost::Replaced), "{lost:?}");
        save(&db).await.unwrap();
        assert_told(&path, "a save to the old one", save(&old).await);
        old.close().await.unwrap();
        save(&db).await.unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), found + 2);
        let sound: String = outsider(&path)
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
    }
}

/// The engine that is open would go on with the log beside the old name, and SQLite with one beside the new.
#[tokio::test]
async fn a_renamed_file_is_opened_anew_by_its_new_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = opened(Mode::Inline, folder.path()).await;
    save(&old).await.unwrap();
    old.checkpoint().await.unwrap();
    Lost::Renamed.happens_to(&path);
    let db = Database::open(aside(&path)).await.unwrap();
    assert_eq!(db.path(), aside(&path));
    save(&db).await.unwrap();
    assert_eq!(Note::query().count(&db).await.unwrap(), 2);
    assert_told(&path, "a save to the old one", save(&old).await);
}

/// SQLite knows a log by its name, and would write the frames of the old file over the pages of the new one.
#[tokio::test]
async fn a_log_that_the_old_file_left_behind_is_not_taken_for_that_of_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = opened(Mode::Inline, folder.path()).await;
    save(&old).await.unwrap();
    Lost::Replaced.happens_to(&path);
    for _ in 0..2 {
        let error = Database::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotOpen);
        assert!(error.to_string().contains("app.db-wal"), "{error}");
    }
    drop(old);
    Database::open(&path).await.unwrap_err();
    fs::remove_file(log_of(&path)).unwrap();
    let db = Database::open(&path).await.unwrap();
    let notes = Note::query().all(&db).await.unwrap();
    assert_eq!(notes[0].text, "of the other file");
}

#[tokio::test]
async fn a_transaction_that_is_open_when_the_file_is_lost_is_not_committed() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        let (path, db) = opened(mode, folder.path()).await;
        let mut guard = db.begin().await.unwrap();
        sqlx::query("INSERT INTO note (text) VALUES ('row')")
            .execute(&mut *guard)
            .await
            .unwrap();
        Lost::Renamed.happens_to(&path);
        // Who opens the file that is there now waits for the transaction, and is told about it.
        let error = Database::builder(&path)
            .busy_timeout(Duration::from_millis(100))
            .open()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error:?}");
        assert!(
            error.to_string().contains("end its transactions"),
            "{error}"
        );
        let raw = sqlx::query("INSERT INTO note (text) VALUES ('more')")
            .execute(&mut *guard)
            .await;
        assert_told(&path, "a statement", raw.map_err(Error::from));
        assert_told(&path, "the commit", guard.commit().await);
        let log = log_of(&path);
        until("its connections are closed", async || {
            Database::open(aside(&path)).await.is_ok()
        })
        .await;
        fs::remove_file(log).unwrap();
    }
}

/// Whoever noticed by the allocator's connection closed it while it was lent, and waited for itself.
#[tokio::test]
async fn a_file_that_was_lost_is_noticed_first_by_whatever_looks() {
    for lost in Lost::ALL {
        for what in ["a backup", "an integrity check", "a state"] {
            let folder = tempfile::tempdir().unwrap();
            let (path, db) = opened(Mode::Inline, folder.path()).await;
            lost.happens_to(&path);
            let told = async {
                match what {
                    "a backup" => db.backup_to(folder.path().join("copy.db")).await.map(drop),
                    "an integrity check" => db.integrity().await.map(drop),
                    _ => db.wal_status().await.map(drop),
                }
            };
            let told = tokio::time::timeout(Duration::from_secs(30), told).await;
            assert_told(&path, what, told.expect("it waits for itself"));
            let health = tokio::time::timeout(Duration::from_secs(30), db.health()).await;
            assert!(!health.expect("it waits for itself").is_in_place);
            assert!(!folder.path().join("copy.db").exists());
            db.close().await.unwrap();
        }
    }
}

/// The look at the commit itself: nobody noticed before.
#[tokio::test]
async fn a_commit_looks_at_the_file_first() {
    let folder = tempfile::tempdir().unwrap();
    let (path, db) = opened(Mode::Inline, folder.path()).await;
    let wrote = db
        .write(async |tx| {
            sqlx::query("INSERT INTO note (text) VALUES ('row')")
                .execute(&mut *tx)
                .await?;
            Lost::Renamed.happens_to(&path);
            Ok(())
        })
        .await;
    assert_told(&path, "the commit", wrote);
}

/// What nobody can see from outside: the file is the same, its content is not.
#[tokio::test]
async fn a_file_that_was_cut_or_overwritten_in_place_is_told_as_damaged() {
    for mode in Mode::ALL {
        for overwritten in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (path, db) = opened(mode, folder.path()).await;
            let many = "INSERT INTO note (text)
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)
                SELECT 'a text of some length' FROM n";
            execute(&db, many).await;
            db.close().await.unwrap();
            drop(db);
            // With caches that hold nothing of it yet.
            let db = mode.set(Database::builder(&path)).open().await.unwrap();
            let length = fs::metadata(&path).unwrap().len();
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(4096).unwrap();
            if overwritten {
                file.set_len(length).unwrap();
            }
            let told = |what: &str, error: Error| {
                let kinds = [ErrorKind::Corrupt, ErrorKind::NotADatabase, ErrorKind::Io];
                assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
            };
            told("a query", Note::query().all(&db).await.unwrap_err());
            told("a save", save(&db).await.unwrap_err());
            let raw = try_execute(&db, "UPDATE note SET text = 'other'").await;
            told("a write", raw.unwrap_err());
        }
    }
}
