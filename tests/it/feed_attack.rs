//! Feeds where somebody means them harm: odd numbers, odd names, and consumers that end half-way.

mod keys;

use std::{collections::BTreeMap, fmt::Debug, panic::AssertUnwindSafe, time::Duration};

use anabranch::{
    feed::{Batch, Change, Feed, GiveUp, Retention, Retries, Start},
    prelude::*,
};
use anabranch_tests::{Mode, dropped_after, execute, outsider};
use futures_util::{FutureExt as _, TryStreamExt as _};

use crate::feed_attack::keys::Word;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Note {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    text: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

async fn opened() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Note, Word)>().await.unwrap();
    db
}

async fn add(db: &Database, texts: impl IntoIterator<Item = impl ToString>) {
    let mut ctx = db.context();
    for text in texts {
        ctx.add(Note {
            id: 0,
            text: text.to_string(),
            seq: CommitSeq(0),
        });
    }
    ctx.save_changes().await.unwrap();
}

/// What a consumer has that keeps the rows.
async fn follow<E: Entity>(feed: &mut Feed<E>, copy: &mut BTreeMap<E::Key, E>)
where
    E::Key: Ord,
{
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        batch.ack().await.unwrap();
        apply(batch, copy);
    }
}

fn apply<E: Entity>(batch: Batch<E>, copy: &mut BTreeMap<E::Key, E>)
where
    E::Key: Ord,
{
    for event in batch.into_events() {
        match event.change {
            Change::Saved(row) => copy.insert(row.key(), row),
            Change::Deleted(key) => copy.remove(&key),
        };
    }
}

async fn rows<E: Entity>(db: &Database) -> BTreeMap<E::Key, E>
where
    E::Key: Ord,
{
    let all = Query::<E>::new().without_filters().all(db).await.unwrap();
    all.into_iter().map(|row| (row.key(), row)).collect()
}

fn texts(batch: &Batch<Note>) -> Vec<&str> {
    (batch.events().iter())
        .filter_map(|event| event.row())
        .map(|row| row.text.as_str())
        .collect()
}

#[track_caller]
fn refused<T: Debug>(result: anabranch::error::Result<T>, kind: ErrorKind) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
}

