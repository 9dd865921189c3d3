//! Bulk operations beside whatever else goes on: dropped in the queue, sources that write, triggers and views, and keys
//! that sessions were given.

use std::{
    ops::ControlFlow,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anabranch::{
    prelude::*,
    query::{Over, row_number},
};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
    start, until,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "items")]
struct Item {
    #[entity(id)]
    id: i64,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "counted")]
struct Counted {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(version)]
    version: i64,
}

fn texts(count: i64) -> impl Iterator<Item = Note> + Send {
    (0..count).map(|n| note(format!("{n}")))
}

fn named(id: i64, name: &str) -> Item {
    Item {
        id,
        name: name.to_owned(),
    }
}

async fn with(schema: &[&'static str]) -> Database {
    let db = notes(Mode::Inline).await;
    for statement in schema {
        execute(&db, statement).await;
    }
    db
}

async fn count(db: &Database) -> u64 {
    Note::query().count(db).await.unwrap()
}

async fn items(db: &Database) -> Vec<Item> {
    Item::query()
        .order_by(Item::ID.asc())
        .all(db)
        .await
        .unwrap()
}

/// SQLite gave such rows NULL for a key, and no query could read them.
#[tokio::test]
async fn rows_without_keys_are_refused_where_sqlite_gives_none() {
    for key in ["INT PRIMARY KEY", "BIGINT PRIMARY KEY"] {
        let db = notes(Mode::Inline).await;
        let other = anabranch_tests::outsider(db.path());
        other
            .execute_batch(&format!(
                "CREATE TABLE items (id {key}, name TEXT NOT NULL);
                 INSERT INTO items VALUES (5, 'e'); INSERT INTO note VALUES (7, 'tea'), (8, 'jam')"
            ))
            .unwrap();
        let copy = || Note::query().select(Note::TEXT).insert_into(Item::NAME);
        let refused = copy().execute(&db).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Model, "{key}: {refused}");
        assert_eq!(
            (refused.table(), refused.column()),
            (Some("items"), Some("id"))
        );
        assert!(refused.to_string().contains("name the column"), "{refused}");
        let in_a_session = db
            .concurrent(async |s| copy().execute(&mut *s).await)
            .await
            .unwrap_err();
        assert_eq!(in_a_session.kind(), ErrorKind::Model);
        let in_a_transaction = db
            .write(async |tx| copy().returning(Item::NAME).all(&mut *tx).await)
            .await
            .unwrap_err();
        assert_eq!(in_a_transaction.kind(), ErrorKind::Model);

        // As it says; the others are given keys, as ever.
        let largest = Item::query().max(Item::ID, &db).await.unwrap().unwrap();
        let number = row_number().over(Over::all().order_by([Note::ID.asc()]));
        let keyed = Note::query().select((number + largest, Note::TEXT));
        let keyed = keyed.insert_into((Item::ID, Item::NAME));
        assert_eq!(keyed.execute(&db).await.unwrap(), 2);
        db.bulk_insert_optimized([named(0, "cake")]).await.unwrap();
        let keys: Vec<_> = items(&db).await.iter().map(|item| item.id).collect();
        assert_eq!(keys, [5, 6, 7, 8], "{key}");
    }
}

#[tokio::test]
async fn rows_without_keys_are_taken_where_the_table_says_what_becomes_of_them() {
    for schema in [
        "CREATE TABLE items (id INT PRIMARY KEY DEFAULT (abs(random()) / 2 + 1), name TEXT NOT NULL)",
        "CREATE TABLE items (name TEXT NOT NULL, ID INTEGER PRIMARY KEY)",
        "CREATE VIRTUAL TABLE items USING fts5 (id, name)",
    ] {
        let db = with(&[schema, "INSERT INTO note VALUES (7, 'tea')"]).await;
        let copy = Note::query().select(Note::TEXT).insert_into(Item::NAME);
        assert_eq!(copy.execute(&db).await.unwrap(), 1, "{schema}");
    }
    let db = with(&[
        "CREATE TABLE kept (name TEXT NOT NULL)",
        "CREATE VIEW items AS SELECT rowid AS id, name FROM kept",
        "CREATE TRIGGER into_kept INSTEAD OF INSERT ON items
         BEGIN INSERT INTO kept VALUES (NEW.name); END",
        "INSERT INTO note VALUES (7, 'tea')",
    ])
    .await;
    let copy = Note::query().select(Note::TEXT).insert_into(Item::NAME);
    copy.execute(&db).await.unwrap();
    assert_eq!(items(&db).await, [named(1, "tea")]);
}

