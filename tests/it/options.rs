//! What the options at open promise.

use std::time::Duration;

use anabranch::{
    database::DatabaseBuilder,
    engine::{AutoVacuum, TempStore},
    prelude::*,
    sql::Executor,
    value::Value,
};
use anabranch_tests::{Mode, ask, execute, note::Note, outsider, until};
use futures_util::StreamExt;

/// The pragmas that a connection of these options has, in the order of [`PRAGMAS`].
fn chosen(builder: DatabaseBuilder) -> DatabaseBuilder {
    builder
        .cache_size(Bytes::mib(3))
        .temp_store(TempStore::Memory)
        .journal_size_limit(Bytes::mib(7))
        .page_size(8192)
        .auto_vacuum(AutoVacuum::Incremental)
        .readers(3)
}

const PRAGMAS: &str = "foreign_keys || ' ' || synchronous || ' ' || cache_size || ' ' || temp_store || ' ' || \
     journal_size_limit || ' ' || page_size || ' ' || auto_vacuum || ' ' || journal_mode || ' ' || query_only
     FROM pragma_foreign_keys, pragma_synchronous, pragma_cache_size, pragma_temp_store,
     pragma_journal_size_limit, pragma_page_size, pragma_auto_vacuum, pragma_journal_mode, pragma_query_only";

fn expected(mode: Mode, query_only: bool) -> Value {
    let synchronous = if mode == Mode::Full { 2 } else { 1 };
    Value::Text(format!(
        "1 {synchronous} -3072 2 {} 8192 2 wal {}",
        7 * 1024 * 1024,
        u8::from(query_only)
    ))
}

