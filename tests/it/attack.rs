//! Bulk operations under hostile rows, schemas, sources and neighbours: whole chunks or nothing, the right row named, the
//! writer free afterwards.

use std::{
    fs,
    future::poll_fn,
    io::{BufRead as _, BufReader},
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    path::Path,
    pin::pin,
    process::Stdio,
    time::Duration,
};

use anabranch::{
    bulk::{Bulk, BulkError, BulkReport, Inserting},
    prelude::*,
    query::Query,
};
use anabranch_tests::{
    Mode, after, again, assert_passed, dropped_after, in_a_namespace,
    note::{Note, note, notes},
    outsider, scene,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::sync::mpsc;

/// How the writer is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Shared,
    Exclusive,
    Atomic,
}

impl Kept {
    const ALL: [Self; 3] = [Self::Shared, Self::Exclusive, Self::Atomic];

    fn insert(self, db: &Database) -> Bulk<'static, Inserting<Note>> {
        let bulk = db.bulk_insert().chunk_rows(10);
        match self {
            Self::Shared => bulk,
            Self::Exclusive => bulk.exclusive(),
            Self::Atomic => bulk.atomic(),
        }
    }
}

/// Without an index, so that many rows are inserted by one statement.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "things")]
struct Thing {
    #[entity(id)]
    id: i64,
    parent: Option<i64>,
    name: String,
}

fn thing(id: i64, parent: Option<i64>) -> Thing {
    let name = format!("thing {id}");
    Thing { id, parent, name }
}

fn things(count: i64) -> impl Iterator<Item = Thing> + Send {
    (0..count).map(|n| Thing {
        id: 0,
        ..thing(n, None)
    })
}

fn texts(count: i64) -> impl Iterator<Item = Note> + Send {
    (0..count).map(|n| note(format!("{n}")))
}

async fn with(schema: &str) -> Database {
    let db = Database::temporary().await.unwrap();
    outsider(db.path()).execute_batch(schema).unwrap();
    db
}

const THINGS: &str =
    "CREATE TABLE things (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL);";

async fn count<E: Entity>(db: &Database) -> u64 {
    Query::<E>::new().count(db).await.unwrap()
}

/// Nobody's transaction is open, and the next save takes place at once.
async fn assert_free(db: &Database) {
    db.begin().await.unwrap().rollback().await.unwrap();
    assert!(db.writer_holder().is_none());
    let other = outsider(db.path());
    other.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
}

fn refused(outcome: Result<BulkReport, BulkError>) -> (ErrorKind, std::ops::Range<u64>) {
    let failed = outcome.unwrap_err();
    (failed.kind(), failed.rows())
}

#[tokio::test]
async fn the_row_is_named_whatever_the_schema_says_of_conflicts() {
    for clause in ["ABORT", "ROLLBACK", "IGNORE"] {
        let db = with(&format!(
            "CREATE TABLE things (id INTEGER PRIMARY KEY ON CONFLICT {clause}, parent INTEGER, name TEXT NOT NULL);"
        ))
        .await;
        let rows = |n| (1..=n).map(|n| thing(if n == 60 { 7 } else { n }, None));
        for n in [90, 100, 150] {
            let outcome = db.bulk_insert().run(rows(n)).await;
            assert_eq!(count::<Thing>(&db).await, 0, "{clause}: {outcome:?}");
            let failed = outcome.unwrap_err();
            assert!(failed.error().is_constraint(), "{clause}: {failed}");
            assert!(failed.rows().contains(&59), "{clause} of {n}: {failed}");
            assert_free(&db).await;
        }
        // They are passed over all the same.
        let report = db.bulk_insert().skip_conflicts().run(rows(100)).await;
        let report = report.unwrap();
        assert_eq!((report.written, report.passed_over), (99, 1), "{clause}");
        assert_eq!(count::<Thing>(&db).await, 99, "{clause}");
    }
}

