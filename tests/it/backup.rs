//! Backups: one state of a database that is written, complete and checked, or nothing at all.

use std::{
    fs,
    io::{Seek, SeekFrom, Write},
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use anabranch::{
    engine::{AutoVacuum, BackupProgress, BackupReport, BackupStep},
    prelude::*,
    sql::Executor,
    value::Value,
};
use anabranch_tests::{
    Mode, after, again, ask, assert_passed, dropped_after, execute, in_a_namespace,
    note::{Note, note, notes},
    outsider, scene, until,
};
use futures_util::{FutureExt, future::join_all};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "accounts")]
struct Account {
    #[entity(id)]
    id: i64,
    balance: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

fn account(balance: i64) -> Account {
    Account {
        id: 0,
        balance,
        seq: CommitSeq::default(),
    }
}

/// What lies in a folder.
fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A file with notes of some megabytes.
async fn large(folder: &Path) -> Database {
    let db = Database::open(folder.join("large.db")).await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let notes = (0..4_000).map(|_| note("x".repeat(1000)));
    db.bulk_insert_optimized(notes).await.unwrap();
    db
}

fn go_on(_: BackupProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn assert_sound(path: &Path) {
    let connection = outsider(path);
    let found: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(found, "ok");
}

#[tokio::test]
async fn a_backup_is_one_file_that_opens_like_any_other() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup.db");
        execute(&db, "INSERT INTO note (text) VALUES ('one'), ('two')").await;
        let report = db.backup_to(&path).await.unwrap();
        assert_eq!((report.tables, report.rows), (1, 2), "{mode:?}");
        assert_eq!(report.bytes, fs::metadata(&path).unwrap().len());
        assert_eq!(report.path, path.canonicalize().unwrap());
        assert_eq!(report.broken_references, 0);
        assert_eq!(listing(folder.path()), ["backup.db"]);
        let mode_of_the_file: String = outsider(&path)
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        assert_eq!(mode_of_the_file, "delete", "it has no log");
        assert_eq!(listing(folder.path()), ["backup.db"]);
        let copy = Database::open(&path).await.unwrap();
        assert_eq!(Note::query().count(&copy).await.unwrap(), 2);
        execute(&copy, "INSERT INTO note (text) VALUES ('three')").await;
        assert_eq!(Note::query().count(&db).await.unwrap(), 2, "it is another");
    }
}

#[tokio::test]
async fn commit_numbers_of_a_backup_go_on() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Account>().await.unwrap();
    let save = async |db: &Database| {
        let mut ctx = db.context();
        ctx.add(account(1));
        ctx.save_changes().await.unwrap().commit_seq.unwrap()
    };
    for _ in 0..3 {
        save(&db).await;
    }
    let path = db.path().with_file_name("backup.db");
    db.backup_to(&path).await.unwrap();
    let copy = Database::open(&path).await.unwrap();
    copy.create_tables::<Account>().await.unwrap();
    assert_eq!(save(&copy).await, CommitSeq(4));
}

/// Eight tasks move money between accounts, and enter each transfer twice, while backups are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_beside_writers_is_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    db.create_tables::<Account>().await.unwrap();
    db.bulk_insert_optimized((0..16).map(|_| account(1_000)))
        .await
        .unwrap();
    let done = AtomicBool::new(false);
    let writers = join_all((0..8_i64).map(|task| {
        let (db, done) = (&db, &done);
        async move {
            let mut transfers = 0_i64;
            while !done.load(Ordering::Relaxed) {
                transfers += 1;
                let (from, to) = (task + 1, 16 - (task + transfers) % 8);
                let mut ctx = db.context();
                let from = ctx.find::<Account>(from).await.unwrap().unwrap();
                let to = ctx.find::<Account>(to).await.unwrap().unwrap();
                ctx[from].balance -= 1;
                ctx.save_changes().await.unwrap();
                ctx[from].balance += 1;
                ctx[to].balance += 0;
                ctx.add(note(format!("{task}: {transfers}")));
                ctx.add(note(format!("{task}: {transfers}, again")));
                ctx.save_changes().await.unwrap();
                tokio::task::yield_now().await;
            }
            transfers
        }
    }));
    let backups = async {
        let mut reports = Vec::new();
        for number in 0..3 {
            let path = folder.path().join(format!("{number}.backup"));
            reports.push(db.backup_to(path).on_progress(go_on).await.unwrap());
        }
        done.store(true, Ordering::Relaxed);
        reports
    };
    let (transfers, reports) = tokio::join!(writers, backups);
    assert!(transfers.iter().all(|&number| number > 0), "{transfers:?}");
    let mut last = 0;
    for report in reports {
        assert_one_state(&report);
        assert!(report.rows > last, "others wrote meanwhile");
        last = report.rows;
    }
    assert_eq!(
        Note::query().count(&db).await.unwrap(),
        4_000 + 2 * transfers.iter().sum::<i64>().unsigned_abs()
    );
}