#[tokio::test]
async fn every_connection_has_the_pragmas_that_were_chosen() {
    for mode in Mode::ALL {
        let db = mode
            .set(chosen(Database::builder("")))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<Note>().await.unwrap();

        // Every reader: each stream keeps one.
        let endless = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT {PRAGMAS}, n"
        );
        let mut held = Vec::new();
        for _ in 0..3 {
            let mut rows = db.stream(ask(&endless));
            let found = rows.next().await.unwrap().unwrap();
            assert_eq!(found, expected(mode, true), "{mode:?}: a reader");
            held.push(rows);
        }
        drop(held);

        // The connection of exclusive transactions, through either of its drivers.
        let all = format!("SELECT {PRAGMAS}");
        db.write(async |tx| {
            let typed = tx.read(ask(&all)).await?;
            assert_eq!(typed, [expected(mode, false)], "{mode:?}: db.write");
            let raw: String = sqlx::query_scalar(sqlx::AssertSqlSafe(all))
                .fetch_one(&mut *tx)
                .await?;
            assert_eq!(Value::Text(raw), expected(mode, false));
            let automatic: i64 = sqlx::query_scalar("PRAGMA wal_autocheckpoint")
                .fetch_one(&mut *tx)
                .await?;
            assert_eq!(automatic, 0, "checkpoints run on a thread of their own");
            let timeout: i64 = sqlx::query_scalar("PRAGMA busy_timeout")
                .fetch_one(&mut *tx)
                .await?;
            assert_eq!(timeout, 0, "no statement waits for a lock on a task");
            Ok(())
        })
        .await
        .unwrap();

        // The connection of saves: what a trigger sees there.
        let trigger = format!(
            "CREATE TABLE seen (pragmas TEXT);
             CREATE TRIGGER look AFTER INSERT ON note BEGIN INSERT INTO seen SELECT {PRAGMAS}; END"
        );
        db.write(async |tx| {
            sqlx::query(sqlx::AssertSqlSafe(trigger))
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await
        .unwrap();
        let mut ctx = db.context();
        ctx.add(Note {
            id: 0,
            text: "look".to_owned(),
        });
        ctx.save_changes().await.unwrap();
        let seen = Executor::read(&db, ask("SELECT pragmas FROM seen")).await;
        assert_eq!(seen.unwrap(), [expected(mode, false)], "{mode:?}: a save");
    }
}

#[tokio::test]
async fn the_defaults_are_those_of_the_documentation() {
    let db = Database::temporary().await.unwrap();
    let found = Executor::read(&db, ask(&format!("SELECT {PRAGMAS}")))
        .await
        .unwrap();
    let limit = 64 * 1024 * 1024;
    assert_eq!(
        found,
        [Value::Text(format!("1 1 -16384 0 {limit} 4096 0 wal 1"))]
    );
}

#[tokio::test]
async fn memory_is_mapped_only_if_that_is_asked_for() {
    for (builder, expected) in [
        (Database::builder(""), 0),
        (
            Database::builder("").mmap_size(Bytes::mib(2)),
            2 * 1024 * 1024,
        ),
    ] {
        let db = builder.open_temporary().await.unwrap();
        let found = Executor::read(&db, ask("PRAGMA mmap_size")).await.unwrap();
        assert_eq!(found, [Value::Integer(expected)]);
        let mut tx = db.begin().await.unwrap();
        let found = tx.read(ask("PRAGMA mmap_size")).await.unwrap();
        assert_eq!(found, [Value::Integer(expected)]);
    }
}

#[tokio::test]
async fn synchronous_off_is_off_everywhere() {
    let db = Database::builder("")
        .synchronous(Synchronous::Off)
        .open_temporary()
        .await
        .unwrap();
    let off = [Value::Integer(0)];
    assert_eq!(
        Executor::read(&db, ask("PRAGMA synchronous"))
            .await
            .unwrap(),
        off
    );
    let mut tx = db.begin().await.unwrap();
    assert_eq!(tx.read(ask("PRAGMA synchronous")).await.unwrap(), off);
}

#[tokio::test]
async fn an_option_out_of_range_is_refused_with_its_name_and_the_rule() {
    type Choose = fn(DatabaseBuilder) -> DatabaseBuilder;
    let days = |count: u64| Duration::from_secs(count * 24 * 3600);
    assert!(days(25).as_millis() > 2_147_483_647);
    let wrong: [(&str, Choose); 17] = [
        ("busy_timeout", |b| {
            b.busy_timeout(Duration::from_secs(2_160_000))
        }),
        ("queue_timeout", |b| b.queue_timeout(Duration::ZERO)),
        ("queue_timeout", |b| {
            b.queue_timeout(Duration::from_secs(2_160_000))
        }),
        ("wal_autocheckpoint", |b| b.wal_autocheckpoint(0)),
        ("wal_autocheckpoint", |b| b.wal_autocheckpoint(1_000_001)),
        ("write_queue_capacity", |b| b.write_queue_capacity(0)),
        ("cache_size", |b| b.cache_size(Bytes::ZERO)),
        ("cache_size", |b| b.cache_size(Bytes(u64::MAX))),
        ("mmap_size", |b| b.mmap_size(Bytes(u64::MAX))),
        ("journal_size_limit", |b| {
            b.journal_size_limit(Bytes(u64::MAX))
        }),
        ("page_size", |b| b.page_size(1000)),
        ("page_size", |b| b.page_size(256)),
        ("page_size", |b| b.page_size(131_072)),
        ("readers", |b| b.readers(0)),
        ("readers", |b| b.readers(1001)),
        ("save_token_retention", |b| {
            b.save_token_retention(Duration::from_secs(59))
        }),
        ("save_token_retention", |b| {
            b.save_token_retention(Duration::MAX)
        }),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    for (option, choose) in wrong {
        let error = choose(Database::builder(&path)).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Options, "{option}");
        assert!(error.to_string().contains(option), "{option}: {error}");
        let temporary = choose(Database::builder("")).open_temporary().await;
        assert_eq!(temporary.unwrap_err().kind(), ErrorKind::Options);
    }
    assert!(
        !path.exists(),
        "nothing is made for options that are refused"
    );
}

#[tokio::test]
async fn a_file_that_is_open_takes_no_other_options() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let first = Database::builder(&path).readers(2).open().await.unwrap();
    let error = Database::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Options);
    assert!(error.to_string().contains("another readers"), "{error}");
    Database::builder(&path).readers(2).open().await.unwrap();
    first.close().await.unwrap();
    // Once it is closed, others may be chosen.
    Database::open(&path).await.unwrap();
}

#[tokio::test]
async fn wal_autocheckpoint_keeps_the_log_short() {
    let db = Database::builder("")
        .wal_autocheckpoint(20)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    // Some commits fit into it, and then it starts anew: how soon depends on how fast the disk syncs.
    let mut longest = 0;
    until("the log starts anew", async || {
        let text = "INSERT INTO note (text) VALUES (hex(zeroblob(1000)))";
        execute(&db, text).await;
        longest = longest.max(db.wal_frames());
        longest > 20 && db.wal_frames() < longest / 2
    })
    .await;
    assert!(db.statistics().checkpoints > 0);
}

#[tokio::test]
async fn a_file_is_not_made_if_that_is_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = || Database::builder(&path).create(false).open();
    let error = open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    assert!(error.to_string().contains("does not exist"), "{error}");
    assert!(!path.exists());
    outsider(&path).execute_batch("CREATE TABLE t (a)").unwrap();
    open().await.unwrap();
}
