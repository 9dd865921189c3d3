//! Spans: which there are, in which they lie, and what they say.

use std::time::Duration;

use anabranch::{
    database::DatabaseBuilder,
    engine::{ConcurrentOptions, ReadSnapshot},
    feed::Retries,
    prelude::*,
    query::raw,
};
use anabranch_tests::{
    execute,
    note::{Note, note},
};

use crate::between;
use crate::capture::{Line, events, open, spans};

#[derive(Debug, Entity)]
struct Job {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

/// Takes some tens of milliseconds.
const COUNTING: &str =
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300000)
    SELECT count(*) FROM n WHERE 'hidden' != 'x'";

fn only(spans: Vec<Line>) -> Line {
    let [span] = <[Line; 1]>::try_from(spans).unwrap();
    span
}

/// The statements in this span, by what they do.
fn within(database: &str, span: &Line) -> Vec<String> {
    (spans(database, "anabranch.statement").iter())
        .filter(|statement| statement.parent == span.span)
        .map(|statement| statement.get("db.query.summary").to_owned())
        .collect()
}

#[tokio::test]
async fn a_statement_says_what_it_does_and_how_many_rows_there_were() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "statement.db", |options| options).await;
    db.create_tables::<Note>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(note("a"));
    ctx.add(note("b"));
    ctx.save_changes().await.unwrap();
    let found = Note::query()
        .filter(Note::TEXT.ne("c"))
        .limit(5)
        .all(&db)
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
    let statements = spans("statement.db", "anabranch.statement");
    let read = only(
        (statements.into_iter())
            .filter(|span| span.get("db.operation.name") == "SELECT")
            .collect(),
    );
    assert_eq!(read.target, "anabranch");
    assert_eq!(read.level, tracing::Level::TRACE);
    for (field, value) in [
        ("otel.name", "SELECT note"),
        ("otel.kind", "client"),
        ("db.system.name", "sqlite"),
        ("db.collection.name", "note"),
        ("db.query.summary", "SELECT note"),
        ("db.response.returned_rows", "2"),
        ("error.type", ""),
    ] {
        assert_eq!(read.get(field), value, "{field}");
    }
    let text = read.get("db.query.text");
    assert!(text.contains("?1") && text.ends_with("LIMIT ?"), "{text}");
    let save = only(spans("statement.db", "anabranch.save"));
    assert_eq!(save.get("otel.name"), "SAVE statement.db");
    assert_eq!(save.get("db.operation.batch.size"), "2");
    assert_eq!(within("statement.db", &save), ["INSERT note"; 2]);
    let tables = only(spans("statement.db", "anabranch.migration"));
    assert_eq!(tables.level, tracing::Level::INFO);
}

#[tokio::test]
async fn saves_that_share_a_commit_have_their_own_statements() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "shared.db", |options| options).await;
    db.create_tables::<Note>().await.unwrap();
    let tx = db.begin().await.unwrap();
    let saves = (0..5).map(|_| {
        let db = db.clone();
        async move {
            let mut ctx = db.context();
            ctx.add(note("shared"));
            ctx.save_changes().await.unwrap();
        }
    });
    let end = async { tx.commit().await.unwrap() };
    futures_util::future::join(futures_util::future::join_all(saves), end).await;
    assert!(db.statistics().largest_group > 1);
    for save in spans("shared.db", "anabranch.save") {
        assert_eq!(within("shared.db", &save), ["INSERT note"]);
    }
}

