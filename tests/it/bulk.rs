//! Bulk operations: what is written, what is told of failures, and how they share the writer.

use std::{
    future::poll_fn,
    ops::ControlFlow,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use anabranch::{bulk::BulkReport, prelude::*};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, future::join, stream};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(columns(shelf, name), unique))]
struct Item {
    #[entity(id)]
    id: i64,
    shelf: i64,
    name: String,
    #[entity(check = "price >= 0")]
    price: i64,
    #[entity(generated = "price * 2")]
    double: i64,
    #[entity(created_at)]
    made: DateTime<Utc>,
    #[entity(version)]
    version: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

#[derive(Debug, Entity)]
struct Part {
    #[entity(id)]
    id: i64,
    #[entity(references = Item, index)]
    item_id: i64,
}

fn item(n: i64) -> Item {
    Item {
        id: 0,
        shelf: n % 10,
        name: format!("item {n}"),
        price: n,
        double: 0,
        made: DateTime::UNIX_EPOCH,
        version: 0,
        seq: CommitSeq(0),
    }
}

fn items(count: i64) -> impl Iterator<Item = Item> + Send {
    (0..count).map(item)
}

async fn database() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Item, Part)>().await.unwrap();
    db
}

async fn count(db: &Database) -> u64 {
    Item::query().count(db).await.unwrap()
}

#[tokio::test]
async fn rows_are_complete_as_those_of_a_save() {
    let db = database().await;
    let before = Utc::now();
    let report = db.bulk_insert_optimized(items(2_345)).await.unwrap();
    assert_eq!(
        (report.rows, report.written, report.passed_over),
        (2_345, 2_345, 0)
    );
    assert_eq!((report.transactions, report.is_complete), (3, true));
    let all = Item::query()
        .order_by(Item::ID.asc())
        .all(&db)
        .await
        .unwrap();
    assert_eq!(all.len(), 2_345);
    for (n, found) in (0..).zip(&all) {
        assert_eq!((found.id, found.price, found.double), (n + 1, n, n * 2));
        assert_eq!(found.name, format!("item {n}"));
        assert!(found.made >= before && found.version == 1 && found.seq > CommitSeq(0));
    }
    // Each transaction has its number.
    assert!(all[0].seq == all[999].seq && all[999].seq < all[1_000].seq);
    // Keys go on from there, for saves too.
    let mut ctx = db.context();
    let next = ctx.add(item(5_000));
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[next].id, 2_346);
}

#[tokio::test]
async fn keys_that_rows_bring_along_are_kept_and_not_given_again() {
    let db = database().await;
    let rows = (0..500).map(|n| Item {
        id: if n == 3 { 400 } else { 0 },
        ..item(n)
    });
    db.bulk_insert_optimized(rows).await.unwrap();
    assert_eq!(count(&db).await, 500);
    let brought = Item::find(&db, 400).await.unwrap().unwrap();
    assert_eq!(brought.price, 3);
}

#[tokio::test]
async fn a_row_that_is_refused_is_named_and_its_transaction_undone() {
    let db = database().await;
    let rows = || {
        items(3_000).map(|row| Item {
            // The same as the row before it.
            name: if row.price == 2_718 {
                "item 2708".into()
            } else {
                row.name.clone()
            },
            ..row
        })
    };
    let failed = db
        .bulk_insert()
        .chunk_rows(500)
        .run(rows())
        .await
        .unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row()),
        (ErrorKind::Unique, Some(2_718))
    );
    assert_eq!(failed.error().column(), Some("shelf, name"));
    let done = failed.report().clone();
    assert_eq!(
        (done.rows, done.written, done.transactions, done.is_complete),
        (2_500, 2_500, 5, false)
    );
    assert_eq!(count(&db).await, 2_500);
    let text = failed.to_string();
    assert!(text.contains("row 2718") && text.contains("2500"), "{text}");
    let error = Error::from(failed);
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Unique, Some("shelf, name"))
    );
    let text = error.to_string();
    assert!(text.contains("row 2718") && text.contains("2500"), "{text}");

    // What is not there yet is written by going on from there.
    let report = db
        .bulk_insert()
        .skip_rows(done.rows)
        .skip_conflicts()
        .run(rows())
        .await
        .unwrap();
    assert_eq!(
        (report.rows, report.written, report.passed_over),
        (3_000, 499, 1)
    );
    assert_eq!(count(&db).await, 2_999);
}