/// Notes come in pairs, and a task lacks one unit of money at most.
fn assert_one_state(report: &BackupReport) {
    assert_sound(&report.path);
    let copy = outsider(&report.path);
    let ask = |sql: &str| -> i64 { copy.query_row(sql, [], |row| row.get(0)).unwrap() };
    let missing = 16_000 - ask("SELECT sum(balance) FROM accounts");
    assert!((0..=8).contains(&missing), "{missing}");
    let (one, again) = (
        ask("SELECT count(*) FROM note WHERE text LIKE '%: %' AND text NOT LIKE '%again'"),
        ask("SELECT count(*) FROM note WHERE text LIKE '%again'"),
    );
    assert_eq!(one, again, "half a transaction");
    let rows = ask("SELECT count(*) FROM note")
        + ask("SELECT count(*) FROM accounts")
        + ask("SELECT count(*) FROM anabranch_sequence")
        + ask("SELECT count(*) FROM anabranch_stamped")
        + ask("SELECT count(*) FROM anabranch_epoch");
    assert_eq!(report.rows, rows.unsigned_abs());
}

#[tokio::test]
async fn what_is_committed_during_a_backup_is_not_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let path = folder.path().join("backup.db");
    let writer = Mutex::new(outsider(db.path()));
    let mut steps = Vec::new();
    let report = db
        .backup_to(&path)
        .on_progress(|progress| {
            (writer.lock().unwrap())
                .execute("INSERT INTO note (text) VALUES ('meanwhile')", [])
                .unwrap();
            steps.push(progress);
            ControlFlow::Continue(())
        })
        .await
        .unwrap();
    assert_eq!(report.rows, 4_000);
    assert!(steps.len() > 4, "{steps:?}");
    assert!(steps.is_sorted_by_key(|progress| progress.pages));
    assert!(steps.iter().all(|progress| progress.total == report.pages));
    assert_eq!(steps.last().unwrap().step, BackupStep::Verifying);
    assert_eq!(
        Note::query().count(&db).await.unwrap(),
        4_000 + steps.len() as u64
    );
}

#[tokio::test]
async fn a_backup_that_is_stopped_at_any_step_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let path = folder.path().join("backup.db");
    let before = listing(folder.path());
    // Each step in turn, the last ones too.
    for stop_at in 1.. {
        let mut steps = 0;
        let stopped = db
            .backup_to(&path)
            .compact()
            .on_progress(|_| {
                steps += 1;
                if steps == stop_at {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .await;
        let Err(error) = stopped else {
            assert!(stop_at > 5);
            break;
        };
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{error:?}");
        assert_eq!(listing(folder.path()), before, "{stop_at}");
    }
}

#[tokio::test]
async fn a_backup_that_is_dropped_or_panics_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let path = folder.path().join("backup.db");
    let before = listing(folder.path());
    let nothing_stays = || {
        until("nothing is left of the backup", async || {
            listing(folder.path()) == before
        })
    };
    let panics = db
        .backup_to(&path)
        .on_progress(|_| panic!("by the application"))
        .into_future();
    assert!(AssertUnwindSafe(panics).catch_unwind().await.is_err());
    nothing_stays().await;
    // Dropped at a step, as by a timeout.
    let reached = AtomicBool::new(false);
    {
        let mut backup = pin!(
            db.backup_to(&path)
                .on_progress(|_| {
                    reached.store(true, Ordering::Relaxed);
                    ControlFlow::Continue(())
                })
                .into_future()
        );
        until("it copies", async || {
            assert!(backup.as_mut().now_or_never().is_none());
            reached.load(Ordering::Relaxed)
        })
        .await;
    }
    nothing_stays().await;
    // No lock, and no snapshot: the log is moved whole.
    execute(&db, "DELETE FROM note").await;
    until("the snapshot has ended", async || {
        let moved = db.checkpoint().await.unwrap();
        moved.is_complete() && fs::metadata(wal(db.path())).unwrap().len() == 0
    })
    .await;
    db.backup_to(&path).await.unwrap();
    db.close().await.unwrap();
}

/// Without a callback nobody tells the thread at a certain step that it is over: it may come to its end.
#[tokio::test]
async fn a_backup_that_is_dropped_anywhere_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let path = folder.path().join("backup.db");
    for polls in [0, 1, 2, 10, 100, 1_000, 10_000, 100_000] {
        drop(dropped_after(polls, db.backup_to(&path).into_future()).await);
        until("nobody works on it any more", async || {
            !(listing(folder.path()).iter()).any(|name| name.ends_with(".partial"))
        })
        .await;
        // It may have begun after it was dropped, to see that it is to end.
        db.checkpoint().await.unwrap();
        if path.exists() {
            assert_sound(&path);
            fs::remove_file(&path).unwrap();
        }
    }
    db.backup_to(&path).await.unwrap();
}