#[tokio::test]
async fn an_error_is_told_by_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "failed.db", |options| options).await;
    db.create_tables::<Note>().await.unwrap();
    let failed = db
        .write(async |tx| {
            sqlx::query("INSERT INTO note (id, nowhere) VALUES (1, 'x')")
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Statement);
    let transaction = only(spans("failed.db", "anabranch.transaction"));
    assert_eq!(transaction.get("error.type"), "Statement");
    assert_eq!(transaction.get("otel.status_code"), "ERROR");
    assert_eq!(transaction.get("anabranch.outcome"), "rolled_back");
    assert!(
        transaction
            .get("anabranch.label")
            .starts_with("db.write at ")
    );
    let statement = only(spans("failed.db", "anabranch.statement"));
    assert_eq!(statement.parent, transaction.span);
    assert_eq!(statement.get("error.type"), "Statement");
    assert_eq!(
        statement.get("db.query.text"),
        "INSERT INTO note (id, nowhere) VALUES (?, ?)"
    );
}

#[tokio::test]
async fn each_attempt_of_a_session_is_a_span_with_its_merge() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "session.db", |options| options).await;
    db.create_tables::<Note>().await.unwrap();
    let options = ConcurrentOptions::default();
    db.concurrent_with(options, async |s| {
        let count = Note::query().count(&mut *s).await?;
        if s.attempt() == 1 {
            between(&db, note("between")).await;
        }
        sqlx::query("INSERT INTO note (text) VALUES (?)")
            .bind(count.to_string())
            .execute(&mut *s)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    let attempts = spans("session.db", "anabranch.session");
    let told: Vec<_> = (attempts.iter())
        .map(|span| {
            let outcome = (span.get("error.type"), span.get("anabranch.outcome"));
            (span.get("anabranch.attempt"), outcome)
        })
        .collect();
    assert_eq!(told, [("1", ("Conflict", "")), ("2", ("", "committed"))]);
    let merges = spans("session.db", "anabranch.merge");
    assert_eq!(merges.len(), 2);
    for (merge, attempt) in merges.iter().zip(&attempts) {
        assert_eq!(merge.parent, attempt.span);
    }
    assert_eq!(
        within("session.db", &attempts[1]),
        ["SELECT note", "INSERT note"]
    );
}

#[tokio::test]
async fn bulk_operations_backups_and_checkpoints_have_spans() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "bulk.db", |options| options).await;
    db.create_tables::<Note>().await.unwrap();
    let report = db
        .bulk_insert()
        .run((0..2_500).map(|n| note(n.to_string())))
        .await;
    assert_eq!(report.unwrap().written, 2_500);
    let bulk = only(spans("bulk.db", "anabranch.bulk"));
    assert_eq!(bulk.get("otel.name"), "BULK note");
    assert_eq!(bulk.get("anabranch.written"), "2500");
    assert_eq!(within("bulk.db", &bulk), ["INSERT note"; 3]);
    let chunks = spans("bulk.db", "anabranch.statement");
    assert_eq!(chunks[0].get("db.operation.batch.size"), "1000");
    assert_eq!(chunks[0].get("db.response.returned_rows"), "1000");
    db.backup_to(folder.path().join("copy.db")).await.unwrap();
    let backup = only(spans("bulk.db", "anabranch.backup"));
    assert_ne!(backup.get("anabranch.pages"), "");
    db.checkpoint().await.unwrap();
    let passes = crate::capture::lines();
    let is_ours = |line: &&Line| {
        line.name == "anabranch.checkpoint" && line.get("anabranch.mode") == "Truncate"
    };
    assert!(
        passes
            .iter()
            .filter(is_ours)
            .any(|line| line.is_of("bulk.db"))
    );
}