#[tokio::test]
async fn other_constraints_are_errors_even_where_conflicts_are_skipped() {
    let db = database().await;
    let rows = items(250).map(|row| Item {
        price: if row.price == 120 { -1 } else { row.price },
        ..row
    });
    let failed = db
        .bulk_insert()
        .skip_conflicts()
        .run(rows)
        .await
        .unwrap_err();
    assert_eq!((failed.kind(), failed.row()), (ErrorKind::Check, Some(120)));
    assert_eq!(count(&db).await, 0);
}

#[tokio::test]
async fn a_reference_to_nothing_is_refused() {
    let db = database().await;
    db.bulk_insert_optimized(items(10)).await.unwrap();
    let parts = (0..150).map(|n| Part {
        id: 0,
        item_id: if n == 140 { 99 } else { n % 10 + 1 },
    });
    let failed = db.bulk_insert_optimized(parts).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::ForeignKey);
    assert!(failed.rows().contains(&140), "{failed}");
    assert_eq!(Part::query().count(&db).await.unwrap(), 0);
}

#[tokio::test]
async fn a_trigger_that_passes_over_rows_is_an_error() {
    let db = database().await;
    db.write(async |tx| {
        sqlx::query(
            "CREATE TRIGGER no_sevens BEFORE INSERT ON item WHEN NEW.price = 7
             BEGIN SELECT RAISE(IGNORE); END",
        )
        .execute(&mut *tx)
        .await?;
        Ok(())
    })
    .await
    .unwrap();
    for rows in [20, 200] {
        let failed = db.bulk_insert_optimized(items(rows)).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Constraint);
        assert!(failed.rows().contains(&7), "{failed}");
        assert_eq!(count(&db).await, 0);
    }
}

#[tokio::test]
async fn a_trigger_that_ends_the_transaction_takes_no_neighbours_along() {
    let db = database().await;
    db.write(async |tx| {
        sqlx::query(
            "CREATE TRIGGER no_sevens BEFORE INSERT ON item WHEN NEW.price = 7
             BEGIN SELECT RAISE(ROLLBACK, 'no sevens'); END",
        )
        .execute(&mut *tx)
        .await?;
        Ok(())
    })
    .await
    .unwrap();
    let failed = db.bulk_insert_optimized(items(200)).await.unwrap_err();
    assert!(failed.error().to_string().contains("no sevens"), "{failed}");
    let mut ctx = db.context();
    ctx.add(item(8));
    ctx.save_changes().await.unwrap();
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_source_that_fails_is_told_after_what_came_before_is_written() {
    let db = database().await;
    let rows = items(2_000).map(|row| {
        if row.price == 1_500 {
            Err("the line is cut")
        } else {
            Ok(row)
        }
    });
    let failed = db.bulk_insert().run_try(rows).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row()),
        (ErrorKind::Application, Some(1_500))
    );
    assert!(failed.to_string().contains("the line is cut"));
    assert_eq!((failed.report().rows, count(&db).await), (1_500, 1_500));

    // An error of the library in it keeps its kind.
    let rows = [Err::<Item, _>(Error::new(ErrorKind::Busy, "later"))];
    let failed = db.bulk_insert().run_try(rows).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Busy);
}

#[tokio::test]
async fn updates_check_the_version_and_set_what_is_named() {
    let db = database().await;
    db.bulk_insert_optimized(items(300)).await.unwrap();
    let all = || async {
        Item::query()
            .order_by(Item::ID.asc())
            .all(&db)
            .await
            .unwrap()
    };
    let read = all().await;
    let dearer = |row: Item| Item {
        price: row.price + 1_000,
        name: "not set".into(),
        ..row
    };
    let report = db
        .bulk_update()
        .set(Item::PRICE)
        .run(read.clone().into_iter().map(dearer))
        .await
        .unwrap();
    assert_eq!(report.written, 300);
    let now = all().await;
    assert!(now.iter().all(|row| row.price >= 1_000 && row.version == 2));
    assert_eq!(now[5].name, "item 5");

    // They have another version by now.
    let failed = db.bulk_update().run(read.clone()).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row()),
        (ErrorKind::Conflict, Some(0))
    );
    assert_eq!(failed.error().conflicts()[0].entity, "Item");
    assert!(!failed.error().is_retryable());
    let mixed = now[..2].iter().chain(&read[2..4]).cloned();
    let report = db.bulk_update().skip_missing().run(mixed).await.unwrap();
    assert_eq!((report.written, report.passed_over), (2, 2));

    let refused = db
        .bulk_update()
        .set(Item::VERSION)
        .run(read)
        .await
        .unwrap_err();
    assert_eq!((refused.kind(), refused.row()), (ErrorKind::Model, None));
}

