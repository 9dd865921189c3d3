//! Feeds where they end: streams that are dropped, cursors that are made anew, options beyond all bounds.

use std::{io, pin::pin, time::Duration};

use anabranch::{
    engine::Isolation,
    feed::{Batch, Change, Feed, GiveUp, Retries, Start},
    prelude::*,
};
use anabranch_tests::{Mode, execute, start};
use futures_util::FutureExt as _;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Task {
    #[entity(id)]
    id: i64,
    text: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

async fn opened() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Task>().await.unwrap();
    db
}

async fn add(db: &Database, texts: &[&str]) {
    let mut ctx = db.context();
    for text in texts {
        ctx.add(Task {
            id: 0,
            text: (*text).to_owned(),
            seq: CommitSeq(0),
        });
    }
    ctx.save_changes().await.unwrap();
}

fn told(batch: &Batch<Task>) -> Vec<String> {
    let tell = |change: &Change<Task>| match change {
        Change::Saved(task) => format!("{} {}", task.id, task.text),
        Change::Deleted(id) => format!("-{id}"),
    };
    batch.into_iter().map(|event| tell(&event.change)).collect()
}

async fn told_now(feed: &mut Feed<Task>) -> Vec<String> {
    let batch = feed.try_next_batch().await.unwrap();
    batch.map_or_else(Vec::new, |batch| told(&batch))
}

#[tokio::test]
async fn a_cursor_that_was_made_anew_is_not_taken_for_the_one_before() {
    for (start, expected) in [
        (Start::Beginning, vec!["1 a".to_owned()]),
        (Start::Snapshot, vec!["1 a".to_owned()]),
        (Start::Now, Vec::new()),
    ] {
        let db = opened().await;
        add(&db, &["a"]).await;
        let mut feed = db.feed::<Task>("anew");
        feed.next_batch().await.unwrap().ack().await.unwrap();
        assert!(told_now(&mut feed).await.is_empty());
        assert!(db.remove_cursor("anew").await.unwrap());
        let mut other = db.feed::<Task>("anew").start(start);
        other.lag().await.unwrap();
        assert_eq!(told_now(&mut feed).await, expected, "{start:?}");
    }
}

#[tokio::test]
async fn options_beyond_all_bounds_are_taken_as_they_are_meant() {
    let db = opened().await;
    add(&db, &["a", "b"]).await;
    for rows in [0, usize::MAX] {
        let mut feed = db.feed::<Task>("rows").batch_rows(rows).split_commits();
        let first = feed.next_batch().await.unwrap();
        assert_eq!(first.len(), rows.clamp(1, 2));
        feed.rewind(Start::Snapshot).await.unwrap();
        assert_eq!(feed.next_batch().await.unwrap().len(), rows.clamp(1, 2));
        feed.rewind(Start::Beginning).await.unwrap();
    }
    for interval in [Duration::ZERO, Duration::MAX] {
        let mut feed = db.feed::<Task>("look").look_every(interval);
        feed.rewind(Start::Now).await.unwrap();
        // It lets the other one run.
        let (batch, ()) = tokio::join!(feed.next_batch(), add(&db, &["c"]));
        assert_eq!(batch.unwrap().len(), 1, "{interval:?}");
    }
    let retries = Retries::new().backoff(Duration::MAX, Duration::MAX);
    let mut feed = db.feed::<Task>("retries");
    let mut waits = pin!(feed.each(retries.then(GiveUp::Skip), async |_| {
        Err(io::Error::other("no").into())
    }));
    assert!(waits.as_mut().now_or_never().is_none());
    start(waits);
}

#[tokio::test]
async fn a_key_that_is_changed_by_another_of_its_names_is_told_of() {
    for name in ["id", "rowid", "oid", "_rowid_"] {
        let db = opened().await;
        add(&db, &["a"]).await;
        let mut feed = db.feed::<Task>("keys").start(Start::Now);
        assert!(told_now(&mut feed).await.is_empty());
        let changed = match name {
            "id" => "UPDATE task SET id = 7",
            "rowid" => "UPDATE task SET rowid = 7",
            "oid" => "UPDATE task SET oid = 7",
            _ => "UPDATE task SET _rowid_ = 7",
        };
        execute(&db, changed).await;
        assert_eq!(told_now(&mut feed).await, ["-1", "7 a"], "{name}");
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Effect {
    #[entity(id)]
    id: i64,
    of: i64,
}

/// The table of cursors is the library's, but a place that was passed meanwhile is a conflict like any other row.
#[tokio::test]
async fn of_two_sessions_that_acknowledge_a_batch_one_is_refused() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        for in_session in [true, false] {
            let db = opened().await;
            db.create_tables::<Effect>().await.unwrap();
            add(&db, &["a"]).await;
            let batch = db.feed::<Task>("sessions").next_batch().await.unwrap();
            let mut one = db.begin_concurrent(isolation).await.unwrap();
            let mut other = db.begin_concurrent(isolation).await.unwrap();
            for session in [&mut one, &mut other] {
                let mut ctx = session.context();
                ctx.add(Effect { id: 0, of: 1 });
                ctx.save_changes().await.unwrap();
                drop(ctx);
                batch.ack_in(&mut **session).await.unwrap();
            }
            if in_session {
                other.commit().await.unwrap();
            } else {
                other.rollback().await.unwrap();
                batch.ack().await.unwrap();
            }
            let late = one.commit().await;
            let effects = Effect::query().count(&db).await.unwrap();
            assert_eq!(effects, u64::from(in_session), "{isolation:?}");
            assert!(late.unwrap_err().is_conflict(), "{isolation:?}");
        }
    }
}