#[tokio::test]
async fn a_batch_has_as_many_rows_as_there_are_if_nobody_bounds_it() {
    let db = opened().await;
    add(&db, ["a", "b"]).await;
    for rows in [usize::MAX, usize::MAX - 1, usize::MAX / 2, 0] {
        for splits in [false, true] {
            let name = format!("{rows} {splits}");
            for start in [Start::Beginning, Start::Snapshot] {
                let mut feed = db.feed::<Note>(&*name).batch_rows(rows);
                if splits {
                    feed = feed.split_commits();
                }
                feed.rewind(start).await.unwrap();
                let mut copy = BTreeMap::new();
                follow(&mut feed, &mut copy).await;
                assert_eq!(copy.len(), 2, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_commit_before_the_first_one_is_no_start() {
    let db = opened().await;
    add(&db, ["a"]).await;
    for seq in [-1, i64::MIN, 2, i64::MAX] {
        let mut feed = db.feed::<Note>("odd").start(Start::After(seq));
        refused(feed.try_next_batch().await, ErrorKind::Refused);
        refused(feed.rewind(Start::After(seq)).await, ErrorKind::Refused);
    }
    assert!(db.cursors().await.unwrap().is_empty());
    let mut feed = db.feed::<Note>("odd").start(Start::After(0));
    assert_eq!(feed.try_next_batch().await.unwrap().unwrap().len(), 1);
    refused(feed.rewind(Start::After(-1)).await, ErrorKind::Refused);
    assert_eq!(feed.try_next_batch().await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn intervals_may_be_as_long_or_as_short_as_one_likes() {
    let db = opened().await;
    for interval in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
        let mut feed = db.feed::<Note>("long").look_every(interval);
        feed.lag().await.unwrap();
        assert!(dropped_after(20_000, feed.next_batch()).await.is_none());
    }
    // It lets others have their turn.
    let mut feed = db.feed::<Note>("short").look_every(Duration::ZERO);
    let waiting = tokio::spawn(async move { feed.next_batch().await.map(|batch| batch.len()) });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    add(&db, ["a"]).await;
    assert_eq!(waiting.await.unwrap().unwrap(), 1);
    let retries = Retries::new().backoff(Duration::MAX, Duration::MAX);
    let mut feed = db.feed::<Note>("retries");
    feed.lag().await.unwrap();
    let failing = feed.each(retries, async |_| Err("no".into()));
    assert!(dropped_after(20_000, failing).await.is_none());
}

/// What was deleted and forgotten before it began it cannot have seen.
#[tokio::test]
async fn a_new_consumer_reads_on_beyond_its_first_batch_after_deletions_were_forgotten() {
    let db = opened().await;
    for text in ["a", "b", "c", "d"] {
        add(&db, [text]).await;
    }
    execute(&db, "DELETE FROM note WHERE text = 'd'").await;
    let all = Retention::new(Duration::ZERO).at_most(Duration::ZERO);
    assert_eq!(db.prune_tombstones::<Note>(all).await.unwrap(), 1);
    for start in [Start::Beginning, Start::Snapshot] {
        let mut feed = db.feed::<Note>("new").batch_rows(1);
        feed.rewind(start).await.unwrap();
        let mut copy = BTreeMap::new();
        follow(&mut feed, &mut copy).await;
        assert_eq!(copy, rows::<Note>(&db).await);
    }
    // One that says that it has seen what was before is told that it did not see all.
    let mut old = db.feed::<Note>("old").start(Start::After(2));
    refused(old.try_next_batch().await, ErrorKind::CursorExpired);
    // And so is one that took a batch, had no time to acknowledge it, and came back too late.
    let mut slow = db.feed::<Note>("slow");
    let batch = slow.next_batch().await.unwrap();
    assert_eq!(batch.len(), 3);
    execute(&db, "DELETE FROM note WHERE text = 'a'").await;
    assert_eq!(db.prune_tombstones::<Note>(all).await.unwrap(), 1);
    refused(
        db.feed::<Note>("slow").try_next_batch().await,
        ErrorKind::CursorExpired,
    );
    slow.rewind(Start::Beginning).await.unwrap();
    assert_eq!(slow.next_batch().await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_cursor_of_another_table_is_not_moved() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let mut notes = db.feed::<Note>("name");
    let batch = notes.next_batch().await.unwrap();
    let mut words = db.feed::<Word>("name");
    refused(words.rewind(Start::Now).await, ErrorKind::Model);
    refused(words.lag().await, ErrorKind::Model);
    batch.ack().await.unwrap();
    add(&db, ["b"]).await;
    assert_eq!(texts(&notes.next_batch().await.unwrap()), ["b"]);
}

#[tokio::test]
async fn any_text_is_a_name_or_refused() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let long = "long".repeat(100_000);
    for name in ["", "a", "A", "a'b\"c", "%", "ä", &*long] {
        let mut feed = db.feed::<Note>(name);
        feed.next_batch().await.unwrap().ack().await.unwrap();
        assert!(feed.try_next_batch().await.unwrap().is_none());
    }
    assert_eq!(db.cursors().await.unwrap().len(), 7);
    let mut nul = db.feed::<Note>("a\0b");
    let error = nul.try_next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value, "{error}");
    assert!(db.remove_cursor("a").await.unwrap());
    assert!(!db.remove_cursor("a").await.unwrap());
    assert_eq!(db.cursors().await.unwrap().len(), 6);
}

#[tokio::test]
async fn a_file_without_feeds_has_no_cursors() {
    let db = Database::temporary().await.unwrap();
    assert!(db.cursors().await.unwrap().is_empty());
    assert!(!db.remove_cursor("any").await.unwrap());
    let missing = db.feed::<Note>("x").parked(1).await.unwrap();
    assert!(missing.is_empty());
}

#[tokio::test]
async fn what_a_stream_took_and_did_not_acknowledge_comes_again() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let mut feed = db.feed::<Note>("stream");
    {
        let mut batches = feed.stream();
        let batch = batches.try_next().await.unwrap().unwrap();
        assert_eq!(batch.len(), 1);
        assert!(dropped_after(20_000, batches.try_next()).await.is_none());
    }
    let again = feed.try_next_batch().await.unwrap();
    assert_eq!(texts(&again.expect("it was not acknowledged")), ["a"]);
}

#[tokio::test]
async fn a_cursor_that_was_removed_and_made_anew_is_another_one() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let mut feed = db.feed::<Note>("again");
    let batch = feed.next_batch().await.unwrap();
    batch.ack().await.unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
    db.remove_cursor("again").await.unwrap();
    let mut other = db.feed::<Note>("again");
    let others = other.next_batch().await.unwrap();
    refused(batch.ack().await, ErrorKind::CursorMoved);
    assert_eq!(feed.try_next_batch().await.unwrap().unwrap().len(), 1);
    others.ack().await.unwrap();
}

/// The place within a commit leads on also when the rest of it is gone meanwhile.
#[tokio::test]
async fn a_commit_that_is_split_does_not_hide_those_after_it() {
    let db = opened().await;
    add(&db, 0..6).await;
    let mut feed = db.feed::<Note>("split").batch_rows(2).split_commits();
    feed.rewind(Start::Now).await.unwrap();
    execute(&db, "DELETE FROM note WHERE id <= 4").await;
    let mut gone = Vec::new();
    let first = feed.next_batch().await.unwrap();
    assert!(first.is_split());
    first.ack().await.unwrap();
    gone.extend(first.events().iter().map(|event| event.key()));
    assert_eq!(gone, [1, 2]);
    // The others move to a later commit.
    execute(&db, "INSERT INTO note (id, text) VALUES (3, 'x'), (4, 'y')").await;
    execute(&db, "DELETE FROM note WHERE id IN (3, 4)").await;
    let second = feed.try_next_batch().await.unwrap().expect("there is more");
    second.ack().await.unwrap();
    gone.extend(second.events().iter().map(|event| event.key()));
    assert_eq!(gone, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_batch_is_split_only_if_its_commit_goes_on() {
    let db = opened().await;
    add(&db, 0..6).await;
    let mut feed = db.feed::<Note>("split").batch_rows(2).split_commits();
    feed.rewind(Start::Now).await.unwrap();
    execute(&db, "DELETE FROM note WHERE id <= 4").await;
    db.write(async |tx| {
        for sql in [
            "DELETE FROM note WHERE id = 5",
            "UPDATE note SET text = 'new' WHERE id = 6",
            "INSERT INTO note (text) VALUES ('newer')",
            "INSERT INTO note (text) VALUES ('newest')",
        ] {
            sqlx::query(sql).execute(&mut *tx).await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    let mut found = Vec::new();
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        batch.ack().await.unwrap();
        found.push((batch.len(), batch.is_split()));
    }
    assert_eq!(found, [(2, true), (2, false), (2, true), (2, false)]);
}

/// What another program deletes is told with the triggers for it only; what was deleted here is told all the same.
#[tokio::test]
async fn a_deletion_of_another_program_does_not_hide_ours() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let mut feed = db.feed::<Note>("slow");
    let mut copy = BTreeMap::new();
    follow(&mut feed, &mut copy).await;
    execute(&db, "DELETE FROM note").await;
    outsider(db.path())
        .execute_batch("INSERT INTO note (id, text) VALUES (1, 'b'); DELETE FROM note;")
        .unwrap();
    follow(&mut feed, &mut copy).await;
    assert!(copy.is_empty());
}

/// The same table, without what the other entity asks for.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "note")]
struct PlainNote {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    text: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[tokio::test]
async fn a_table_whose_numbers_or_deletions_nobody_writes_is_told_of_at_once() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Word>().await.unwrap();
    execute(
        &db,
        "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL DEFAULT 0)",
    )
    .await;
    execute(&db, "CREATE INDEX note_seq ON note (seq) WHERE seq > 5").await;
    // No index that serves, no number, no deletions: each is said.
    refused(
        db.feed::<Note>("n").try_next_batch().await,
        ErrorKind::Model,
    );
    execute(&db, "DROP INDEX note_seq").await;
    execute(&db, "CREATE INDEX note_seq ON note (SEQ)").await;
    let error = db
        .feed::<PlainNote>("n")
        .try_next_batch()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
    assert!(error.to_string().contains("create_tables"), "{error}");
    db.create_tables::<PlainNote>().await.unwrap();
    assert!(
        db.feed::<PlainNote>("n")
            .try_next_batch()
            .await
            .unwrap()
            .is_none()
    );
    let error = db.feed::<Note>("n").try_next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
    assert!(error.to_string().contains("create_tables"), "{error}");
    let all = Retention::new(Duration::ZERO);
    refused(db.prune_tombstones::<Note>(all).await, ErrorKind::Model);
    // Made later, it goes on, and rows of before are deleted as others are.
    add(&db, ["a"]).await;
    db.create_tables::<Note>().await.unwrap();
    let mut feed = db.feed::<Note>("n");
    let mut copy = BTreeMap::new();
    follow(&mut feed, &mut copy).await;
    execute(&db, "DELETE FROM note").await;
    follow(&mut feed, &mut copy).await;
    assert!(copy.is_empty());
}

#[tokio::test]
async fn a_snapshot_that_is_not_complete_is_behind_and_has_no_position_to_go_on_from() {
    let db = opened().await;
    add(&db, 0..5).await;
    let mut feed = db
        .feed::<Note>("snapshot")
        .start(Start::Snapshot)
        .batch_rows(2);
    assert_eq!(feed.lag().await.unwrap().rows, 5);
    let batch = feed.next_batch().await.unwrap();
    assert!(batch.is_split());
    batch.ack().await.unwrap();
    let position = batch.position();
    let mut copy = BTreeMap::new();
    apply(batch, &mut copy);
    let mut elsewhere = db
        .feed::<Note>("elsewhere")
        .start(Start::After(position.seq));
    follow(&mut elsewhere, &mut copy).await;
    assert_eq!(copy, rows::<Note>(&db).await);
}

#[tokio::test]
async fn a_feed_in_a_transaction_reads_what_is_committed_or_is_refused() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let refused_inside = db
        .write(async |_| {
            let new = db.feed::<Note>("new").try_next_batch().await;
            Ok(new.map(drop).unwrap_err().kind())
        })
        .await;
    assert_eq!(refused_inside.unwrap(), ErrorKind::Nested);
    let mut feed = db.feed::<Note>("there");
    feed.lag().await.unwrap();
    db.write(async |tx| {
        let batch = feed.next_batch().await?;
        batch.ack_in(&mut *tx).await?;
        assert_eq!(
            batch.ack_in(&mut *tx).await.unwrap_err().kind(),
            ErrorKind::CursorMoved
        );
        assert_eq!(batch.ack().await.unwrap_err().kind(), ErrorKind::Nested);
        Ok(())
    })
    .await
    .unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
}

#[tokio::test]
async fn a_feed_that_is_dropped_at_any_moment_loses_nothing() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        add(&db, 0..3).await;
        for polls in 0..30 {
            let mut feed = db.feed::<Note>("dropped").batch_rows(1);
            drop(dropped_after(polls, feed.next_batch()).await);
            drop(dropped_after(polls, feed.lag()).await);
            let each = feed.each(Retries::new(), async |_| Err("no".into()));
            drop(dropped_after(polls, each).await);
        }
        let mut copy = BTreeMap::new();
        follow(&mut db.feed::<Note>("dropped"), &mut copy).await;
        assert_eq!(copy.len(), 3, "{mode:?}");
        let closed = tokio::time::timeout(Duration::from_secs(60), db.close()).await;
        closed.expect("nothing holds the file").unwrap();
    }
}

#[tokio::test]
async fn a_handler_that_panics_leaves_its_batch_to_the_next() {
    let db = opened().await;
    add(&db, ["a", "b"]).await;
    let mut feed = db.feed::<Note>("panics").batch_rows(1);
    let panics = AssertUnwindSafe(feed.each(Retries::new().then(GiveUp::Skip), async |event| {
        assert_ne!(event.row().map(|row| &*row.text), Some("b"), "on purpose");
        Ok(())
    }));
    assert!(panics.catch_unwind().await.is_err());
    assert_eq!(texts(&feed.next_batch().await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn a_filter_that_cannot_be_asked_is_an_error_each_time() {
    let db = opened().await;
    add(&db, ["a"]).await;
    let mut feed = db.feed::<Note>("filter").filter(Note::TEXT.eq("a\0b"));
    for _ in 0..2 {
        let error = feed.try_next_batch().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
    }
    assert_eq!(
        texts(&db.feed::<Note>("filter").next_batch().await.unwrap()),
        ["a"]
    );
}

/// Two hundred thousand changes in the long form.
#[tokio::test]
async fn a_very_large_commit_is_split_without_reading_it_again_and_again() {
    let count: usize = if std::env::var_os("ANABRANCH_LONG").is_some() {
        200_000
    } else {
        10_000
    };
    let db = opened().await;
    add(&db, 0..count).await;
    let mut feed = db.feed::<Note>("large").batch_rows(500).split_commits();
    let mut seen = 0;
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        assert!(batch.len() <= 500);
        seen += batch.len();
        batch.ack().await.unwrap();
    }
    assert_eq!(seen, count);
    execute(&db, "DELETE FROM note").await;
    db.vacuum().await.unwrap();
    let mut gone = 0;
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        assert!(batch.len() <= 500);
        gone += batch
            .events()
            .iter()
            .filter(|event| event.is_deleted())
            .count();
        batch.ack().await.unwrap();
    }
    assert_eq!(gone, count);
}
