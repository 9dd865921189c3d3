//! Closing, and what is left of a temporary database.

use std::pin::pin;

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, execute,
    note::{Note, note},
    start, try_execute, until,
};
use futures_util::{StreamExt, future::join_all};

#[tokio::test]
async fn a_temporary_database_removes_its_folder() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let path = db.path().to_owned();
        let folder = path.parent().unwrap().to_owned();
        let clone = db.clone();
        let ctx = db.context();
        drop(db);
        execute(&clone, "INSERT INTO note (text) VALUES ('still there')").await;
        assert!(path.is_file());
        drop(clone);
        assert!(path.is_file(), "a context keeps it open");
        drop(ctx);
        until("the folder is gone", async || !folder.exists()).await;
    }
}

#[tokio::test]
async fn temporary_databases_are_strangers_to_each_other() {
    let first = Database::temporary().await.unwrap();
    let second = Database::temporary().await.unwrap();
    assert_ne!(first.path(), second.path());
    first.create_tables::<Note>().await.unwrap();
    let error = Note::query().count(&second).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement);
}

#[tokio::test]
async fn close_writes_what_is_queued_and_refuses_what_comes_later() {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = mode.set(Database::builder(&path)).open().await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        let guard = db.begin().await.unwrap();

        let mut contexts: Vec<_> = (0..50)
            .map(|_| {
                let mut ctx = db.context();
                ctx.add(note("text"));
                ctx
            })
            .collect();
        let mut saves = pin!(join_all(contexts.iter_mut().map(Context::save_changes)));
        start(saves.as_mut());
        let mut write = pin!(try_execute(&db, "INSERT INTO note (text) VALUES ('raw')"));
        start(write.as_mut());
        let mut close = pin!(db.close());
        start(close.as_mut());
        let mut twice = pin!(db.close());
        start(twice.as_mut());
        let mut late = db.context();
        late.add(note("text"));
        let mut late_save = pin!(late.save_changes());
        start(late_save.as_mut());

        guard.commit().await.unwrap();
        let (saves, written, closed, twice, late) =
            tokio::join!(saves, write, close, twice, late_save);
        assert!(saves.iter().all(Result::is_ok), "{mode:?}");
        written.unwrap();
        assert!(closed.unwrap().is_complete());
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);

        let connection = rusqlite::Connection::open(&path).unwrap();
        let rows: i64 = connection
            .query_row("SELECT count(*) FROM note", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 51);
    }
}

#[tokio::test]
async fn after_close_everything_is_refused_through_every_handle() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let other = db.clone();
        let mut ctx = db.context();
        ctx.add(note("text"));
        db.close().await.unwrap();
        let errors = [
            ctx.save_changes().await.unwrap_err(),
            ctx.find::<Note>(1).await.unwrap_err(),
            Note::query().count(&other).await.unwrap_err(),
            Note::query()
                .stream(&other)
                .next()
                .await
                .unwrap()
                .unwrap_err(),
            other.begin().await.map(drop).unwrap_err(),
            try_execute(&other, "DELETE FROM note").await.unwrap_err(),
            other.create_tables::<Note>().await.unwrap_err(),
            other.checkpoint().await.unwrap_err(),
            other.vacuum().await.unwrap_err(),
            other.close().await.unwrap_err(),
            db.close().await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Closed, "{mode:?}: {error:?}");
        }
        // Looking is not refused.
        assert!(db.writer_holder().is_none());
        assert!(db.statistics().saves == 0);
    }
}

#[tokio::test]
async fn a_closed_file_can_be_opened_again_beside_the_old_handle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let old = Database::open(&path).await.unwrap();
    old.create_tables::<Note>().await.unwrap();
    old.close().await.unwrap();
    let new = Database::open(&path).await.unwrap();
    execute(&new, "INSERT INTO note (text) VALUES ('new')").await;
    assert_eq!(Note::query().count(&new).await.unwrap(), 1);
    let error = Note::query().count(&old).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn close_leaves_the_log_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = Database::open(&path).await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    execute(&db, "INSERT INTO note (text) VALUES ('text')").await;
    assert!(db.close().await.unwrap().is_complete());
    let log = folder.path().join("app.db-wal");
    assert_eq!(std::fs::metadata(&log).map_or(0, |log| log.len()), 0);
    drop(db);
    until("the last connection takes the log along", async || {
        !log.exists()
    })
    .await;
}

#[tokio::test]
async fn reads_under_way_are_finished_after_close() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    execute(
        &db,
        "INSERT INTO note (text)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT 'row' FROM n",
    )
    .await;
    let mut rows = Note::query().stream(&db);
    rows.next().await.unwrap().unwrap();
    db.close().await.unwrap();
    assert_eq!(
        rows.filter(|row| std::future::ready(row.is_ok()))
            .count()
            .await,
        4999
    );
}

#[tokio::test]
async fn dropping_the_last_handle_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    for round in 0..10 {
        let db = Database::open(&path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        assert_eq!(Note::query().count(&db).await.unwrap(), round);
        let mut ctx = db.context();
        ctx.add(note("text"));
        ctx.save_changes().await.unwrap();
    }
}
