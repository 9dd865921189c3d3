//! VACUUM: the room that it needs, and the log that it leaves.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anabranch::{engine::TempStore, prelude::*};
use anabranch_tests::{
    Mode, execute, in_a_namespace,
    note::{Note, note},
    scene,
};

fn length(path: &Path, suffix: &str) -> u64 {
    let path = PathBuf::from(format!("{}{suffix}", path.display()));
    fs::metadata(path).unwrap().len()
}

async fn megabytes(db: &Database, number: usize) {
    db.create_tables::<Note>().await.unwrap();
    let notes = (0..number * 1_000).map(|_| note("x".repeat(1000)));
    db.bulk_insert_optimized(notes).await.unwrap();
}

/// Case 50: after VACUUM the log was as large as the database.
#[tokio::test]
async fn vacuum_shrinks_the_file_and_leaves_no_log() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        megabytes(&db, 4).await;
        execute(&db, "DELETE FROM note WHERE id % 2").await;
        let report = db.vacuum().await.unwrap();
        assert_eq!(length(db.path(), "-wal"), 0, "{mode:?}");
        assert!(report.checkpoint.is_complete());
        assert_eq!(length(db.path(), ""), report.bytes_after, "{mode:?}");
        assert!(report.bytes_after < report.bytes_before * 6 / 10);
        assert_eq!(Note::query().count(&db).await.unwrap(), 2_000);
    }
}

/// With a reader in the way the log stays, and it is told.
#[tokio::test]
async fn a_log_that_vacuum_could_not_move_is_told() {
    let db = Mode::Inline.temporary().await;
    megabytes(&db, 1).await;
    let report = db
        .read(async |snapshot| {
            Note::query().count(&mut *snapshot).await?;
            db.vacuum().await
        })
        .await
        .unwrap();
    assert!(!report.checkpoint.is_complete(), "{report:?}");
    assert!(length(db.path(), "-wal") > 1_000_000);
    assert!(db.checkpoint().await.unwrap().is_complete());
    assert_eq!(length(db.path(), "-wal"), 0);
}

/// A disk of 16 megabytes, of which the database has six.
#[tokio::test]
async fn vacuum_without_room_says_how_much_is_missing_and_writes_nothing() {
    if let Some(disk) = scene() {
        let disk = Path::new(&disk);
        for (name, temp_store, ballast) in [
            ("memory", TempStore::Memory, 6),
            // The temporary file would be on the same disk.
            ("file", TempStore::File, 2),
        ] {
            let db = Database::builder(disk.join(name))
                .temp_store(temp_store)
                .open()
                .await
                .unwrap();
            megabytes(&db, 6).await;
            db.checkpoint().await.unwrap();
            let fills = disk.join("ballast");
            fs::write(&fills, vec![0; ballast * 1024 * 1024]).unwrap();
            let error = db.vacuum().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Full, "{name}: {error:?}");
            assert!(error.to_string().contains("bytes are missing"), "{error}");
            assert_eq!(length(db.path(), "-wal"), 0, "nothing was written");
            execute(&db, "DELETE FROM note WHERE id > 10").await;
            db.vacuum().await.unwrap();
            db.close().await.unwrap();
            fs::remove_file(fills).unwrap();
            fs::remove_file(disk.join(name)).unwrap();
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display();
    let mount =
        format!("mount -t tmpfs -o size=16m none '{disk}' && export SQLITE_TMPDIR='{disk}'");
    let test = "vacuum::vacuum_without_room_says_how_much_is_missing_and_writes_nothing";
    in_a_namespace(&mount, test, folder.path().to_str().unwrap());
}