/// SQLite knows nothing of the keys that sessions were given.
#[tokio::test]
async fn a_session_whose_key_sqlite_gave_to_another_row_runs_again() {
    let db = with(&["INSERT INTO note VALUES (7, 'tea')"]).await;
    db.create_tables::<Item>().await.unwrap();
    let copy = || Note::query().select(Note::TEXT).insert_into(Item::NAME);
    let beside = db.clone();
    let (attempts, id) = db
        .concurrent(async move |s| {
            let mut ctx = s.context();
            let handle = ctx.add(named(0, "of the session"));
            ctx.save_changes().await?;
            let id = ctx[handle].id;
            drop(ctx);
            if s.attempt() == 1 {
                // On another task: the database is the session's on this one.
                let db = beside.clone();
                let copied = tokio::spawn(async move {
                    Note::query()
                        .select(Note::TEXT)
                        .insert_into(Item::NAME)
                        .execute(&db)
                        .await
                });
                assert_eq!(copied.await.unwrap()?, 1);
            }
            Ok((s.attempt(), id))
        })
        .await
        .unwrap();
    assert_eq!((attempts, id), (2, 2));
    assert_eq!(
        items(&db).await,
        [named(1, "tea"), named(2, "of the session")]
    );

    // Begun by hand, it is told as a conflict, and not as a key that is taken.
    let mut s = db.begin_concurrent(Isolation::Snapshot).await.unwrap();
    let raw: i64 = sqlx::query_scalar(
        "INSERT INTO items (id, name) VALUES (next_id('items'), 'raw') RETURNING id",
    )
    .fetch_one(&mut *s)
    .await
    .unwrap();
    let taken = copy().returning(Item::ID).all(&db).await.unwrap();
    assert_eq!(taken, [raw], "the premise");
    let error = s.commit().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(items(&db).await.len(), 3);
}

/// What waited for its turn was written all the same, at some time after the drop.
#[tokio::test]
async fn dropped_while_it_waits_for_the_writer_nothing_is_written() {
    for mode in Mode::ALL {
        for polls in [1, 2, 100] {
            let db = notes(mode).await;
            let held = db.begin().await.unwrap();
            {
                let rows = stream::iter(texts(100)).then(async |row| {
                    tokio::task::yield_now().await;
                    row
                });
                let mut bulk = pin!(db.bulk_insert().chunk_rows(10).run_stream(rows));
                until("the chunk is queued", async || {
                    assert!(bulk.as_mut().now_or_never().is_none());
                    db.health().await.queued == 1
                })
                .await;
                for _ in 0..polls {
                    start(bulk.as_mut());
                }
            }
            held.rollback().await.unwrap();
            let mut ctx = db.context();
            ctx.add(note("after it"));
            ctx.save_changes().await.unwrap();
            // Whatever may still come.
            db.bulk_insert_optimized(texts(0)).await.unwrap();
            until("the queue is empty", async || {
                db.health().await.queued == 0 && db.writer_holder().is_none()
            })
            .await;
            assert_eq!(count(&db).await, 1, "{mode:?}");
            db.close().await.unwrap();
        }
    }
}

/// It waited for the chunk's turn, whoever had it, before it said how far it had come.
#[tokio::test]
async fn told_to_stop_while_a_chunk_waits_for_the_writer_it_ends_at_once() {
    let db = notes(Mode::Inline).await;
    let first = db.begin().await.unwrap();
    let bulk = db
        .bulk_insert()
        .chunk_rows(10)
        .on_progress(|_| ControlFlow::Break(()));
    let mut bulk = pin!(bulk.run(texts(100)));
    until("the chunk is queued", async || {
        assert!(bulk.as_mut().now_or_never().is_none());
        db.health().await.queued == 1
    })
    .await;
    start(bulk.as_mut());
    let mut second = pin!(db.begin());
    start(second.as_mut());
    first.rollback().await.unwrap();
    let second = second.await.unwrap();
    until("the next chunk is queued", async || {
        db.health().await.queued == 1
    })
    .await;
    let report = bulk.await.unwrap();
    assert_eq!(
        (report.rows, report.written, report.is_complete),
        (10, 10, false)
    );
    assert_eq!(report.transactions, 1);
    second.rollback().await.unwrap();
    assert_eq!(count(&db).await, 10);
}