#[tokio::test]
async fn deletes_take_keys_and_pass_over_those_that_are_gone() {
    let db = database().await;
    db.bulk_insert_optimized(items(20)).await.unwrap();
    let report = db.bulk_delete::<Item>().run(11..=30).await.unwrap();
    assert_eq!((report.written, report.passed_over), (10, 10));
    assert_eq!(count(&db).await, 10);
}

#[tokio::test]
async fn upserts_insert_or_change_under_the_unique_key() {
    let db = database().await;
    db.bulk_insert_optimized(items(150)).await.unwrap();
    let rows = (100..350).map(|n| Item {
        price: n + 7,
        ..item(n)
    });
    let report = db
        .bulk_upsert(|upsert| upsert.on(Item::SHELF).on(Item::NAME).update(Item::PRICE))
        .run(rows)
        .await
        .unwrap();
    assert_eq!((report.written, report.passed_over), (250, 0));
    let all = Item::query()
        .order_by(Item::ID.asc())
        .all(&db)
        .await
        .unwrap();
    assert_eq!(all.len(), 350);
    assert_eq!((all[99].price, all[99].version), (99, 1));
    assert_eq!((all[100].price, all[100].version), (107, 2));
    assert_eq!((all[349].price, all[349].version), (356, 1));
    // Nothing differs: nothing is written.
    let rows = (100..350).map(|n| Item {
        price: n + 7,
        ..item(n)
    });
    let report = db
        .bulk_upsert(|upsert| upsert.on(Item::SHELF).on(Item::NAME).update(Item::PRICE))
        .run(rows)
        .await
        .unwrap();
    assert_eq!((report.written, report.passed_over), (0, 250));
}

#[tokio::test]
async fn saves_pass_between_chunks() {
    let db = database().await;
    let (rows, waiting) = mpsc::channel(10);
    let waiting = stream::unfold(waiting, async |mut waiting| {
        Some((waiting.recv().await?, waiting))
    });
    let (written, mut progress) = mpsc::unbounded_channel();
    let bulk = db
        .bulk_insert()
        .chunk_rows(10)
        .on_progress(|progress| {
            written.send(progress.rows).unwrap();
            ControlFlow::Continue(())
        })
        .run_stream(waiting);
    let saved = async {
        for n in 0..35 {
            rows.send(item(n)).await.unwrap();
        }
        // Chunks were written, and the operation waits for more.
        while progress.recv().await.unwrap() < 30 {}
        let mut ctx = db.context();
        ctx.add(item(100));
        ctx.save_changes().await.unwrap();
        drop(rows);
    };
    let (report, ()) = join(bulk, saved).await;
    let report = report.unwrap();
    assert_eq!((report.written, report.transactions), (35, 4));
    assert_eq!(count(&db).await, 36);
}

#[tokio::test]
async fn an_exclusive_operation_keeps_the_writer() {
    let db = database().await;
    let (go_on, gate) = oneshot::channel::<()>();
    let rows = stream::iter(items(30)).chain(stream::once(async move {
        gate.await.unwrap();
        item(30)
    }));
    let bulk = tokio::spawn(
        db.bulk_insert()
            .exclusive()
            .chunk_rows(10)
            .run_stream(rows.boxed()),
    );
    // It holds the slot once its label shows.
    while db
        .writer_holder()
        .is_none_or(|holder| !holder.label.contains("bulk"))
    {
        tokio::task::yield_now().await;
    }
    let mut ctx = db.context();
    ctx.add(item(100));
    let mut save = pin!(ctx.save_changes());
    let first = poll_fn(|context| Poll::Ready(save.as_mut().poll(context).is_pending())).await;
    assert!(first, "the writer is kept");
    go_on.send(()).unwrap();
    assert_eq!(bulk.await.unwrap().unwrap().written, 31);
    save.await.unwrap();
    assert_eq!(count(&db).await, 32);
}