#[tokio::test]
async fn what_the_header_of_a_database_says_is_in_its_backup() {
    let db = Database::builder("")
        .page_size(8192)
        .auto_vacuum(AutoVacuum::Incremental)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    execute(&db, "PRAGMA user_version = 7").await;
    execute(&db, "PRAGMA application_id = 9").await;
    let [whole, compact] = ["whole.db", "compact.db"].map(|name| db.path().with_file_name(name));
    db.backup_to(&whole).await.unwrap();
    db.backup_to(&compact).compact().await.unwrap();
    for path in [whole, compact] {
        let copy = outsider(&path);
        let numbers =
            ["page_size", "auto_vacuum", "user_version", "application_id"].map(|name| -> i64 {
                copy.pragma_query_value(None, name, |row| row.get(0))
                    .unwrap()
            });
        assert_eq!(numbers, [8192, 2, 7, 9], "{path:?}");
    }
}

/// As the guide says: the old log is taken away, and the backup put in the place of a database that nobody has open.
#[tokio::test]
async fn a_backup_that_is_put_in_its_place_is_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let backup = folder.path().join("backup.db");
    // Left behind by another program: a log with what is not in the file.
    let theirs = outsider(&path);
    theirs
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        .unwrap();
    let db = Database::open(&path).await.unwrap();
    db.backup_to(&backup).await.unwrap();
    theirs.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    db.close().await.unwrap();
    drop(theirs);
    for suffix in ["-wal", "-shm"] {
        let beside = PathBuf::from(format!("{}{suffix}", path.display()));
        if beside.exists() {
            fs::remove_file(beside).unwrap();
        }
    }
    fs::rename(&backup, &path).unwrap();
    let db = Database::open(&path).await.unwrap();
    let rows = Executor::read(&db, ask("SELECT a FROM t")).await.unwrap();
    assert_eq!(rows, [Value::Integer(1)]);
    assert!(db.integrity().await.unwrap().is_ok());
}

