//! Locks and transaction modes: section A of docs/cases.md.

use std::time::{Duration, Instant};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, again, assert_passed, execute,
    note::{Note, note},
    outsider, scene, try_execute, until,
};
use futures_util::{StreamExt, future::join_all};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Hits {
    #[entity(id)]
    page: String,
    count: i64,
}

async fn save_note(db: &Database, text: String) -> Result<Saved, Error> {
    let mut ctx = db.context();
    ctx.add(note(text));
    ctx.save_changes().await
}

/// Case 1: tasks that insert through one pool; some were told "database is locked" in spite of WAL and a timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_insert_side_by_side_are_never_told_busy() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let tasks: Vec<_> = (0..50)
            .map(|task| {
                let db = db.clone();
                tokio::spawn(async move {
                    for round in 0..10 {
                        save_note(&db, format!("{task}/{round}")).await.unwrap();
                        try_execute(&db, "INSERT INTO note (text) VALUES ('raw')")
                            .await
                            .unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(Note::query().count(&db).await.unwrap(), 1000);
        assert_eq!(db.statistics().busy, 0, "{mode:?}");
    }
}

/// Cases 2 and 4: a transaction that read first failed at once with 517 when it wrote, since another one had
/// committed in between; a log-in did so under a handful of upserts a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_reads_first_can_always_write() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Hits>().await.unwrap();
    execute(&db, "INSERT INTO hits (page, count) VALUES ('/', 0)").await;
    let path = db.path().to_owned();
    let other_program = std::thread::spawn(move || {
        let connection = outsider(&path);
        for _ in 0..100 {
            connection
                .execute(
                    "INSERT INTO hits VALUES ('/', 1) ON CONFLICT DO UPDATE SET count = count + 1",
                    [],
                )
                .unwrap();
        }
    });
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    db.write(async |tx| {
                        let mut ctx = tx.context();
                        let row = ctx.find::<Hits>("/".to_owned()).await?.unwrap();
                        ctx[row].count += 1;
                        ctx.save_changes().await.map(drop)
                    })
                    .await
                    .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    other_program.join().unwrap();
    let row = Hits::find(&db, "/").await.unwrap().unwrap();
    assert_eq!(row.count, 300);
}

/// Case 5: a timeout seemed to be ignored, and nobody could tell which waits it covers.
#[tokio::test]
async fn an_error_says_which_timeout_ran_out_and_after_how_long() {
    for mode in Mode::ALL {
        let wait = Duration::from_millis(200);
        let db = mode
            .set(Database::builder("").busy_timeout(wait).queue_timeout(wait))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<Note>().await.unwrap();

        let other = outsider(db.path());
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let errors = [
            save_note(&db, "a save".to_owned()).await.unwrap_err(),
            db.begin().await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Busy, "{mode:?}");
            assert!(error.to_string().contains("busy_timeout"), "{error}");
            assert!(error.waited().unwrap() >= wait, "{error}");
            assert!(error.is_retryable());
        }
        other.execute_batch("ROLLBACK").unwrap();

        let guard = db.begin().await.unwrap();
        let error = save_note(&db, "a save".to_owned()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QueueTimeout, "{mode:?}");
        assert!(error.to_string().contains("queue_timeout"), "{error}");
        assert!(error.waited().unwrap() >= wait, "{error}");
        guard.rollback().await.unwrap();
        save_note(&db, "a save".to_owned()).await.unwrap();
    }
}

/// Case 6: two processes that open a new file at once died while switching it to WAL, and of their writes a
/// quarter failed within a millisecond.
#[tokio::test]
async fn processes_that_open_a_new_file_at_once_all_write_it() {
    const PROCESSES: usize = 3;
    const ROUNDS: usize = 4;
    if let Some(path) = scene() {
        let db = Database::open(path).await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        for round in 0..20 {
            save_note(&db, format!("typed {round}")).await.unwrap();
            execute(&db, "INSERT INTO note (text) VALUES ('raw')").await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let path = folder.path().join(format!("{round}.db"));
        let children: Vec<_> = (0..PROCESSES)
            .map(|_| {
                let test = "locks::processes_that_open_a_new_file_at_once_all_write_it";
                again(test, path.to_str().unwrap())
                    .stdout(std::process::Stdio::piped())
                    .stderr(std::process::Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            assert_passed(&child.wait_with_output().unwrap());
        }
        let db = Database::open(path).await.unwrap();
        let rows = Note::query().count(&db).await.unwrap();
        assert_eq!(rows, (PROCESSES * 40) as u64);
    }
}

/// Cases 7 and 8: every new connection of a pool set WAL mode once more, before it had a timeout; some were told
/// "locked", some an I/O error, and the start panicked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_opened_at_once_on_a_file_in_rollback_mode_all_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollback.db");
    outsider(&path)
        .execute_batch("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
        .unwrap();
    let opened = join_all((0..20).map(|_| {
        let path = path.clone();
        tokio::spawn(Database::builder(path).readers(20).open())
    }))
    .await;
    for db in opened {
        let db = db.unwrap().unwrap();
        save_note(&db, "opened".to_owned()).await.unwrap();
        let db = &db;
        let counts = join_all((0..20).map(|_| Note::query().count(db))).await;
        assert!(counts.into_iter().all(|count| count.unwrap() > 0));
    }
    let mode: String = outsider(&path)
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

/// Case 8: while somebody reads a file in rollback mode it cannot be switched. That is waited for, and told.
#[tokio::test]
async fn a_file_that_is_read_in_rollback_mode_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollback.db");
    let other = outsider(&path);
    other
        .execute_batch("CREATE TABLE t (a); BEGIN; SELECT * FROM t")
        .unwrap();
    let wait = Duration::from_millis(60);
    let open = || Database::builder(&path).busy_timeout(wait).open();
    let error = open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.waited().unwrap() >= wait, "{error}");
    other.execute_batch("COMMIT").unwrap();
    open().await.unwrap();
}

/// Case 9: the outer handle, used inside of a transaction, waited for itself.
#[tokio::test]
async fn a_write_inside_of_a_write_is_refused_at_once() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let outer = db.clone();
        let began = Instant::now();
        db.write(async move |tx| {
            let nested = [
                try_execute(&outer, "DELETE FROM note").await.unwrap_err(),
                save_note(&outer, "nested".to_owned()).await.unwrap_err(),
                outer.begin().await.map(drop).unwrap_err(),
                outer.checkpoint().await.unwrap_err(),
                outer.vacuum().await.unwrap_err(),
                outer.close().await.unwrap_err(),
                outer.create_tables::<Note>().await.unwrap_err(),
            ];
            for error in nested {
                assert_eq!(error.kind(), ErrorKind::Nested, "{error}");
                assert!(error.to_string().contains("at hand"), "{error}");
            }
            // The transaction at hand is none the worse.
            let mut ctx = tx.context();
            ctx.add(note("its own"));
            ctx.save_changes().await.map(drop)
        })
        .await
        .unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(Note::query().count(&db).await.unwrap(), 1);
    }
}

/// Case 9, the other side: what does not wait for itself is not refused.
#[tokio::test]
async fn what_does_not_wait_for_itself_is_let_through() {
    let db = Database::temporary().await.unwrap();
    let other = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    other.create_tables::<Note>().await.unwrap();
    execute(&db, "INSERT INTO note (text) VALUES ('before')").await;
    let handle = db.clone();
    let spawned = db
        .write(async |tx| {
            sqlx::query("INSERT INTO note (text) VALUES ('inside')")
                .execute(&mut *tx)
                .await?;
            // Reads, which see what is committed.
            assert_eq!(Note::query().count(&handle).await?, 1);
            let mut ctx = handle.context();
            assert_eq!(Note::query().load(&mut ctx).await?.len(), 1);
            assert_eq!(Note::query().stream(&handle).count().await, 1);
            // Another database.
            save_note(&other, "elsewhere".to_owned()).await?;
            try_execute(&other, "INSERT INTO note (text) VALUES ('elsewhere')").await?;
            // A task of its own waits its turn.
            let handle = handle.clone();
            Ok(tokio::spawn(async move {
                save_note(&handle, "spawned".to_owned()).await
            }))
        })
        .await
        .unwrap();
    spawned.await.unwrap().unwrap();
    assert_eq!(Note::query().count(&db).await.unwrap(), 3);
    assert_eq!(Note::query().count(&other).await.unwrap(), 2);
}

/// Case 9: two branches of one task take turns with a guard; only a task that is inside of `write` is refused.
#[tokio::test]
async fn branches_of_one_task_take_turns() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let write = async |text: &'static str| {
        let mut tx = db.begin().await?;
        sqlx::query("INSERT INTO note (text) VALUES (?)")
            .bind(text)
            .execute(&mut *tx)
            .await?;
        tokio::task::yield_now().await;
        tx.commit().await
    };
    let done = join_all(["a", "b", "c"].map(write)).await;
    assert!(done.into_iter().all(|one| one.is_ok()));
    assert_eq!(Note::query().count(&db).await.unwrap(), 3);
}