/// As long as another process has the lock nothing has begun.
#[tokio::test]
async fn dropped_while_another_process_writes_nothing_is_written() {
    let db = notes(Mode::Inline).await;
    let other = anabranch_tests::outsider(db.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for bulk in [
        db.bulk_insert(),
        db.bulk_insert().exclusive(),
        db.bulk_insert().atomic(),
    ] {
        let busy = db.statistics().busy;
        let mut bulk = pin!(bulk.run(texts(10)));
        until("it met the lock", async || {
            assert!(bulk.as_mut().now_or_never().is_none());
            db.statistics().busy > busy
        })
        .await;
    }
    other.execute_batch("ROLLBACK").unwrap();
    let mut ctx = db.context();
    ctx.add(note("after them"));
    ctx.save_changes().await.unwrap();
    assert_eq!(count(&db).await, 1);
}

/// One of ten rows would have been applied on the task of the save, in its commit.
#[tokio::test]
async fn a_save_applies_no_chunk_that_waits_behind_it() {
    let db = notes(Mode::Inline).await;
    let before = db.statistics();
    let held = db.begin().await.unwrap();
    let mut ctx = db.context();
    ctx.add(note("first"));
    let mut save = pin!(ctx.save_changes());
    start(save.as_mut());
    let mut bulk = pin!(db.bulk_insert().run(texts(10)));
    until("the chunk is queued", async || {
        assert!(bulk.as_mut().now_or_never().is_none());
        db.health().await.queued == 2
    })
    .await;
    held.rollback().await.unwrap();
    save.await.unwrap();
    assert_eq!(bulk.await.unwrap().written, 10);
    let after = db.statistics();
    assert_eq!(after.groups - before.groups, 2);
    assert_eq!(after.largest_group, 1);
}

/// The source waited for the slot that its own operation held, until the queue's timeout.
#[tokio::test]
async fn a_source_that_writes_itself_is_told_at_once() {
    for is_atomic in [false, true] {
        let db = notes(Mode::Inline).await;
        let keep = || {
            let bulk = db.bulk_insert().chunk_rows(10);
            if is_atomic {
                bulk.atomic()
            } else {
                bulk.exclusive()
            }
        };
        let save = |db: Database| async move {
            let mut ctx = db.context();
            ctx.add(note("beside"));
            ctx.save_changes().await.map(|_| note("row"))
        };
        let rows = stream::iter(texts(15))
            .map(Ok)
            .chain(stream::once(save(db.clone())));
        let failed = keep().run_try_stream(rows).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Nested, "{failed}");
        assert_eq!(failed.row(), Some(15));
        let text = failed.to_string();
        assert!(
            text.contains("exclusive") && text.contains("atomic"),
            "{text}"
        );
        let begins = stream::once(async { db.begin().await.map(|_| note("row")) });
        let failed = keep().run_try_stream(begins).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Nested, "{failed}");
        // Reading does no harm, and neither does another database.
        let other = notes(Mode::Inline).await;
        let reads = stream::once(async {
            save(other.clone()).await?;
            Ok::<_, Error>(note(count(&db).await.to_string()))
        });
        keep().run_try_stream(reads).await.unwrap();
        // The mark is gone with it.
        save(db.clone()).await.unwrap();
    }
}

/// It is not known on another task: there the timeout names who holds the writer.
#[tokio::test]
async fn a_source_that_writes_on_another_task_is_told_who_holds_the_writer() {
    let db = Database::builder("")
        .queue_timeout(Duration::from_millis(30))
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    let beside = db.clone();
    let rows = stream::once(async move {
        let save = async move {
            let mut ctx = beside.context();
            ctx.add(note("beside"));
            ctx.save_changes().await.map(drop)
        };
        tokio::spawn(save).await.unwrap().map(|()| note("row"))
    });
    let bulk = db.bulk_insert().exclusive().run_try_stream(rows);
    let failed = bulk.await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::QueueTimeout, "{failed}");
    assert!(failed.to_string().contains("a bulk operation"), "{failed}");
}

