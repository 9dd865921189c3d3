//! A disk that is full when a session commits.

use std::{fs, path::Path};

use anabranch::{
    engine::{Bytes, Isolation, Session},
    error::Result,
    prelude::*,
};
use anabranch_tests::{
    Mode, in_a_namespace,
    load::{
        GIVEN_UP, Line, Order, SESSION_LINES, add_order, check_file, plainly, write_in_session,
    },
    scene,
};

/// The test runs again in a mount namespace with a file system of two megabytes; where there are no such namespaces it
/// tells so and ends.
#[tokio::test]
async fn a_session_that_finds_the_disk_full_is_told_and_nothing_of_it_is_written() {
    if let Some(folder) = scene() {
        for mode in Mode::ALL {
            // With the small cache the disk is full at a statement already, not at the commit.
            for cache in [Bytes::mib(4), Bytes::kib(64)] {
                on_a_small_disk(mode, cache, Path::new(&folder)).await;
            }
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=2m none '{}'",
        folder.path().display()
    );
    let test = "full::a_session_that_finds_the_disk_full_is_told_and_nothing_of_it_is_written";
    in_a_namespace(&mount, test, folder.path().to_str().unwrap());
}

async fn on_a_small_disk(mode: Mode, cache: Bytes, folder: &Path) {
    let file = folder.join(format!("{mode:?}.db"));
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![0; 1024 * 1024]).unwrap();
    let builder = mode.set(Database::builder(&file)).sessions(2);
    let builder = builder.cache_size(cache);
    let db = builder.open().await.unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    let session = db.concurrent(async |s| write_in_session(s, 0, 0).await);
    session.await.unwrap();

    // Each of a place of the pool of two: none is lost.
    for serial in 0..3 {
        let failed = db.concurrent(async |s| large(s, serial).await);
        assert_full(&failed.await.unwrap_err());
        let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
        large(&mut s, serial).await.unwrap();
        assert_full(&s.commit().await.unwrap_err());
    }
    // One that waits with it for the same commit is not told what is not so.
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    large(&mut s, 3).await.unwrap();
    let mut ctx = db.context();
    add_order(&mut ctx, 1, 0, 1);
    let (session, save) = tokio::join!(s.commit(), ctx.save_changes());
    assert_full(&session.unwrap_err());
    if let Err(error) = &save {
        assert_full(error);
    }
    let saved = 1 + u64::from(save.is_ok());
    assert_eq!(Order::query().count(&db).await.unwrap(), saved, "{mode:?}");

    fs::remove_file(&ballast).unwrap();
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    write_in_session(&mut s, 2, 0).await.unwrap();
    let session = db.concurrent(async |s| write_in_session(s, 3, 0).await);
    session.await.unwrap();
    s.commit().await.unwrap();
    let mut ctx = db.context();
    add_order(&mut ctx, 4, 0, 2);
    ctx.save_changes().await.unwrap();
    assert_eq!(db.statistics().session_alarms, 0);
    db.close().await.unwrap();
    let orders = check_file(&plainly(&file).unwrap());
    assert_eq!(orders.len() as u64, saved + 3, "{mode:?}");
    assert!(orders.iter().all(|order| order.task < GIVEN_UP));
    let whole = |order: &&anabranch_tests::load::Found| order.lines == SESSION_LINES;
    assert_eq!(orders.iter().filter(whole).count(), 3);
    fs::remove_file(&file).unwrap();
}

/// More than there is room for: an order, and a table of a megabyte and a half.
async fn large(s: &mut Session, serial: i64) -> Result<()> {
    write_in_session(s, GIVEN_UP, serial).await?;
    for sql in [
        "CREATE TABLE ballast (content BLOB)",
        "INSERT INTO ballast VALUES (zeroblob(1500000))",
    ] {
        sqlx::query(sql).execute(&mut *s).await?;
    }
    Ok(())
}

fn assert_full(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains("make room"), "{error}");
}