/// Case 10: under a hundred creates at once some failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_creates_at_once_pass_a_queue_of_ten() {
    for mode in Mode::ALL {
        let db = mode
            .set(Database::builder("").write_queue_capacity(10))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<Note>().await.unwrap();
        let tasks = (0..500).map(|task| {
            let db = db.clone();
            tokio::spawn(async move { save_note(&db, format!("{task}")).await })
        });
        for task in join_all(tasks).await {
            task.unwrap().unwrap();
        }
        assert_eq!(Note::query().count(&db).await.unwrap(), 500);
        let statistics = db.statistics();
        assert_eq!((statistics.saves, statistics.refused), (500, 0));
        assert!(statistics.largest_group <= 10, "{statistics:?}");
    }
}

/// Case 10: what waits to enter a full queue waits no longer than what is in it.
#[tokio::test]
async fn a_wait_for_room_in_the_queue_ends_with_queue_timeout() {
    let wait = Duration::from_millis(200);
    let db = Database::builder("")
        .write_queue_capacity(1)
        .queue_timeout(wait)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    let guard = db.begin().await.unwrap();
    let began = Instant::now();
    let saves = join_all((0..10).map(|save| save_note(&db, format!("{save}")))).await;
    for save in saves {
        let error = save.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QueueTimeout);
        assert!(error.to_string().contains("db.begin at "), "{error}");
    }
    assert!(began.elapsed() < wait * 5, "they waited one after another");
    guard.rollback().await.unwrap();
    save_note(&db, "there is room".to_owned()).await.unwrap();
}