#[tokio::test]
async fn it_stops_at_the_end_of_a_transaction_when_it_is_told_to() {
    let db = database().await;
    let mut told = Vec::new();
    let report: BulkReport = db
        .bulk_insert()
        .chunk_rows(100)
        .on_progress(|progress| {
            told.push((progress.rows, progress.written, progress.total));
            if progress.rows >= 300 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .run(items(10_000))
        .await
        .unwrap();
    assert!(
        !report.is_complete && report.rows >= 300 && report.rows <= 600,
        "{report:?}"
    );
    assert_eq!(report.rows % 100, 0);
    assert_eq!(count(&db).await, report.written);
    assert_eq!(
        told[..3],
        [
            (100, 100, Some(10_000)),
            (200, 200, Some(10_000)),
            (300, 300, Some(10_000))
        ]
    );
}

#[tokio::test]
async fn no_more_than_three_chunks_are_in_memory() {
    let db = database().await;
    let made = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&made);
    let rows = items(20_000).inspect(move |_| {
        counts.fetch_add(1, Ordering::Relaxed);
    });
    let mut most = 0;
    db.bulk_insert()
        .chunk_rows(100)
        .on_progress(|progress| {
            most = most.max(made.load(Ordering::Relaxed) - progress.rows);
            ControlFlow::Continue(())
        })
        .run(rows)
        .await
        .unwrap();
    // One that is made, one that waits, one that is written; and the next one's answer may lie ready already.
    assert!(most <= 400, "{most} rows were made and not written");
}

#[tokio::test]
async fn dropped_it_stops_and_what_is_committed_stays() {
    let db = database().await;
    let (seen, mut progress) = mpsc::unbounded_channel();
    {
        let mut bulk = pin!(
            db.bulk_insert()
                .chunk_rows(10)
                .on_progress(move |progress| {
                    seen.send(progress.rows).unwrap();
                    ControlFlow::Continue(())
                })
                .run_stream(stream::iter(items(100)).chain(stream::pending()))
        );
        poll_fn(|context| {
            assert!(bulk.as_mut().poll(context).is_pending());
            progress.poll_recv(context).map(|_| ())
        })
        .await;
    }
    // The slot is free at once or after the chunk at hand.
    let mut ctx = db.context();
    ctx.add(item(1_000));
    ctx.save_changes().await.unwrap();
    let rows = count(&db).await - 1;
    assert!((10..=100).contains(&rows) && rows % 10 == 0, "{rows} rows");
    db.close().await.unwrap();
}

#[tokio::test]
async fn inside_of_a_transaction_of_the_same_task_it_is_refused() {
    let db = database().await;
    let refused = db
        .write(async |_tx| Ok(db.bulk_insert_optimized(items(3)).await?))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Nested);
}

#[tokio::test]
async fn a_temporary_key_is_refused() {
    let db = database().await;
    let mut ctx = db.context();
    let unsaved = ctx.add(item(1));
    let parts = [Part {
        id: 0,
        item_id: ctx[unsaved].id,
    }];
    let failed = db.bulk_insert_optimized(parts).await.unwrap_err();
    assert_eq!((failed.kind(), failed.row()), (ErrorKind::Value, Some(0)));
    assert_eq!(failed.error().column(), Some("item_id"));
}

#[tokio::test]
async fn contexts_keep_their_pending_work() {
    let db = database().await;
    let mut ctx = db.context();
    let pending = ctx.add(item(1));
    db.bulk_insert_optimized((10..20).map(item)).await.unwrap();
    assert_eq!(ctx.entry(pending).state(), EntityState::Added);
    ctx.save_changes().await.unwrap();
    assert_eq!(count(&db).await, 11);
}

#[tokio::test]
async fn a_session_that_read_the_table_is_in_conflict() {
    let db = database().await;
    db.bulk_insert_optimized(items(5)).await.unwrap();
    let mut attempts = 0;
    let counted = db
        .concurrent(async |s| {
            let rows = Item::query().count(&mut *s).await?;
            if s.attempt() == 1 {
                let db = db.clone();
                let bulk = async move { db.bulk_insert_optimized((10..12).map(item)).await };
                tokio::spawn(bulk).await.unwrap()?;
            }
            let mut ctx = s.context();
            ctx.add(item(100 + i64::try_from(rows).unwrap()));
            ctx.save_changes().await?;
            Ok((s.attempt(), rows))
        })
        .await
        .unwrap();
    attempts += counted.0;
    assert_eq!((attempts, counted.1), (2, 7));
}

#[tokio::test]
async fn nothing_to_do_is_done() {
    let db = database().await;
    let report = db.bulk_insert_optimized(items(0)).await.unwrap();
    assert_eq!(
        (report.rows, report.transactions, report.is_complete),
        (0, 0, true)
    );
}

#[tokio::test]
async fn large_values_end_a_chunk_early() {
    let db = database().await;
    let rows = (0..20).map(|n| Item {
        name: "x".repeat(1 << 20) + &n.to_string(),
        ..item(n)
    });
    let report = db.bulk_insert_optimized(rows).await.unwrap();
    assert_eq!((report.written, report.transactions), (20, 3));
}

