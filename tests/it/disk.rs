//! A disk that is full, and one that fails.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, after, again, assert_passed, execute, in_a_namespace, outsider, save_together, scene,
    start,
};

#[derive(Debug, Clone, PartialEq, Entity)]
struct File {
    #[entity(id)]
    id: i64,
    content: Vec<u8>,
}

fn file(size: usize) -> File {
    File {
        id: 0,
        content: vec![0x5a; size],
    }
}

/// Cases 21 and 22: on a full disk SQLite rolled back by itself, a second error hid the first, "no transaction is
/// active" was taken for a damaged file, and the user's database was wiped.
///
/// The test runs again in a mount namespace with a file system of two megabytes; where there are no such
/// namespaces it tells so and ends.
#[tokio::test]
async fn a_full_disk_is_told_nothing_is_written_and_it_goes_on_after_room_is_made() {
    if let Some(folder) = scene() {
        for mode in Mode::ALL {
            on_a_small_disk(mode, Path::new(&folder)).await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=2m none '{}'",
        folder.path().display()
    );
    let test = "disk::a_full_disk_is_told_nothing_is_written_and_it_goes_on_after_room_is_made";
    in_a_namespace(&mount, test, folder.path().to_str().unwrap());
}

async fn on_a_small_disk(mode: Mode, folder: &Path) {
    let path = folder.join(format!("{mode:?}.db"));
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![0; 1024 * 1024]).unwrap();
    let db = mode.set(Database::builder(&path)).open().await.unwrap();
    db.create_tables::<File>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(file(1000));
    ctx.save_changes().await.unwrap();

    // A save alone.
    let large = ctx.add(file(1500 * 1024));
    let error = ctx.save_changes().await.unwrap_err();
    assert_full(&error);
    // The first error is kept in a transaction too, typed and raw.
    let typed = db
        .write(async |tx| {
            let mut ctx = tx.context();
            ctx.add(file(1500 * 1024));
            ctx.save_changes().await.map(drop)
        })
        .await;
    assert_full(&typed.unwrap_err());
    let raw = db
        .write(async |tx| {
            sqlx::query("INSERT INTO file (content) VALUES (zeroblob(1500000))")
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await;
    assert_full(&raw.unwrap_err());
    // In a group nobody is told of a commit that did not take place.
    let mut contexts: Vec<_> = (0..3)
        .map(|_| {
            let mut ctx = db.context();
            ctx.add(file(500 * 1024));
            ctx
        })
        .collect();
    let committed = save_together(&db, &mut contexts)
        .await
        .into_iter()
        .filter(|answer| match answer {
            Ok(_) => true,
            Err(error) => {
                assert_full(error);
                false
            }
        })
        .count();
    assert_eq!(rows(&db).await, committed as u64 + 1, "{mode:?}");

    // Room is made: everybody goes on where he was.
    fs::remove_file(&ballast).unwrap();
    execute(&db, "DELETE FROM file WHERE id > 1").await;
    db.vacuum().await.unwrap();
    ctx[large].content.truncate(300 * 1024);
    ctx.save_changes().await.unwrap();
    execute(&db, "INSERT INTO file (content) VALUES (zeroblob(1000))").await;
    assert_eq!(rows(&db).await, 3);
    assert_sound(&db).await;
    db.close().await.unwrap();
    remove(&path);
}

fn assert_full(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains("make room"), "{error}");
}

async fn rows(db: &Database) -> u64 {
    File::query().count(db).await.unwrap()
}

async fn assert_sound(db: &Database) {
    let found = db
        .write(async |tx| {
            Ok(sqlx::query_scalar::<_, String>("PRAGMA integrity_check")
                .fetch_one(&mut *tx)
                .await?)
        })
        .await;
    assert_eq!(found.unwrap(), "ok");
}

fn remove(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{end}", path.display()));
        if file.exists() {
            fs::remove_file(file).unwrap();
        }
    }
}