/// Case 12: once everything began immediately, readers and VACUUM failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vacuum_and_checkpoints_run_beside_readers_and_writers() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    save_note(&db, "first".to_owned()).await.unwrap();
    let work = |kind: usize| {
        let db = db.clone();
        tokio::spawn(async move {
            for round in 0..10 {
                match kind {
                    0 => drop(save_note(&db, format!("{round}")).await.unwrap()),
                    1 => assert!(Note::query().count(&db).await.unwrap() > 0),
                    2 => drop(db.checkpoint().await.unwrap()),
                    _ => drop(db.vacuum().await.unwrap()),
                }
            }
        })
    };
    for task in join_all((0..4).map(work)).await {
        task.unwrap();
    }
    assert_eq!(Note::query().count(&db).await.unwrap(), 11);
}

/// Case 12: VACUUM does not run in a transaction. Raw SQL that tries is told so, and the transaction goes on.
#[tokio::test]
async fn vacuum_in_raw_sql_fails_and_the_transaction_goes_on() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    db.write(async |tx| {
        let refused = sqlx::query("VACUUM").execute(&mut *tx).await.unwrap_err();
        let kind = Error::from(refused).kind();
        assert!(
            matches!(kind, ErrorKind::Statement | ErrorKind::Refused),
            "{kind:?}"
        );
        sqlx::query("INSERT INTO note (text) VALUES ('after')")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(Note::query().count(&db).await.unwrap(), 1);
}

/// Case 44: a checkpoint that could not even begin, since another program runs one, looked like a complete one.
#[tokio::test]
async fn a_checkpoint_that_did_not_run_is_not_complete() {
    let wait = Duration::from_millis(40);
    let db = Database::builder("")
        .busy_timeout(wait)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    // A checkpoint of another program waits for a reader, and holds the checkpoint's lock meanwhile.
    let reader = outsider(db.path());
    reader.execute_batch("BEGIN; SELECT * FROM note").unwrap();
    save_note(&db, "newer than the reader".to_owned())
        .await
        .unwrap();
    let path = db.path().to_owned();
    let other_program = std::thread::spawn(move || {
        let connection = outsider(&path);
        // Until it is not ours that is in the way.
        loop {
            let counts = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            });
            let (busy, frames): (i64, i64) = counts.unwrap();
            if frames >= 0 {
                return busy;
            }
        }
    });
    until(
        "the other checkpoint is in the way",
        async || matches!(db.checkpoint().await, Err(error) if error.kind() == ErrorKind::Busy),
    )
    .await;
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(other_program.join().unwrap(), 0);
    assert!(db.checkpoint().await.unwrap().is_complete());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_locked_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let locked = folder.path().join("locked.db");
    let other = rusqlite::Connection::open(&locked).unwrap();
    other
        .execute_batch("CREATE TABLE t (x); BEGIN EXCLUSIVE")
        .unwrap();
    let timeout = Duration::from_secs(4);
    let waits = tokio::spawn(Database::builder(locked).busy_timeout(timeout).open());
    let began = Instant::now();
    for number in 0..20 {
        let free = folder.path().join(format!("{number}.db"));
        Database::open(free).await.unwrap();
    }
    assert!(began.elapsed() < timeout);
    other.execute_batch("COMMIT").unwrap();
    waits.await.unwrap().unwrap();
}