/// The writer was kept while rows went by that nobody wanted.
#[tokio::test]
async fn the_writer_is_free_while_rows_are_skipped() {
    for is_atomic in [false, true] {
        let db = notes(Mode::Inline).await;
        let was_free = AtomicBool::new(true);
        let rows = stream::iter(texts(30).enumerate()).then(async |(at, row)| {
            let kept = db.writer_holder().is_some();
            was_free.fetch_and(kept == (at >= 20), Ordering::Relaxed);
            if at == 5 {
                let mut ctx = db.context();
                ctx.add(note("beside"));
                ctx.save_changes().await.unwrap();
            }
            row
        });
        let bulk = db.bulk_insert().skip_rows(20);
        let bulk = if is_atomic {
            bulk.atomic()
        } else {
            bulk.exclusive()
        };
        let report = bulk.run_stream(rows).await.unwrap();
        assert_eq!((report.rows, report.written), (30, 10));
        assert!(was_free.into_inner());
        assert_eq!(count(&db).await, 11);
    }
}

/// The row was told to be missing, and had the very version that was asked for.
#[tokio::test]
async fn a_row_that_a_trigger_passes_over_is_not_told_to_be_missing() {
    let db = with(&[
        "CREATE TABLE counted (id INTEGER PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL)",
        "INSERT INTO counted VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)",
        "CREATE TRIGGER keeps BEFORE UPDATE ON counted WHEN OLD.id = 2 BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER stays BEFORE DELETE ON counted WHEN OLD.id = 2 BEGIN SELECT RAISE(IGNORE); END",
    ])
    .await;
    let rows = |version| {
        (1..=3).map(move |id| Counted {
            id,
            name: "new".into(),
            version,
        })
    };
    for bulk in [db.bulk_update(), db.bulk_update().skip_missing()] {
        let failed = bulk.run(rows(1)).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Constraint, "{failed}");
        assert_eq!(
            (failed.row(), failed.error().table()),
            (Some(1), Some("counted"))
        );
        assert!(failed.to_string().contains("RAISE(IGNORE)"), "{failed}");
    }
    // Another version is another version, trigger or not.
    let failed = db.bulk_update().run(rows(9)).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row()),
        (ErrorKind::Conflict, Some(0))
    );
    let report = db.bulk_update().skip_missing().run(rows(9)).await.unwrap();
    assert_eq!((report.written, report.passed_over), (0, 3));

    let failed = db.bulk_delete::<Counted>().run([7, 2]).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row()),
        (ErrorKind::Constraint, Some(1))
    );
    assert!(failed.to_string().contains("RAISE(IGNORE)"), "{failed}");
    let report = db.bulk_delete::<Counted>().run([1, 7, 3]).await.unwrap();
    assert_eq!((report.written, report.passed_over), (2, 1));
}

/// SQLite counts nothing that the triggers of a view do, so nothing was told to be written.
#[tokio::test]
async fn rows_of_a_view_are_counted_that_its_triggers_took() {
    let db = with(&[
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
        "CREATE VIEW items AS SELECT id, name FROM kept",
        "CREATE TRIGGER inserts INSTEAD OF INSERT ON items
         BEGIN INSERT INTO kept VALUES (NEW.id, NEW.name); END",
        "CREATE TRIGGER changes INSTEAD OF UPDATE ON items
         BEGIN UPDATE kept SET name = NEW.name WHERE id = NEW.id; END",
        "CREATE TRIGGER deletes INSTEAD OF DELETE ON items
         BEGIN DELETE FROM kept WHERE id = OLD.id; END",
    ])
    .await;
    let told = |report: anabranch::bulk::BulkReport| (report.written, report.passed_over);
    let insert = db.bulk_insert().run((1..=240).map(|id| named(id, "old")));
    assert_eq!(told(insert.await.unwrap()), (240, 0));
    let rows = || (239..=242).map(|id| named(id, "new"));
    // Of rows that are not there the triggers hear nothing.
    let failed = db.bulk_update().run(rows()).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row()),
        (ErrorKind::Conflict, Some(2))
    );
    let update = db.bulk_update().skip_missing().run(rows());
    assert_eq!(told(update.await.unwrap()), (2, 2));
    let delete = db.bulk_delete::<Item>().run(237..=242);
    assert_eq!(told(delete.await.unwrap()), (4, 2));
    let left = items(&db).await;
    assert_eq!(left.len(), 236);
    assert!(left.iter().all(|item| item.name == "old"));
}