#[tokio::test]
async fn an_atomic_operation_is_one_transaction_with_one_number() {
    let db = database().await;
    let report = db.bulk_insert().atomic().run(items(2_500)).await.unwrap();
    assert_eq!(
        (report.rows, report.written, report.transactions),
        (2_500, 2_500, 1)
    );
    assert!(report.is_complete);
    let numbers = Item::query()
        .select(Item::SEQ)
        .distinct()
        .all(&db)
        .await
        .unwrap();
    assert_eq!(numbers.len(), 1);
    assert_eq!(
        db.bulk_insert()
            .atomic()
            .run(items(0))
            .await
            .unwrap()
            .transactions,
        0
    );
}

#[tokio::test]
async fn an_atomic_operation_leaves_nothing_when_it_ends_early() {
    let db = database().await;
    // A row that is refused, far behind.
    let rows = items(2_500).map(|row| Item {
        price: if row.price == 2_300 { -1 } else { row.price },
        ..row
    });
    let failed = db.bulk_insert().atomic().run(rows).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row(), failed.report().rows),
        (ErrorKind::Check, Some(2_300), 0)
    );
    // A source that fails.
    let rows = items(2_500).map(|row| {
        if row.price == 2_300 {
            Err("cut")
        } else {
            Ok(row)
        }
    });
    let failed = db.bulk_insert().atomic().run_try(rows).await.unwrap_err();
    assert_eq!((failed.row(), failed.report().written), (Some(2_300), 0));
    // Told to stop.
    let stop = |_| ControlFlow::Break(());
    let report = db
        .bulk_insert()
        .atomic()
        .on_progress(stop)
        .run(items(5_000))
        .await
        .unwrap();
    assert_eq!(
        (report.rows, report.written, report.is_complete),
        (0, 0, false)
    );
    // Dropped.
    {
        let (seen, mut progress) = mpsc::unbounded_channel();
        let rows = stream::iter(items(3_000)).chain(stream::pending());
        let told = move |_| {
            seen.send(()).unwrap();
            ControlFlow::Continue(())
        };
        let mut bulk = pin!(db.bulk_insert().atomic().on_progress(told).run_stream(rows));
        poll_fn(|context| {
            assert!(bulk.as_mut().poll(context).is_pending());
            progress.poll_recv(context).map(|_| ())
        })
        .await;
    }
    assert_eq!(count(&db).await, 0);
    // The writer is free, and no transaction is open.
    let mut ctx = db.context();
    ctx.add(item(1));
    ctx.save_changes().await.unwrap();
    assert_eq!(count(&db).await, 1);
    db.close().await.unwrap();
}

#[tokio::test]
async fn an_atomic_operation_is_seen_by_sessions_as_a_whole() {
    let db = database().await;
    let rows = db
        .concurrent(async |s| {
            let rows = Item::query().count(&mut *s).await?;
            if s.attempt() == 1 {
                let db = db.clone();
                let bulk = async move { db.bulk_insert().atomic().run(items(1_500)).await };
                tokio::spawn(bulk).await.unwrap()?;
            }
            let mut ctx = s.context();
            ctx.add(item(5_000));
            ctx.save_changes().await?;
            Ok(rows)
        })
        .await
        .unwrap();
    assert_eq!(rows, 1_500);
}

/// Of an iterator nothing ever waits: whoever shares the task's thread got no turn before the first row was written.
#[tokio::test]
async fn others_get_their_turn_while_rows_are_skipped() {
    let db = database().await;
    let turns = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut most = 0;
    let mut last = 0;
    let rows = (0..50_000).map(|n| {
        let now = turns.load(Ordering::Relaxed);
        if now == last {
            most += 1;
        } else {
            (last, most) = (now, 0);
        }
        assert!(most < 10_000, "nobody else had a turn");
        item(n)
    });
    let report = db.bulk_insert().skip_rows(50_000).run(rows).await.unwrap();
    assert_eq!((report.rows, report.written), (50_000, 0));
    other.abort();
}

#[tokio::test]
async fn the_log_does_not_grow_with_an_exclusive_import() {
    let db = database().await;
    let mut most = 0;
    let rows = items(60_000).map(|row| Item {
        name: format!("{} {}", row.name, "x".repeat(200)),
        ..row
    });
    db.bulk_insert()
        .exclusive()
        .on_progress(|_| {
            most = most.max(db.wal_frames());
            ControlFlow::Continue(())
        })
        .run(rows)
        .await
        .unwrap();
    // All of it are some 5,000 pages, and each page of the index is written many times.
    assert!(most < 4_000, "{most} frames");
}