#[tokio::test]
async fn a_reference_that_is_deferred_holds_at_the_end_of_the_transaction() {
    for kept in [Kept::Shared, Kept::Atomic] {
        let db = with(
            "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
                parent INTEGER REFERENCES things DEFERRABLE INITIALLY DEFERRED);",
        )
        .await;
        let bulk = || {
            let bulk = db.bulk_insert().chunk_rows(10);
            if kept == Kept::Atomic {
                bulk.atomic()
            } else {
                bulk
            }
        };
        // Below one that comes later in the same chunk.
        bulk()
            .run((1..=10).map(|n| thing(n, Some(11 - n))))
            .await
            .unwrap();
        // Below none.
        let (kind, rows) = refused(bulk().run((11..=20).map(|n| thing(n, Some(99)))).await);
        // At COMMIT SQLite does not say which.
        let among = if kept == Kept::Atomic { 0..0 } else { 0..10 };
        assert_eq!((kind, rows), (ErrorKind::ForeignKey, among), "{kept:?}");
        assert_eq!(count::<Thing>(&db).await, 10);
        assert_free(&db).await;
    }
}

#[tokio::test]
async fn a_trigger_that_inserts_into_the_same_table_takes_no_key_of_the_rows() {
    let db = with(&format!(
        "{THINGS} CREATE TRIGGER echo AFTER INSERT ON things WHEN NEW.parent IS NULL
         BEGIN INSERT INTO things (parent, name) VALUES (NEW.id, 'echo'); END"
    ))
    .await;
    for rows in [20, 250] {
        let before = count::<Thing>(&db).await;
        let report = db.bulk_insert().run(things(rows)).await.unwrap();
        assert_eq!(report.written, u64::try_from(rows).unwrap());
        assert_eq!(count::<Thing>(&db).await - before, 2 * report.written);
    }
    let echoes = Thing::query().filter(Thing::NAME.eq("echo"));
    assert_eq!(echoes.count(&db).await.unwrap(), 270);
}

#[tokio::test]
async fn keys_at_the_end_of_the_numbers_are_refused_and_never_wrap() {
    for rows in [3, 150] {
        let db = with(THINGS).await;
        // The largest, and then one that lacks a key.
        let ends = || [thing(i64::MAX, None), thing(i64::MIN, None)].into_iter();
        let (kind, among) = refused(db.bulk_insert().run(ends().chain(things(rows))).await);
        assert!(among.start >= 2, "{kind:?} {among:?}");
        assert_eq!(count::<Thing>(&db).await, 0, "{kind:?}");
        assert_eq!(db.bulk_insert().run(ends()).await.unwrap().written, 2);
        assert_free(&db).await;
    }
}

#[tokio::test]
async fn the_same_key_twice_in_one_statement_is_found_at_its_row() {
    let db = with(THINGS).await;
    let rows = || (1..=300).map(|n| thing(if n % 100 == 77 { 5 } else { n }, None));
    assert_eq!(
        refused(db.bulk_insert().run(rows()).await),
        (ErrorKind::Unique, 76..77)
    );
    let report = db.bulk_insert().skip_conflicts().run(rows()).await.unwrap();
    assert_eq!((report.written, report.passed_over), (297, 3));
    // The writer's keys beside them: none is given twice.
    let mixed = (1..=200).map(|n| {
        if n % 2 == 0 {
            thing(1_000 + n, None)
        } else {
            thing(0, None)
        }
    });
    let report = db.bulk_insert().run(mixed).await.unwrap();
    assert_eq!((report.written, count::<Thing>(&db).await), (200, 497));
}