#[tokio::test]
async fn a_slow_statement_is_told_of_once_with_who_ran_it() {
    let folder = tempfile::tempdir().unwrap();
    let slow = |options: DatabaseBuilder| options.slow_statements(Duration::from_millis(5));
    let db = open(folder.path(), "slow.db", slow).await;
    db.create_tables::<Note>().await.unwrap();
    let report = async |snapshot: &mut ReadSnapshot| {
        raw::<i64>("SELECT 1", ()).all(&mut *snapshot).await?;
        raw::<i64>(COUNTING, ()).all(&mut *snapshot).await
    };
    assert_eq!(db.read_labelled("report", report).await.unwrap(), [300_000]);
    let told: Vec<_> = (events("a statement was slow").into_iter())
        .filter(|event| event.is_of("slow.db"))
        .collect();
    let told = only(told);
    assert_eq!(told.level, tracing::Level::WARN);
    assert_eq!(told.get("db.query.summary"), "SELECT n");
    assert_eq!(told.get("db.response.returned_rows"), "1");
    assert!(told.get("by").starts_with("report at "), "{told:?}");
    assert_eq!(told.get("thread"), "anabranch");
    assert!(told.get("db.query.text").ends_with("WHERE ? != ?"));
    assert_eq!(db.statistics().slow_statements, 1);
}

#[tokio::test]
async fn a_feed_has_a_span_for_what_it_reads_and_for_each_event_that_is_dealt_with() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "feed.db", |options| options).await;
    db.create_tables::<Job>().await.unwrap();
    let mut ctx = db.context();
    for id in [1, 2] {
        ctx.add(Job {
            id,
            seq: CommitSeq(0),
        });
    }
    ctx.save_changes().await.unwrap();
    let mut feed = db.feed::<Job>("workers");
    let retries = Retries::new()
        .attempts(3)
        .backoff(Duration::ZERO, Duration::ZERO);
    let stopped = feed.each(retries, async |event| {
        tracing::info!(target: "of_the_application", key = event.key(), "dealt with");
        match event.key() {
            1 => Ok(()),
            _ => Err("hidden".into()),
        }
    });
    let stopped = stopped.await.unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Application);

    let read = only(spans("feed.db", "anabranch.feed"));
    for (field, value) in [
        ("otel.name", "FEED job"),
        ("db.collection.name", "job"),
        ("anabranch.feed.name", "workers"),
        ("anabranch.commit_seq", "1"),
        ("anabranch.rows", "2"),
        ("error.type", ""),
    ] {
        assert_eq!(read.get(field), value, "{field}");
    }
    assert!(within("feed.db", &read).contains(&"SELECT job".to_owned()));
    let dealt = spans("feed.db", "anabranch.event");
    let ended: Vec<_> = (dealt.iter())
        .map(|span| (span.get("anabranch.attempt"), span.get("error.type")))
        .collect();
    assert_eq!(ended, [("1", ""), ("3", "Application")]);
    let own = events("dealt with");
    let inside = |span: &Line| own.iter().filter(|event| event.span == span.span).count();
    assert_eq!(dealt.iter().map(inside).collect::<Vec<_>>(), [1, 3]);

    execute(&db, "UPDATE anabranch_epoch SET epoch = x'00'").await;
    let error = feed.try_next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EpochChanged);
    let failed = spans("feed.db", "anabranch.feed").pop().unwrap();
    assert_eq!(failed.get("error.type"), "EpochChanged");
    assert_eq!(failed.get("otel.status_code"), "ERROR");
}

#[tokio::test]
async fn what_waits_for_the_writer_says_for_how_long() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "wait.db", |options| options).await;
    db.create_tables::<Note>().await.unwrap();
    let held = Duration::from_millis(30);
    let tx = db.begin().await.unwrap();
    let save = async {
        let mut ctx = db.context();
        ctx.add(note("waits"));
        ctx.save_changes().await.unwrap();
    };
    let write = db.write(async |tx| Note::query().count(&mut *tx).await);
    let end = async {
        tokio::time::sleep(held).await;
        tx.rollback().await.unwrap();
    };
    let ((), counted, ()) = tokio::join!(save, write, end);
    counted.unwrap();
    for name in ["anabranch.save", "anabranch.transaction"] {
        let told = spans("wait.db", name).pop().unwrap();
        let wait: f64 = told.get("anabranch.wait").parse().unwrap();
        assert!((held.as_secs_f64()..60.0).contains(&wait), "{name}: {wait}");
    }
}