fn wal(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_only_when_asked() {
    let db = notes(Mode::Inline).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    db.backup_to(&path).await.unwrap();
    execute(&db, "INSERT INTO note (text) VALUES ('row')").await;
    let error = db.backup_to(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("replace()"), "{error}");
    // One that fails leaves the old one alone.
    let stopped = db
        .backup_to(&path)
        .replace()
        .on_progress(|_| ControlFlow::Break(()));
    stopped.await.unwrap_err();
    let rows = |path: &Path| -> i64 {
        outsider(path)
            .query_row("SELECT count(*) FROM note", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(rows(&path), 0);
    db.backup_to(&path).replace().await.unwrap();
    assert_eq!(rows(&path), 1);
    assert_eq!(listing(folder.path()), ["backup.db"]);
    // Through a link the file behind it is replaced.
    let link = folder.path().join("latest.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    execute(&db, "INSERT INTO note (text) VALUES ('row')").await;
    db.backup_to(&link).replace().await.unwrap();
    assert!(link.is_symlink());
    assert_eq!(rows(&path), 2);
}

/// Case 53: a file was put over one that somebody had open.
#[tokio::test]
async fn a_backup_never_goes_over_a_database_that_is_in_use() {
    let db = notes(Mode::Inline).await;
    let folder = db.path().parent().unwrap().to_owned();
    let refused = async |path: &Path, why: &str| {
        let before = listing(&folder);
        let error = db.backup_to(path).replace().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(listing(&folder), before);
    };
    // The database itself, however it is spelled.
    let name = db.path().file_name().unwrap();
    let (hard, soft) = (folder.join("hard.db"), folder.join("soft.db"));
    fs::hard_link(db.path(), &hard).unwrap();
    std::os::unix::fs::symlink(db.path(), &soft).unwrap();
    let detour = folder
        .join("..")
        .join(folder.file_name().unwrap())
        .join(name);
    for path in [db.path(), &hard, &soft, &detour] {
        refused(path, "the database itself").await;
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = format!("{}{suffix}", db.path().display());
        refused(beside.as_ref(), "the database itself").await;
    }
    // Another one that is open here.
    let other = folder.join("other.db");
    let opened = Database::open(&other).await.unwrap();
    refused(&other, "open in this process").await;
    opened.close().await.unwrap();
    // One that another process has open, or that a crash left behind.
    let theirs = outsider(&other);
    theirs
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
        .unwrap();
    refused(&other, "other.db-wal").await;
    drop(theirs);
    db.backup_to(&other).replace().await.unwrap();
}

#[tokio::test]
async fn a_backup_that_cannot_be_is_told_why() {
    let db = notes(Mode::Inline).await;
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("not").join("there.db");
    let error = db.backup_to(&missing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    assert!(error.to_string().contains("does not exist"), "{error}");
    let error = db.backup_to(folder.path()).replace().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    let error = db.backup_to(":memory:").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Options);
    db.close().await.unwrap();
    let error = db.backup_to(folder.path().join("late.db")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Closed);
    assert!(listing(folder.path()).is_empty());
}

#[tokio::test]
async fn free_pages_are_left_out_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    execute(&db, "DELETE FROM note WHERE id > 10").await;
    let [whole, compact] = ["whole.db", "compact.db"].map(|name| folder.path().join(name));
    let whole = db.backup_to(whole).await.unwrap();
    let compact = db.backup_to(compact).compact().await.unwrap();
    assert_eq!((whole.rows, compact.rows), (10, 10));
    assert!(compact.bytes * 20 < whole.bytes, "{compact:?} {whole:?}");
    for report in [whole, compact] {
        assert_sound(&report.path);
    }
    assert_eq!(
        listing(folder.path()),
        [
            "compact.db",
            "large.db",
            "large.db-shm",
            "large.db-wal",
            "whole.db"
        ]
    );
}

#[tokio::test]
async fn a_backup_of_a_backup_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let [first, second] = ["first.db", "second.db"].map(|name| folder.path().join(name));
    let one = db.backup_to(&first).await.unwrap();
    let copy = Database::open(&first).await.unwrap();
    let two = copy.backup_to(&second).await.unwrap();
    assert_eq!((one.rows, one.pages), (two.rows, two.pages));
    copy.close().await.unwrap();
    let dump = |path: &Path| -> Vec<(i64, String)> {
        let connection = outsider(path);
        let mut rows = connection.prepare("SELECT * FROM note").unwrap();
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    };
    assert_eq!(dump(&first), dump(&second));
}

/// A database that is damaged is not backed up over one that is whole; one whose rows were written against their
/// references is, and it is told.
#[tokio::test]
async fn a_damaged_database_is_told_and_broken_references_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.db");
    large(folder.path()).await.close().await.unwrap();
    let theirs = outsider(&path);
    theirs
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             CREATE TABLE line (note REFERENCES note); INSERT INTO line VALUES (9000), (1);",
        )
        .unwrap();
    drop(theirs);
    let db = Database::open(&path).await.unwrap();
    let backup = folder.path().join("backup.db");
    let report = db.backup_to(&backup).await.unwrap();
    assert_eq!(report.broken_references, 1);
    let found = db.integrity().await.unwrap();
    assert!(!found.is_ok() && found.messages.is_empty());
    assert_eq!(found.broken_references[0].table, "line");
    assert_eq!(found.broken_references[0].rowid, Some(1));
    assert_eq!(found.broken_references[0].parent, "note");
    db.close().await.unwrap();
    let good = fs::read(&backup).unwrap();

    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(100 * 4096)).unwrap();
    file.write_all(&[0x5a; 4096]).unwrap();
    drop(file);
    let db = Database::open(&path).await.unwrap();
    let found = db.integrity().await.unwrap();
    assert!(!found.messages.is_empty());
    let before = listing(folder.path());
    let error = db.backup_to(&backup).replace().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    assert_eq!(listing(folder.path()), before);
    assert!(fs::read(&backup).unwrap() == good, "the good one stays");
}

#[tokio::test]
async fn a_sound_database_has_no_findings() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        execute(&db, "INSERT INTO note (text) VALUES ('row')").await;
        assert!(db.integrity().await.unwrap().is_ok(), "{mode:?}");
    }
}