#[tokio::test]
async fn an_upsert_of_the_same_row_twice_in_one_statement_keeps_the_last() {
    let db = with(THINGS).await;
    let rows = (0..300).map(|n| Thing {
        id: n % 7 + 1,
        parent: Some(n),
        name: "x".into(),
    });
    let bulk = db.bulk_upsert(|upsert| upsert.on(Thing::ID).update(Thing::PARENT));
    let report = bulk.run(rows).await.unwrap();
    assert_eq!(report.rows, 300);
    let found = Thing::query()
        .order_by(Thing::ID.asc())
        .select(Thing::PARENT);
    let last = [294, 295, 296, 297, 298, 299, 293].map(Some);
    assert_eq!(found.all(&db).await.unwrap(), last);
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_at_its_row_in_every_way_of_writing() {
    for kept in Kept::ALL {
        let db = notes(Mode::Inline).await;
        let rows = texts(25).map(|row| if row.text == "23" { note("a\0b") } else { row });
        assert_eq!(
            refused(kept.insert(&db).run(rows).await),
            (ErrorKind::Value, 23..24)
        );
        let stays = if kept == Kept::Atomic { 0 } else { 23 };
        assert_eq!(count::<Note>(&db).await, stays, "{kept:?}");
        assert_free(&db).await;
    }
}

#[tokio::test]
async fn a_session_that_read_a_table_without_rowids_is_in_conflict() {
    let db = with("CREATE TABLE things (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL) WITHOUT ROWID").await;
    let (attempts, rows) = db
        .concurrent(async |s| {
            let rows = Thing::query().count(&mut *s).await?;
            if s.attempt() == 1 {
                let db = db.clone();
                let bulk = async move { db.bulk_insert().exclusive().run(things(120)).await };
                tokio::spawn(bulk).await.unwrap()?;
            }
            let mut ctx = s.context();
            ctx.add(thing(1_000, None));
            ctx.save_changes().await?;
            Ok((s.attempt(), rows))
        })
        .await
        .unwrap();
    assert_eq!((attempts, rows), (2, 120));
}

#[tokio::test]
async fn a_view_takes_rows_through_its_triggers() {
    let db = with(
        "CREATE TABLE hidden (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL);
         CREATE VIEW things AS SELECT * FROM hidden;
         CREATE TRIGGER into_things INSTEAD OF INSERT ON things
         BEGIN INSERT INTO hidden VALUES (NEW.id, NEW.parent, NEW.name); END;",
    )
    .await;
    for rows in [20, 150] {
        let first = 1_000 * rows;
        let rows = (first..first + rows).map(|n| thing(n, None));
        db.bulk_insert().run(rows).await.unwrap();
    }
    assert_eq!(count::<Thing>(&db).await, 170);
}

#[tokio::test]
async fn dropped_at_any_await_it_leaves_whole_chunks_and_a_free_writer() {
    for kept in Kept::ALL {
        let db = notes(Mode::Inline).await;
        for polls in 0..120 {
            // The source waits now and then.
            let rows = stream::iter(texts(40)).then(async |row| {
                tokio::task::yield_now().await;
                row
            });
            let before = count::<Note>(&db).await;
            let outcome = dropped_after(polls, kept.insert(&db).run_stream(rows)).await;
            // The writer may be at a chunk yet.
            db.begin().await.unwrap().rollback().await.unwrap();
            let written = count::<Note>(&db).await - before;
            let whole = if kept == Kept::Atomic { 40 } else { 10 };
            assert_eq!(written % whole, 0, "{kept:?} after {polls} polls");
            if let Some(outcome) = outcome {
                assert_eq!((outcome.unwrap().written, written), (40, 40));
            }
        }
        kept.insert(&db).run(texts(40)).await.unwrap();
        assert_free(&db).await;
        db.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_panic_of_the_source_or_the_callback_leaves_nothing_open() {
    for kept in Kept::ALL {
        let db = notes(Mode::Inline).await;
        let rows = texts(40).inspect(|row| assert_ne!(row.text, "35", "the source panics"));
        let source = AssertUnwindSafe(kept.insert(&db).run(rows))
            .catch_unwind()
            .await;
        assert!(source.is_err());
        let told = kept.insert(&db).on_progress(|progress| {
            assert!(progress.rows < 20, "the callback panics");
            ControlFlow::Continue(())
        });
        let callback = AssertUnwindSafe(told.run(texts(40))).catch_unwind().await;
        assert!(callback.is_err());
        assert_free(&db).await;
        let rows = count::<Note>(&db).await;
        let whole = if kept == Kept::Atomic { 1_000 } else { 10 };
        assert_eq!(rows % whole, 0, "{kept:?}");
        kept.insert(&db).run(texts(5)).await.unwrap();
        db.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_database_is_closed_while_the_source_makes_it_wait() {
    for kept in Kept::ALL {
        let db = notes(Mode::Inline).await;
        let (rows, waiting) = mpsc::channel(50);
        let waiting = stream::unfold(waiting, async |mut waiting| {
            Some((waiting.recv().await?, waiting))
        });
        let (seen, mut progress) = mpsc::unbounded_channel();
        let told = kept.insert(&db).on_progress(move |progress| {
            seen.send(progress.rows).unwrap();
            ControlFlow::Continue(())
        });
        let mut bulk = Box::pin(told.run_stream(waiting));
        for row in texts(15) {
            rows.send(row).await.unwrap();
        }
        poll_fn(|context| {
            assert!(bulk.as_mut().poll(context).is_pending());
            progress.poll_recv(context).map(drop)
        })
        .await;
        let mut close = pin!(db.close());
        let closed = close.as_mut().now_or_never();
        // More comes, and the end.
        for row in texts(15) {
            rows.send(row).await.unwrap();
        }
        drop(rows);
        let outcome = bulk.await;
        if closed.is_none() {
            close.await.unwrap();
        }
        match outcome {
            Ok(report) => assert_eq!(report.written, 30, "{kept:?}"),
            Err(failed) => {
                assert_eq!(failed.kind(), ErrorKind::Closed, "{kept:?}: {failed}");
                assert_eq!(
                    failed.report().written,
                    if kept == Kept::Atomic { 0 } else { 10 }
                );
            }
        }
    }
}

#[tokio::test]
async fn a_lock_of_another_program_is_told_and_it_goes_on_from_there() {
    for kept in Kept::ALL {
        let db = Database::builder("")
            .busy_timeout(Duration::from_millis(20))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<Note>().await.unwrap();
        let other = outsider(db.path());
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let failed = kept.insert(&db).run(texts(30)).await.unwrap_err();
        assert_eq!(
            (failed.kind(), failed.rows()),
            (ErrorKind::Busy, 0..0),
            "{kept:?}"
        );
        assert_eq!(failed.report().rows, 0);
        other.execute_batch("ROLLBACK").unwrap();
        assert_free(&db).await;
        let report = kept.insert(&db).run(texts(30)).await.unwrap();
        assert_eq!((report.written, count::<Note>(&db).await), (30, 30));
    }
}

#[tokio::test]
async fn a_file_that_is_moved_meanwhile_is_told() {
    for kept in [Kept::Shared, Kept::Exclusive] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("app.db");
        let db = Database::open(&path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        // It is noticed after a while.
        let rows = texts(i64::MAX).inspect(|row| {
            if row.text == "35" {
                fs::rename(&path, path.with_file_name("aside.db")).unwrap();
            }
        });
        let failed = kept.insert(&db).run(rows).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::FileMoved, "{kept:?}: {failed}");
    }
}

/// The test runs again in a mount namespace with a file system of two megabytes.
#[tokio::test]
async fn on_a_full_disk_whole_chunks_stay() {
    let test = "attack::on_a_full_disk_whole_chunks_stay";
    if let Some(folder) = scene() {
        for kept in Kept::ALL {
            on_a_small_disk(kept, Path::new(&folder)).await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=2m none '{}'",
        folder.path().display()
    );
    in_a_namespace(&mount, test, folder.path().to_str().unwrap());
}

async fn on_a_small_disk(kept: Kept, folder: &Path) {
    // The pages of an atomic one are kept in memory until COMMIT, or spilled into the log.
    for cache in [Bytes::kib(64), Bytes::mib(8)] {
        let path = folder.join("app.db");
        let ballast = folder.join("ballast");
        fs::write(&ballast, vec![0; 1024 * 1024]).unwrap();
        let db = Database::builder(&path)
            .cache_size(cache)
            .open()
            .await
            .unwrap();
        db.create_tables::<Note>().await.unwrap();
        let rows = (0..1_000).map(|_| note("x".repeat(3_000)));
        let failed = kept.insert(&db).run(rows).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Full, "{kept:?}: {failed}");
        let report = failed.report();
        assert_eq!(count::<Note>(&db).await, report.written, "{kept:?}");
        assert_eq!(report.written % 10, 0, "{kept:?}: {report:?}");
        assert_eq!(
            report.written > 0,
            kept != Kept::Atomic,
            "{kept:?}: {report:?}"
        );
        fs::remove_file(&ballast).unwrap();
        assert_free(&db).await;
        kept.insert(&db).run(texts(20)).await.unwrap();
        let sound: String = outsider(&path)
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
        db.close().await.unwrap();
        fs::remove_file(&path).unwrap();
    }
}

/// The process may not let any file grow beyond 400 KiB: an atomic operation meets that at COMMIT.
#[tokio::test]
async fn on_a_disk_that_fails_nothing_of_an_atomic_operation_is_there() {
    let test = "attack::on_a_disk_that_fails_nothing_of_an_atomic_operation_is_there";
    if let Some(folder) = scene() {
        for kept in Kept::ALL {
            let path = Path::new(&folder).join(format!("{kept:?}.db"));
            let db = Database::builder(&path)
                .cache_size(Bytes::mib(8))
                .open()
                .await
                .unwrap();
            db.create_tables::<Note>().await.unwrap();
            let rows = (0..300).map(|_| note("x".repeat(3_000)));
            let failed = kept.insert(&db).run(rows).await.unwrap_err();
            assert_eq!(
                failed.kind(),
                ErrorKind::OutcomeUnknown,
                "{kept:?}: {failed}"
            );
            let written = count::<Note>(&db).await;
            assert_eq!(written, failed.report().written, "{kept:?}: having looked");
            assert_eq!(written > 0, kept != Kept::Atomic, "{kept:?}");
            assert_free(&db).await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let limit = "trap '' XFSZ && ulimit -f 800";
    let mut limited = after(limit, &again(test, folder.path().to_str().unwrap()));
    assert_passed(&limited.output().unwrap());
}

/// What was told as committed survives, and of the rest whole chunks or nothing.
#[tokio::test]
async fn killed_meanwhile_it_leaves_whole_chunks() {
    let test = "attack::killed_meanwhile_it_leaves_whole_chunks";
    if let Some(scene) = scene() {
        let (kept, path) = scene.split_once(' ').unwrap();
        let kept = Kept::ALL[kept.parse::<usize>().unwrap()];
        let db = Database::open(path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        let told = kept.insert(&db).on_progress(|progress| {
            println!("told {}", progress.rows);
            ControlFlow::Continue(())
        });
        told.run(texts(i64::MAX)).await.unwrap();
        return;
    }
    for (number, kept) in Kept::ALL.into_iter().enumerate() {
        for rows in [10, 170, 1_030] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let told = kill_after(rows, test, &format!("{number} {}", path.display()));
            let db = Database::open(&path).await.unwrap();
            let found = count::<Note>(&db).await;
            if kept == Kept::Atomic {
                assert_eq!(found, 0);
            } else {
                assert!(
                    found >= told && found % 10 == 0,
                    "{kept:?}: {found} of {told}"
                );
            }
            kept.insert(&db).run(texts(20)).await.unwrap();
            assert_eq!(count::<Note>(&db).await, found + 20);
        }
    }
}

/// Kills a process once it told of this many rows; of how many it told before it was gone.
fn kill_after(rows: u64, test: &str, scene: &str) -> u64 {
    let mut child = again(test, scene).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut most = 0;
    for line in lines.map_while(Result::ok) {
        let told = line
            .split("told ")
            .nth(1)
            .and_then(|rows| rows.parse().ok());
        most = told.unwrap_or(most).max(most);
        if most >= rows {
            // Once more does no harm.
            child.kill().unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), None, "it ended by itself");
    most
}

#[tokio::test]
async fn any_number_of_rows_may_be_asked_for_in_a_chunk() {
    for rows in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 2] {
        let db = notes(Mode::Inline).await;
        let report = db.bulk_insert().chunk_rows(rows).run(texts(250)).await;
        let report = report.unwrap();
        assert_eq!((report.written, report.transactions), (250, 1), "{rows}");
    }
}

/// `FAIL` ends a statement, and keeps the rows that it inserted before.
#[tokio::test]
async fn rows_before_one_that_fails_are_not_inserted_twice() {
    let db = with(&format!(
        "{THINGS} CREATE TRIGGER no_fifty BEFORE INSERT ON things WHEN NEW.id = 50
         BEGIN SELECT RAISE(FAIL, 'not this one'); END"
    ))
    .await;
    let outcome = db.bulk_insert().run(things(100)).await;
    let found = count::<Thing>(&db).await;
    match outcome {
        Ok(report) => assert_eq!(found, report.written),
        Err(failed) => assert_eq!((found, failed.row()), (0, Some(49)), "{failed}"),
    }
}

#[tokio::test]
async fn a_child_before_its_parent_is_judged_the_same_in_any_number_of_rows() {
    let mut outcomes = Vec::new();
    for rows in [2, 99, 100, 101] {
        let db = with(
            "CREATE TABLE things (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES things, name TEXT NOT NULL);",
        )
        .await;
        // The first one is below the second one.
        let tree = (1..=rows).map(|n| thing(n, (n == 1).then_some(2)));
        let outcome = db.bulk_insert().run(tree).await;
        outcomes.push(
            outcome
                .map(|report| report.is_complete)
                .map_err(|failed| failed.kind()),
        );
    }
    assert!(
        outcomes.iter().all(|outcome| *outcome == outcomes[0]),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn an_atomic_operation_is_one_transaction_for_deferred_references_too() {
    let db = with(
        "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
            parent INTEGER REFERENCES things DEFERRABLE INITIALLY DEFERRED);",
    )
    .await;
    let tree = (1..=30).map(|n| thing(n, (n < 30).then_some(30)));
    let report = db.bulk_insert().atomic().chunk_rows(10).run(tree).await;
    assert_eq!(report.unwrap().written, 30);
}

#[tokio::test]
async fn a_temporary_key_is_refused_by_deletes_as_by_others() {
    let db = notes(Mode::Inline).await;
    let mut ctx = db.context();
    let unsaved = ctx.add(note("x"));
    let key = ctx[unsaved].id;
    let update = [Note {
        id: key,
        text: "y".into(),
    }];
    assert_eq!(
        refused(db.bulk_update().run(update).await),
        (ErrorKind::Value, 0..1)
    );
    assert_eq!(
        refused(db.bulk_delete::<Note>().run([key]).await),
        (ErrorKind::Value, 0..1)
    );
}

#[tokio::test]
async fn no_more_rows_are_skipped_than_the_source_has() {
    let db = notes(Mode::Inline).await;
    let report = db
        .bulk_insert()
        .skip_rows(1_000)
        .run(texts(10))
        .await
        .unwrap();
    assert_eq!((report.rows, report.written), (10, 0), "{report:?}");
}