/// A disk that refuses to write: the process may not let any file grow beyond 400 KiB.
///
/// Cases 13 and 57: "disk I/O error" without a word of which.
#[tokio::test]
async fn a_write_that_the_system_refuses_is_told_and_the_file_stays_sound() {
    let test = "disk::a_write_that_the_system_refuses_is_told_and_the_file_stays_sound";
    if let Some(path) = scene() {
        for mode in Mode::ALL {
            on_a_failing_disk(mode, Path::new(&path)).await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // In blocks of 512 bytes; the signal that would end the process is ignored.
    let limit = "trap '' XFSZ && ulimit -f 800";
    let mut limited = after(limit, &again(test, folder.path().to_str().unwrap()));
    assert_passed(&limited.output().unwrap());
}

async fn on_a_failing_disk(mode: Mode, folder: &Path) {
    let path = folder.join(format!("{mode:?}.db"));
    let db = mode.set(Database::builder(&path)).open().await.unwrap();
    db.create_tables::<File>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(file(1000));
    ctx.save_changes().await.unwrap();
    ctx.clear();

    // The frames are written by COMMIT.
    let large = ctx.add(file(1_000_000));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::OutcomeUnknown,
        "{mode:?}: {error:?}"
    );
    assert!(!error.is_retryable(), "it asks to look first");
    assert!(error.sqlite_code().is_some_and(|code| code & 0xff == 10));
    assert_eq!(rows(&db).await, 1, "having looked: it did not take place");
    let raw = db
        .write(async |tx| {
            sqlx::query("INSERT INTO file (content) VALUES (zeroblob(1000000))")
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await;
    assert_eq!(raw.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    // A context whose save was in such a transaction says so, once.
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    let told = [
        tx.commit().await.unwrap_err(),
        ctx.find::<File>(99).await.unwrap_err(),
    ];
    for error in told {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{mode:?}");
    }
    assert!(ctx.find::<File>(99).await.unwrap().is_none());
    // What fits is written as before.
    ctx[large].content.truncate(1000);
    ctx.save_changes().await.unwrap();
    execute(&db, "INSERT INTO file (content) VALUES (zeroblob(1000))").await;
    assert_eq!(rows(&db).await, 3, "{mode:?}");
    assert_sound(&db).await;
    db.close().await.unwrap();
}

/// A commit that failed may leave frames in the log that a recovery would take for committed. Before it is said not to
/// be there, they are written over; and no save that was queued with it is told that it was saved before.
#[tokio::test]
async fn a_failed_commit_is_decided_before_it_is_said_not_to_be_there() {
    let test = "disk::a_failed_commit_is_decided_before_it_is_said_not_to_be_there";
    if let Some(folder) = scene() {
        for mode in Mode::ALL {
            ask_after_a_failed_commit(mode, Path::new(&folder)).await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let limit = "trap '' XFSZ && ulimit -f 800";
    let mut limited = after(limit, &again(test, folder.path().to_str().unwrap()));
    assert_passed(&limited.output().unwrap());
}

async fn ask_after_a_failed_commit(mode: Mode, folder: &Path) {
    let path = folder.join(format!("{mode:?}.db"));
    let db = mode.set(Database::builder(&path)).open().await.unwrap();
    db.create_tables::<File>().await.unwrap();
    let token = SaveToken::new();
    let (mut large, mut small) = (db.context(), db.context());
    large.add(file(1_000_000));
    small.add(file(1000));
    let held = db.begin().await.unwrap();
    let both = async {
        tokio::join!(
            large.save_changes_with(&token),
            small.save_changes_with(&token)
        )
    };
    let mut both = Box::pin(both);
    start(both.as_mut());
    held.rollback().await.unwrap();
    let (first, second) = both.await;
    assert_eq!(first.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(second.unwrap_err().kind(), ErrorKind::OutcomeUnknown);

    let other = outsider(&path);
    let commits = || -> i64 {
        other
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .unwrap()
    };
    let before = commits();
    assert_eq!(db.was_saved(&token).await.unwrap(), None, "{mode:?}");
    let decided = commits();
    assert_ne!(before, decided, "{mode:?}: nothing was written");
    assert_eq!(db.was_saved(&token).await.unwrap(), None);
    assert_eq!(commits(), decided, "{mode:?}: once is enough");
    small.save_changes_with(&token).await.unwrap();
    assert!(db.was_saved(&token).await.unwrap().is_some());
    assert_eq!(rows(&db).await, 1, "{mode:?}");
    assert_sound(&db).await;
}

/// A save that spills out of the page cache meets the failing disk before COMMIT: nothing is unsure then.
#[tokio::test]
async fn a_write_that_fails_before_commit_is_an_io_error() {
    let test = "disk::a_write_that_fails_before_commit_is_an_io_error";
    if let Some(folder) = scene() {
        let path = Path::new(&folder).join("spill.db");
        let db = Database::builder(&path)
            .cache_size(Bytes::kib(64))
            .open()
            .await
            .unwrap();
        db.create_tables::<File>().await.unwrap();
        let mut ctx = db.context();
        for _ in 0..500 {
            ctx.add(file(3000));
        }
        let error = ctx.save_changes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
        assert!(error.sqlite_code().is_some());
        assert_eq!(rows(&db).await, 0);
        execute(&db, "INSERT INTO file (content) VALUES (zeroblob(1000))").await;
        assert_sound(&db).await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let limit = "trap '' XFSZ && ulimit -f 800";
    let mut limited = after(limit, &again(test, folder.path().to_str().unwrap()));
    assert_passed(&limited.output().unwrap());
}