#[tokio::test]
async fn a_database_that_moves_away_is_not_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let target = tempfile::tempdir().unwrap();
    let path = target.path().join("backup.db");
    let mut moved = false;
    let backup = db.backup_to(&path).on_progress(|_| {
        if !std::mem::replace(&mut moved, true) {
            fs::rename(db.path(), folder.path().join("elsewhere.db")).unwrap();
        }
        ControlFlow::Continue(())
    });
    let error = backup.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileMoved, "{error:?}");
    let error = db.backup_to(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileMoved, "{error:?}");
    assert!(listing(target.path()).is_empty());
}

/// A disk that is mounted for reading.
#[tokio::test]
async fn a_folder_that_cannot_be_written_takes_no_backup() {
    if let Some(disk) = scene() {
        let db = notes(Mode::Inline).await;
        let path = Path::new(&disk).join("backup.db");
        let error = db.backup_to(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
        assert!(error.to_string().contains("backup.db"), "{error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o ro none '{}'", folder.path().display());
    let test = "backup::a_folder_that_cannot_be_written_takes_no_backup";
    in_a_namespace(&mount, test, folder.path().to_str().unwrap());
}

/// The room is looked at first; and what comes to lack room later is told, and leaves nothing.
#[tokio::test]
async fn a_full_disk_stops_a_backup_and_nothing_is_left() {
    if let Some(scene) = scene() {
        let disk = PathBuf::from(scene);
        let folder = tempfile::tempdir().unwrap();
        let db = large(folder.path()).await;
        let path = disk.join("backup.db");
        let ballast = disk.join("ballast");
        fs::write(&ballast, vec![0; 4 * 1024 * 1024]).unwrap();
        let full = |error: &Error, why: &str| {
            assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(listing(&disk), ["ballast"]);
        };
        let error = db.backup_to(&path).await.unwrap_err();
        full(&error, "bytes are missing");
        fs::write(&ballast, "").unwrap();
        let fills = db.backup_to(&path).on_progress(|_| {
            drop(fs::write(&ballast, vec![0; 8 * 1024 * 1024]));
            ControlFlow::Continue(())
        });
        full(&fills.await.unwrap_err(), "the disk is full");
        fs::write(&ballast, "").unwrap();
        db.backup_to(&path).await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display();
    let mount = format!("mount -t tmpfs -o size=7m none '{disk}'");
    let test = "backup::a_full_disk_stops_a_backup_and_nothing_is_left";
    in_a_namespace(&mount, test, folder.path().to_str().unwrap());
}

/// A process that is killed in the middle leaves a partial file and the old backup, which is whole.
#[tokio::test]
async fn a_process_that_dies_leaves_the_old_backup() {
    let test = "backup::a_process_that_dies_leaves_the_old_backup";
    if let Some(folder) = scene() {
        let folder = Path::new(&folder);
        let db = Database::open(folder.join("large.db")).await.unwrap();
        execute(&db, "DELETE FROM note").await;
        let backup = db.backup_to(folder.join("backup.db")).replace();
        let dies = backup.on_progress(|_| std::process::exit(9));
        dies.await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let db = large(folder.path()).await;
    let path = folder.path().join("backup.db");
    db.backup_to(&path).await.unwrap();
    db.close().await.unwrap();
    let died = again(test, folder.path().to_str().unwrap()).output();
    assert_eq!(died.unwrap().status.code(), Some(9));
    let partial = listing(folder.path())
        .into_iter()
        .filter(|name| name.starts_with("backup.db.") && name.ends_with(".partial"));
    assert_eq!(partial.count(), 1);
    let rows: i64 = outsider(&path)
        .query_row("SELECT count(*) FROM note", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 4_000);
}

/// A disk that refuses to write.
#[tokio::test]
async fn a_backup_that_the_system_refuses_leaves_nothing() {
    let test = "backup::a_backup_that_the_system_refuses_leaves_nothing";
    if let Some(folder) = scene() {
        let folder = Path::new(&folder);
        let db = Database::open(folder.join("large.db")).await.unwrap();
        let before = listing(folder);
        let error = db.backup_to(folder.join("backup.db")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
        assert!(error.sqlite_code().is_some());
        assert_eq!(listing(folder), before);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    large(folder.path()).await.close().await.unwrap();
    // In blocks of 512 bytes; the signal that would end the process is ignored.
    let limit = "trap '' XFSZ && ulimit -f 2000";
    let mut limited = after(limit, &again(test, folder.path().to_str().unwrap()));
    assert_passed(&limited.output().unwrap());
}
