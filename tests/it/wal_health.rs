//! The state of the log, who is in its way, and what is done about it.

use std::{
    io::{BufRead, BufReader, Write},
    pin::Pin,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anabranch::{
    engine::{OldReaders, WalPolicy},
    observe::{WalOutcome, WalStatus},
    prelude::*,
    query::raw,
};
use anabranch_tests::{
    Mode,
    note::{Note, note},
    until,
};
use futures_util::{FutureExt, StreamExt};
use tokio::{sync::oneshot, task::JoinSet};

const PAGES: u32 = 50;
/// A page and the header of its frame.
const FRAME: u64 = 4096 + 24;

async fn opened(mode: Mode, policy: WalPolicy) -> Database {
    let builder = Database::builder("")
        .wal_autocheckpoint(PAGES)
        .journal_size_limit(Bytes::ZERO)
        .wal_policy(policy);
    let db = mode.set(builder).open_temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    db
}

/// A save of about a page.
async fn save(db: &Database) {
    let mut ctx = db.context();
    ctx.add(note("x".repeat(4000)));
    ctx.save_changes().await.unwrap();
}

async fn status(db: &Database) -> WalStatus {
    db.wal_status().await.unwrap()
}

/// Saves until the log is in this state.
async fn save_until(db: &Database, what: &str, is_so: impl Fn(&WalStatus) -> bool) -> WalStatus {
    let mut last = status(db).await;
    until(what, async || {
        save(db).await;
        last = status(db).await;
        is_so(&last)
    })
    .await;
    last
}

/// A snapshot that is open until it is told to end.
struct Leaked {
    end: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Leaked {
    async fn new(db: &Database, label: &'static str) -> Self {
        let (end, ended) = oneshot::channel();
        let (begun, has_begun) = oneshot::channel();
        let db = db.clone();
        let task = tokio::spawn(async move {
            db.read_labelled(label, async |_| {
                begun.send(()).unwrap();
                ended.await.unwrap();
                Ok(())
            })
            .await
            .unwrap();
        });
        has_begun.await.unwrap();
        Self { end, task }
    }

    async fn end(self) {
        self.end.send(()).unwrap();
        self.task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaked_reader_pins_the_log_and_is_named() {
    for mode in Mode::ALL {
        let db = opened(mode, WalPolicy::new()).await;
        save(&db).await;
        let began = Instant::now();
        let leaked = Leaked::new(&db, "report").await;
        let pinned = save_until(&db, "passes are stopped", |status| {
            status.incomplete_passes > 1 && status.frames > 4 * PAGES
        })
        .await;
        assert_eq!(pinned.outcome, WalOutcome::PartlyMoved);
        assert!(pinned.is_blocked() && pinned.unmoved() > PAGES);
        assert_eq!(pinned.used, u64::from(pinned.frames) * FRAME);
        assert!(pinned.bytes >= pinned.used);
        let reader = pinned.oldest_reader.unwrap();
        assert!(reader.label.starts_with("report at "), "{}", reader.label);
        assert!(reader.label.contains("wal_health.rs"), "{}", reader.label);
        assert!(reader.age <= began.elapsed());
        assert!(!pinned.is_held_by_foreign_reader);
        // Nobody writes any more: the monitor moves what it can.
        leaked.end().await;
        until("the log is moved", async || {
            status(&db).await.outcome == WalOutcome::Complete
        })
        .await;
        let free = status(&db).await;
        assert_eq!((free.oldest_reader, free.incomplete_passes), (None, 0));
        assert_eq!(free.moved, free.frames);
        let counted = db.statistics();
        assert!(counted.passes_complete > 0 && counted.passes_incomplete > 1);
    }
}

/// It was told as the reader of another process until the next pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_ours_that_has_just_ended_is_not_told_as_foreign() {
    for _ in 0..3 {
        let db = opened(Mode::ALL[0], WalPolicy::new()).await;
        save(&db).await;
        let leaked = Leaked::new(&db, "report").await;
        let began = Instant::now();
        save_until(&db, "passes are stopped", |status| {
            status.incomplete_passes > 1 && began.elapsed() > Duration::from_millis(1500)
        })
        .await;
        leaked.end().await;
        until("the log is moved", async || {
            let status = status(&db).await;
            assert!(!status.is_held_by_foreign_reader, "{status:?}");
            status.outcome == WalOutcome::Complete
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_exclusive_import_finds_of_the_log_is_told() {
    let db = opened(Mode::ALL[0], WalPolicy::new()).await;
    save(&db).await;
    let leaked = Leaked::new(&db, "report").await;
    let notes = (0..500).map(|_| note("x".repeat(4000)));
    let import = db.bulk_insert().chunk_rows(50).exclusive();
    import.run(notes).await.unwrap();
    let told = status(&db).await;
    assert!(told.is_blocked() && told.incomplete_passes > 0, "{told:?}");
    leaked.end().await;
}

#[tokio::test]
async fn sessions_streams_and_transactions_are_named_as_readers() {
    let db = opened(Mode::ALL[0], WalPolicy::new()).await;
    for _ in 0..1000 {
        save(&db).await;
    }
    let label = async || status(&db).await.oldest_reader.unwrap().label;
    let options = ConcurrentOptions::new().label("import");
    db.concurrent_with(options, async |_| {
        assert!(label().await.starts_with("import at "));
        Ok(())
    })
    .await
    .unwrap();
    let line = line!() + 1;
    let mut rows = Note::query().stream(&db);
    rows.next().await.unwrap().unwrap();
    let here = format!("a stream at {}:{line}:", file!());
    assert!(label().await.starts_with(&here), "{}", label().await);
    drop(rows);
    until("the stream ends", async || {
        status(&db).await.oldest_reader.is_none()
    })
    .await;
    let tx = db.begin().await.unwrap();
    assert!(label().await.starts_with("db.begin at "));
    tx.rollback().await.unwrap();
}

/// Rows without end, of which none is asked for.
fn endless() -> Query<Note> {
    let sql = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT note.* FROM note, n";
    Note::from_sql(sql, ()).filter(Note::TEXT.eq("none"))
}

#[tokio::test]
async fn slow_queries_are_named_by_their_places_in_the_source() {
    let db = opened(Mode::ALL[0], WalPolicy::new()).await;
    save(&db).await;
    let raw = || {
        raw::<i64>(
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
            (),
        )
    };
    let mut ctx = db.context();
    let made_at = line!() - 1;
    let first = line!() + 2;
    let queries: Vec<Pin<Box<dyn Future<Output = bool> + '_>>> = vec![
        Box::pin(endless().all(&db).map(|ended| ended.is_ok())),
        Box::pin(endless().one(&db).map(|ended| ended.is_ok())),
        Box::pin(endless().count(&db).map(|ended| ended.is_ok())),
        Box::pin(endless().min(Note::ID, &db).map(|ended| ended.is_ok())),
        Box::pin(endless().exists(&db).map(|ended| ended.is_ok())),
        Box::pin(raw().one(&db).map(|ended| ended.is_ok())),
        Box::pin(endless().load(&mut ctx).map(|ended| ended.is_ok())),
    ];
    let last = queries.len() - 1;
    for (number, mut query) in queries.into_iter().enumerate() {
        let here = if number == last {
            format!("a query of the context at {}:{made_at}:", file!())
        } else {
            format!("a query at {}:{}:", file!(), first as usize + number)
        };
        let named = until(&here, async || {
            let reader = status(&db).await.oldest_reader;
            reader.is_some_and(|reader| reader.label.starts_with(&here))
        });
        tokio::select! {
            _ = &mut query => unreachable!("it has no end"),
            () = named => {}
        }
    }
}

#[tokio::test]
async fn the_state_of_the_log_is_read_without_side_effects() {
    let db = opened(Mode::ALL[0], WalPolicy::new()).await;
    for _ in 0..5 {
        save(&db).await;
    }
    let first = status(&db).await;
    assert!(first.frames > 5);
    assert_eq!((first.moved, first.outcome), (0, WalOutcome::NotYet));
    for _ in 0..10 {
        let again = status(&db).await;
        assert_eq!(
            (again.frames, again.moved, again.bytes),
            (first.frames, first.moved, first.bytes)
        );
    }
    assert_eq!(db.statistics().checkpoints, 0);
    let moved = db.checkpoint().await.unwrap();
    assert!(moved.is_complete());
    assert_eq!(status(&db).await.frames, 0);
}

/// Case 48: each is short, and there is always one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_starts_anew_between_readers_that_overlap() {
    let db = opened(Mode::ALL[0], WalPolicy::new()).await;
    save(&db).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for turn in 0..4 {
        let (db, stop) = (db.clone(), Arc::clone(&stop));
        readers.spawn(async move {
            let mut read = 0_u32;
            let mut length = Duration::from_millis(100 + 50 * turn);
            while !stop.load(Relaxed) {
                db.read(async |snapshot| {
                    Note::query().count(&mut *snapshot).await?;
                    tokio::time::sleep(length).await;
                    Ok(())
                })
                .await
                .unwrap();
                length = Duration::from_millis(300);
                read += 1;
            }
            read
        });
    }
    // The log starts anew although readers follow one another, and does so again.
    for _ in 0..2 {
        save_until(&db, "the log is long", |status| status.frames > 2 * PAGES).await;
        save_until(&db, "the log starts anew", |status| status.frames < PAGES).await;
    }
    stop.store(true, Relaxed);
    for read in readers.join_all().await {
        assert!(read > 0, "a reader starved");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_are_held_back_up_to_the_limit_until_the_reader_ends() {
    for mode in Mode::ALL {
        let limit = 2000;
        let policy = WalPolicy::new().limit(Bytes(limit * FRAME));
        let db = opened(mode, policy).await;
        save(&db).await;
        let leaked = Leaked::new(&db, "report").await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for _ in 0..8 {
            let (db, stop) = (db.clone(), Arc::clone(&stop));
            writers.spawn(async move {
                while !stop.load(Relaxed) {
                    save(&db).await;
                }
            });
        }
        until("writers are held back", async || {
            db.statistics().held_back > 1
        })
        .await;
        let began = Instant::now();
        let mut most = 0;
        while began.elapsed() < Duration::from_secs(2) {
            most = most.max(status(&db).await.frames);
            tokio::task::yield_now().await;
        }
        eprintln!("{mode:?}: the log had at most {most} frames, of {limit}");
        // What a group of the writers appends after the last step is not cut.
        assert!(u64::from(most) >= limit / 2, "{most}");
        assert!(u64::from(most) < limit + limit / 4, "{most}");
        leaked.end().await;
        let before = db.statistics().saves;
        until("they go on", async || db.statistics().saves > before + 500).await;
        assert!(u64::from(status(&db).await.frames) <= limit);
        stop.store(true, Relaxed);
        writers.join_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_closed_while_writers_are_held_back() {
    let policy = WalPolicy::new().limit(Bytes(100 * FRAME));
    let db = opened(Mode::ALL[0], policy).await;
    save(&db).await;
    let leaked = Leaked::new(&db, "report").await;
    let writers: JoinSet<_> = (0..4)
        .map(|_| {
            let db = db.clone();
            async move {
                loop {
                    let mut ctx = db.context();
                    ctx.add(note("x".repeat(4000)));
                    if let Err(error) = ctx.save_changes().await {
                        return error.kind();
                    }
                }
            }
        })
        .collect();
    until("writers are held back", async || {
        db.statistics().held_back > 0
    })
    .await;
    let closing = db.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    for kind in writers.join_all().await {
        assert_eq!(kind, ErrorKind::Closed);
    }
    leaked.end().await;
    closing.await.unwrap().ok();
}

/// A passive pass cannot tell it: all frames are moved while the reader still looks into the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_ended_is_in_nobodys_way_though_nobody_writes() {
    let db = opened(Mode::Inline, WalPolicy::new()).await;
    save(&db).await;
    let leaked = db
        .read(async |snapshot| {
            Note::query().count(&mut *snapshot).await?;
            db.checkpoint().await
        })
        .await
        .unwrap();
    assert!(leaked.is_held_by_reader && !leaked.is_complete());
    assert_eq!(leaked.moved, leaked.frames);
    until("it is gone", async || !status(&db).await.is_blocked()).await;
    assert_eq!(status(&db).await.outcome, WalOutcome::Complete);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exclusive_import_is_held_back_by_a_reader_as_well() {
    let limit = 1000;
    let policy = WalPolicy::new().limit(Bytes(limit * FRAME));
    let db = opened(Mode::Inline, policy).await;
    save(&db).await;
    let leaked = Leaked::new(&db, "report").await;
    let importing = {
        let db = db.clone();
        tokio::spawn(async move {
            let notes = (0..3_000).map(|_| note("x".repeat(4000)));
            db.bulk_insert().exclusive().chunk_rows(50).run(notes).await
        })
    };
    let mut most = 0;
    until("it is held back", async || {
        most = most.max(status(&db).await.frames);
        db.statistics().held_back > 2
    })
    .await;
    leaked.end().await;
    let report = importing.await.unwrap().unwrap();
    assert_eq!(report.written, 3_000);
    assert!(u64::from(most) < limit + limit / 4, "{most}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_that_did_not_come_about_leaves_the_limit_in_force() {
    let limit = 1000;
    let builder = Database::builder("")
        .wal_autocheckpoint(PAGES)
        .queue_timeout(Duration::from_millis(500))
        .wal_policy(WalPolicy::new().limit(Bytes(limit * FRAME)));
    let db = builder.open_temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let transaction = db.begin().await.unwrap();
    let closed = db.close().await.unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::QueueTimeout);
    transaction.rollback().await.unwrap();
    let leaked = Leaked::new(&db, "report").await;
    let mut ended = None;
    while ended.is_none() && u64::from(status(&db).await.frames) < 2 * limit {
        let mut ctx = db.context();
        ctx.add(note("x".repeat(4000)));
        ended = ctx.save_changes().await.err();
    }
    assert_eq!(ended.unwrap().kind(), ErrorKind::QueueTimeout);
    leaked.end().await;
    save(&db).await;
}

/// Asks a process of our own; its session is a reader like any other to this one.
struct Peer(Child);

impl Peer {
    fn holding(file: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_peer"))
            .args(["hold", file])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self(child)
    }

    fn end(mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"end\n").unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reader_of_another_process_is_told_as_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    let db = Database::builder(&file)
        .wal_autocheckpoint(PAGES)
        .wal_policy(WalPolicy::new().warn_at(Bytes::kib(1)))
        .open()
        .await
        .unwrap();
    db.create_tables::<(
        Note,
        anabranch_tests::load::Order,
        anabranch_tests::load::Line,
    )>()
    .await
    .unwrap();
    save(&db).await;
    let peer = Peer::holding(file.to_str().unwrap());
    let held = save_until(&db, "the reader is told", |status| {
        status.is_held_by_foreign_reader
    })
    .await;
    assert!(held.is_blocked());
    let problems = db.health().await.problems.join("\n");
    assert!(problems.contains("of another process"), "{problems}");
    peer.end();
    until("the log is free", async || {
        let status = status(&db).await;
        !status.is_held_by_foreign_reader && !status.is_blocked()
    })
    .await;
    assert!(db.health().await.is_healthy());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_the_log_is_cut_when_nobody_writes() {
    let policy = WalPolicy::new().truncate_when_idle(Bytes::kib(64), Duration::from_millis(500));
    let db = Database::builder("")
        .wal_policy(policy)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    for _ in 0..50 {
        save(&db).await;
    }
    assert!(status(&db).await.bytes > 50 * FRAME);
    until("the log is cut", async || db.statistics().truncations == 1).await;
    assert_eq!(status(&db).await.bytes, 0);
    save(&db).await;
    assert!(status(&db).await.frames > 0);
}

fn interrupting(age: Duration) -> WalPolicy {
    WalPolicy::new()
        .reader_age(age)
        .old_readers(OldReaders::Interrupt)
}

async fn log_is_free(db: &Database) {
    until("nobody holds the log", async || {
        save(db).await;
        status(db).await.oldest_reader.is_none()
    })
    .await;
    assert!(db.checkpoint().await.unwrap().is_complete());
    assert_eq!(status(db).await.frames, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_is_too_old_is_ended_while_it_lies_idle() {
    for mode in Mode::ALL {
        let db = opened(mode, interrupting(Duration::from_millis(300))).await;
        save(&db).await;
        let told = db
            .read(async |snapshot| {
                assert_eq!(Note::query().count(&mut *snapshot).await?, 1);
                until("it is ended", async || {
                    db.statistics().interrupted_readers == 1
                })
                .await;
                log_is_free(&db).await;
                let told = Note::query().count(&mut *snapshot).await.unwrap_err();
                assert_eq!(told.kind(), ErrorKind::ReaderTooOld);
                Note::query().all(&mut *snapshot).await.map(drop)
            })
            .await
            .unwrap_err();
        assert_eq!(told.kind(), ErrorKind::ReaderTooOld);
        assert!(told.to_string().contains("wal_policy.reader_age"), "{told}");
        assert_eq!(db.statistics().old_readers, 1);
        // The connection serves the next one.
        let count = db.read(async |s| Note::query().count(&mut *s).await).await;
        assert!(count.unwrap() > 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_too_old_is_ended_though_nobody_takes_its_rows() {
    let db = opened(Mode::ALL[0], interrupting(Duration::from_millis(300))).await;
    for _ in 0..1000 {
        save(&db).await;
    }
    let mut rows = Note::query().stream(&db);
    rows.next().await.unwrap().unwrap();
    until("it is ended", async || {
        db.statistics().interrupted_readers == 1
    })
    .await;
    log_is_free(&db).await;
    let rest: Vec<_> = rows.collect().await;
    let told = rest.last().unwrap().as_ref().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ReaderTooOld);

    let told = db
        .read(async |snapshot| {
            let mut rows = Note::query().stream(&mut *snapshot);
            rows.next().await.unwrap()?;
            until("it is ended", async || {
                db.statistics().interrupted_readers == 2
            })
            .await;
            assert!(rows.any(async |row| row.is_err()).await);
            assert!(db.checkpoint().await?.is_complete());
            Note::query().count(&mut *snapshot).await
        })
        .await
        .unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ReaderTooOld);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_runs_for_too_long_is_stopped() {
    for mode in Mode::ALL {
        let db = opened(mode, interrupting(Duration::from_millis(300))).await;
        let endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
        let read = anabranch_tests::ask(endless);
        let told = anabranch::sql::Executor::read(&db, read).await.unwrap_err();
        assert_eq!(told.kind(), ErrorKind::ReaderTooOld, "{told:?}");
        let told = db
            .read(async |snapshot| {
                anabranch::sql::Executor::read(snapshot, anabranch_tests::ask(endless)).await
            })
            .await
            .unwrap_err();
        assert_eq!(told.kind(), ErrorKind::ReaderTooOld, "{told:?}");
        log_is_free(&db).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_well_says_why() {
    let policy = WalPolicy::new()
        .warn_at(Bytes(100 * FRAME))
        .reader_age(Duration::from_millis(1));
    let db = opened(Mode::ALL[0], policy).await;
    let health = db.health().await;
    assert!(health.is_healthy() && health.is_in_place, "{health:?}");
    // Case 54: by the other name a program would not find the log.
    let other = db.path().with_file_name("other.db");
    std::fs::hard_link(db.path(), &other).unwrap();
    let problems = db.health().await.problems;
    assert!(problems[0].contains("2 names (hard links)"), "{problems:?}");
    std::fs::remove_file(other).unwrap();
    let leaked = Leaked::new(&db, "report").await;
    save_until(&db, "the log is large and held", |status| {
        status.frames > 100 && status.is_blocked()
    })
    .await;
    let health = db.health().await;
    let problems = health.problems.join("\n");
    assert!(!health.is_healthy());
    assert!(problems.contains("the log has "), "{problems}");
    assert!(problems.contains("held by report at "), "{problems}");
    assert!(problems.contains("a reader is open for "), "{problems}");
    leaked.end().await;
    // What is long and all moved is no problem: the next commit begins at its beginning.
    until("the log is moved", async || db.health().await.is_healthy()).await;
    assert!(u64::from(status(&db).await.frames) > 100);
    std::fs::remove_file(db.path()).unwrap();
    let health = db.health().await;
    assert!(!health.is_in_place && health.wal.is_none(), "{health:?}");
}

/// Who got the connection of a reader that was ended was stopped in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_reader_that_is_too_old_is_ended() {
    let builder = Database::builder("")
        .readers(2)
        .wal_policy(interrupting(Duration::from_nanos(1)));
    let db = builder.open_temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    db.bulk_insert_optimized((0..2_000).map(|_| note("x".repeat(1000))))
        .await
        .unwrap();
    let most = if std::env::var_os("ANABRANCH_LONG").is_some() {
        200
    } else {
        8
    };
    let mut readers = JoinSet::new();
    for _ in 0..16 {
        let db = db.clone();
        readers.spawn(async move {
            while db.statistics().interrupted_readers < most {
                let read = db.read(async |snapshot| {
                    for _ in 0..20 {
                        Note::query().count(&mut *snapshot).await?;
                        tokio::task::yield_now().await;
                    }
                    Ok(())
                });
                if let Err(error) = read.await {
                    assert_eq!(error.kind(), ErrorKind::ReaderTooOld, "{error:?}");
                }
            }
        });
    }
    while let Some(reader) = readers.join_next().await {
        reader.unwrap();
    }
    log_is_free(&db).await;
    assert!(db.integrity().await.unwrap().is_ok());
}

/// The frames that the log's file has, read as its format says: those with the salts of the header, up to the last commit.
fn frames_of(log: &std::path::Path) -> u32 {
    let bytes = std::fs::read(log).unwrap();
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let frame = 24 + word(8) as usize;
    let (mut frames, mut committed) = (0, 0);
    for at in (32..bytes.len()).step_by(frame) {
        if bytes.len() < at + frame || (word(at + 8), word(at + 12)) != (word(16), word(20)) {
            break;
        }
        frames += 1;
        if word(at + 4) > 0 {
            committed = frames;
        }
    }
    committed
}

#[tokio::test]
async fn what_is_told_of_the_log_is_in_its_file() {
    for page in [512, 4096, 65536] {
        let builder = Database::builder("")
            .page_size(page)
            .wal_autocheckpoint(100_000);
        let db = builder.open_temporary().await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        let log = format!("{}-wal", db.path().display());
        for round in 0..4 {
            for _ in 0..9 {
                save(&db).await;
            }
            let told = status(&db).await;
            assert_eq!(told.frames, frames_of(log.as_ref()), "{page}");
            assert_eq!(told.bytes, std::fs::metadata(&log).unwrap().len());
            assert_eq!(told.used, u64::from(told.frames) * (u64::from(page) + 24));
            if round == 1 {
                // The next commit overwrites it from the beginning.
                let restart = "PRAGMA wal_checkpoint(RESTART)";
                let outside = anabranch_tests::outsider(db.path());
                outside.query_row(restart, [], |_| Ok(())).unwrap();
                let told = status(&db).await;
                assert_eq!((told.moved, told.unmoved()), (told.frames, 0));
            }
        }
    }
}

#[tokio::test]
async fn a_database_that_is_closed_says_so() {
    let db = opened(Mode::Inline, WalPolicy::new()).await;
    db.close().await.unwrap();
    let error = db.wal_status().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    let health = db.health().await;
    assert!(!health.is_healthy() && health.wal.is_none(), "{health:?}");
    assert_eq!(db.vacuum().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.integrity().await.unwrap_err().kind(), ErrorKind::Closed);
}

/// A large log without a reader was a problem until the next write.
#[tokio::test]
async fn a_log_that_is_moved_and_nobodys_is_well_however_large() {
    let db = opened(Mode::ALL[0], WalPolicy::new().warn_at(Bytes(20 * FRAME))).await;
    let tail = save_until(&db, "frames are left", |status| status.frames > 20).await;
    assert_eq!(tail.moved, 0);
    let problems = db.health().await.problems.join("\n");
    assert!(problems.contains("still to be moved"), "{problems}");
    save_until(&db, "a pass was made", |status| {
        status.outcome == WalOutcome::Complete && status.frames > 20 && status.unmoved() < 10
    })
    .await;
    let health = db.health().await;
    assert!(health.wal.as_ref().unwrap().used > 20 * FRAME);
    assert!(health.is_healthy(), "{health:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_waits_in_vain_for_the_log_is_told_of_the_reader() {
    let db = Mode::ALL[0]
        .set(Database::builder(""))
        .wal_autocheckpoint(PAGES)
        .wal_policy(WalPolicy::new().limit(Bytes(100 * FRAME)))
        .queue_timeout(Duration::from_millis(500))
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    save(&db).await;
    let leaked = Leaked::new(&db, "report").await;
    let mut refused = None;
    until("a save is refused", async || {
        let mut ctx = db.context();
        ctx.add(note("x".repeat(4000)));
        refused = ctx.save_changes().await.err();
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!(refused.kind(), ErrorKind::QueueTimeout, "{refused}");
    let text = refused.to_string();
    assert!(text.contains("a log near its limit"), "{text}");
    assert!(text.contains("; the reader is report at "), "{text}");
    assert!(text.contains(", open for "), "{text}");
    leaked.end().await;
}
