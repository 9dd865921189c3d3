//! Feeds: what was committed, in order, whole, at least once, to consumers that have a place of their own.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use anabranch::{
    engine::{Isolation, Session},
    feed::{Batch, Change, Event, GiveUp, Position, Retention, Retries, Start},
    prelude::*,
};
use anabranch_tests::{Mode, execute, outsider, until};
use futures_util::{StreamExt as _, TryStreamExt as _};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Job {
    #[entity(id)]
    id: i64,
    text: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Page {
    #[entity(id)]
    site: String,
    #[entity(id)]
    number: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Effect {
    #[entity(id)]
    id: i64,
    of: i64,
}

async fn opened(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<(Job, Page, Effect)>().await.unwrap();
    db
}

async fn add(db: &Database, texts: &[&str]) -> Vec<i64> {
    let mut ctx = db.context();
    let added: Vec<_> = (texts.iter())
        .map(|text| {
            ctx.add(Job {
                id: 0,
                text: (*text).to_owned(),
                seq: CommitSeq(0),
            })
        })
        .collect();
    ctx.save_changes().await.unwrap();
    added.into_iter().map(|job| ctx[job].id).collect()
}

/// The changes as people would write them down.
fn told(batch: &Batch<Job>) -> Vec<String> {
    batch.events().iter().map(tell).collect()
}

fn tell(event: &Event<Job>) -> String {
    match &event.change {
        Change::Saved(job) => format!("{} {}", event.seq, job.text),
        Change::Deleted(id) => format!("{} -{id}", event.seq),
    }
}

async fn kind_of_next(feed: &mut anabranch::feed::Feed<Job>) -> ErrorKind {
    feed.try_next_batch().await.unwrap_err().kind()
}

#[tokio::test]
async fn commits_come_in_their_order_whole_until_they_are_acknowledged() {
    for mode in Mode::ALL {
        let db = opened(mode).await;
        add(&db, &["a", "b"]).await;
        let ids = add(&db, &["c", "d"]).await;
        execute(&db, "DELETE FROM job WHERE text = 'c'").await;
        execute(&db, "UPDATE job SET text = 'B' WHERE text = 'b'").await;
        let mut feed = db.feed::<Job>("all").batch_rows(2);
        let mut all = Vec::new();
        while let Some(batch) = feed.try_next_batch().await.unwrap() {
            let again = feed.try_next_batch().await.unwrap().unwrap();
            assert_eq!(told(&again), told(&batch), "{mode:?}");
            assert!(!batch.is_split() && batch.len() <= 2);
            batch.ack().await.unwrap();
            all.push(told(&batch));
        }
        let gone = format!("3 -{}", ids[0]);
        assert_eq!(
            all,
            [
                vec!["1 a".to_owned(), "2 d".into()],
                vec![gone, "4 B".into()]
            ]
        );
        // Another one of this name goes on there; one of another name begins.
        assert!(
            db.feed::<Job>("all")
                .try_next_batch()
                .await
                .unwrap()
                .is_none()
        );
        let other = db.feed::<Job>("other").try_next_batch().await.unwrap();
        assert_eq!(other.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn a_commit_that_is_larger_than_a_batch_comes_whole_or_is_split_if_asked() {
    let db = opened(Mode::Inline).await;
    add(&db, &["old"]).await;
    let texts: Vec<_> = (0..7).map(|number| number.to_string()).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let ids = add(&db, &texts).await;
    add(&db, &["new"]).await;
    let mut whole = db.feed::<Job>("whole").batch_rows(3);
    let mut sizes = Vec::new();
    while let Some(batch) = whole.try_next_batch().await.unwrap() {
        sizes.push(batch.len());
        assert!(!batch.is_split());
        batch.ack().await.unwrap();
    }
    assert_eq!(sizes, [1, 7, 1]);

    // As it is split, a part of it moves to a later commit.
    let mut split = db.feed::<Job>("split").batch_rows(3).split_commits();
    let mut all = Vec::new();
    let mut was_split = 0;
    while let Some(batch) = split.try_next_batch().await.unwrap() {
        assert!(batch.len() <= 3);
        was_split += u32::from(batch.is_split());
        all.extend(told(&batch));
        batch.ack().await.unwrap();
        if all.len() == 4 {
            let mut ctx = db.context();
            let job = ctx.find::<Job>(ids[5]).await.unwrap().unwrap();
            ctx[job].text = "later".into();
            ctx.save_changes().await.unwrap();
        }
    }
    assert_eq!(was_split, 1);
    let expected = [
        "1 old", "2 0", "2 1", "2 2", "2 3", "2 4", "2 6", "3 new", "4 later",
    ];
    assert_eq!(all, expected);

    // Deletions are split as well.
    execute(&db, "DELETE FROM job WHERE text <> 'new'").await;
    let mut gone = Vec::new();
    while let Some(batch) = split.try_next_batch().await.unwrap() {
        assert!(batch.len() <= 3);
        gone.extend(batch.events().iter().map(Event::key));
        batch.ack().await.unwrap();
    }
    assert_eq!(gone.len(), 8);
    assert!(gone.is_sorted());
}

#[tokio::test]
async fn of_two_consumers_with_one_name_one_is_told_that_it_was_slower() {
    let db = opened(Mode::Inline).await;
    add(&db, &["a"]).await;
    let (mut one, mut other) = (db.feed::<Job>("same"), db.feed::<Job>("same"));
    let first = one.next_batch().await.unwrap();
    let second = other.next_batch().await.unwrap();
    first.ack().await.unwrap();
    let late = second.ack().await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::CursorMoved, "{late}");
    assert_eq!(
        first.ack().await.unwrap_err().kind(),
        ErrorKind::CursorMoved
    );
    // In a transaction it takes the rest back.
    let undone = db
        .write(async |tx| {
            let mut ctx = tx.context();
            ctx.add(Effect { id: 0, of: 1 });
            ctx.save_changes().await?;
            second.ack_in(&mut *tx).await
        })
        .await;
    assert_eq!(undone.unwrap_err().kind(), ErrorKind::CursorMoved);
    assert_eq!(Effect::query().count(&db).await.unwrap(), 0);
    add(&db, &["b"]).await;
    assert_eq!(told(&other.next_batch().await.unwrap()), ["2 b"]);
}

#[tokio::test]
async fn an_acknowledgement_is_part_of_its_transaction_or_session() {
    for mode in Mode::ALL {
        let db = opened(mode).await;
        add(&db, &["a"]).await;
        let mut feed = db.feed::<Job>("in");
        let batch = feed.next_batch().await.unwrap();
        let failed: Result<(), _> = db
            .write(async |tx| {
                batch.ack_in(&mut *tx).await?;
                Err(Error::application("no"))
            })
            .await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Application);
        let batch = feed
            .try_next_batch()
            .await
            .unwrap()
            .expect("it comes again");
        db.concurrent(async |s| {
            execute_in(s, batch.events()[0].key()).await?;
            batch.ack_in(&mut *s).await
        })
        .await
        .unwrap();
        assert!(feed.try_next_batch().await.unwrap().is_none(), "{mode:?}");
        assert_eq!(Effect::query().count(&db).await.unwrap(), 1);
    }
}

async fn execute_in(s: &mut Session, of: i64) -> anabranch::error::Result<()> {
    let mut ctx = s.context();
    ctx.add(Effect { id: 0, of });
    ctx.save_changes().await?;
    Ok(())
}

#[tokio::test]
async fn a_consumer_begins_where_it_is_told_to() {
    let db = opened(Mode::Inline).await;
    add(&db, &["a"]).await;
    add(&db, &["b"]).await;
    for (name, start, expected) in [
        ("beginning", Start::Beginning, &["1 a", "2 b", "3 c"][..]),
        ("now", Start::Now, &["3 c"]),
        ("after", Start::After(1), &["2 b", "3 c"]),
        ("snapshot", Start::Snapshot, &["1 a", "2 b", "3 c"]),
    ] {
        let mut feed = db.feed::<Job>(name).start(start);
        feed.lag().await.unwrap();
        let _ = expected;
    }
    add(&db, &["c"]).await;
    for (name, expected) in [
        ("beginning", &["1 a", "2 b", "3 c"][..]),
        ("now", &["3 c"]),
        ("after", &["2 b", "3 c"]),
        ("snapshot", &["1 a", "2 b", "3 c"]),
    ] {
        let mut feed = db.feed::<Job>(name);
        let mut all = Vec::new();
        while let Some(batch) = feed.try_next_batch().await.unwrap() {
            all.extend(told(&batch));
            batch.ack().await.unwrap();
        }
        assert_eq!(all, expected, "{name}");
    }
    let mut ahead = db.feed::<Job>("ahead").start(Start::After(9));
    assert_eq!(kind_of_next(&mut ahead).await, ErrorKind::Refused);
    let mut back = db.feed::<Job>("now");
    back.rewind(Start::Beginning).await.unwrap();
    assert_eq!(
        told(&back.next_batch().await.unwrap()),
        ["1 a", "2 b", "3 c"]
    );
    assert_eq!(
        back.rewind(Start::After(9)).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
}

/// Rows without a number, which another program wrote, are among them; what changes meanwhile comes afterwards.
#[tokio::test]
async fn a_snapshot_is_read_in_pieces_and_nothing_between_them_is_missed() {
    let db = opened(Mode::Inline).await;
    outsider(db.path())
        .execute("INSERT INTO job (id, text) VALUES (7, 'foreign')", [])
        .unwrap();
    let ids = add(&db, &["a", "b", "c", "d"]).await;
    let mut feed = db.feed::<Job>("copy").start(Start::Snapshot).batch_rows(2);
    let mut copy = std::collections::BTreeMap::new();
    let mut was_snapshot = 0;
    for round in 0.. {
        let Some(batch) = feed.try_next_batch().await.unwrap() else {
            break;
        };
        was_snapshot += u32::from(batch.is_snapshot());
        for event in &batch {
            match &event.change {
                Change::Saved(job) => copy.insert(job.id, job.text.clone()),
                Change::Deleted(id) => copy.remove(id),
            };
        }
        batch.ack().await.unwrap();
        if round == 0 {
            execute(&db, "DELETE FROM job WHERE id = 7").await;
            execute(&db, "UPDATE job SET text = 'B' WHERE text = 'b'").await;
            execute(&db, "DELETE FROM job WHERE text = 'd'").await;
            add(&db, &["e"]).await;
        }
    }
    assert!(was_snapshot >= 2);
    let jobs = Job::query().all(&db).await.unwrap();
    let table = jobs.into_iter().map(|job| (job.id, job.text)).collect();
    assert_eq!(copy, table);
    assert!(copy.contains_key(&ids[0]) && !copy.contains_key(&7));
}

#[tokio::test]
async fn deletions_are_told_whoever_deletes_and_a_key_that_changes_is_one() {
    for mode in Mode::ALL {
        let db = opened(mode).await;
        let ids = add(&db, &["a", "b", "c", "d"]).await;
        let mut feed = db.feed::<Job>("deletions").start(Start::Now);
        feed.lag().await.unwrap();
        let mut ctx = db.context();
        let job = ctx.find::<Job>(ids[0]).await.unwrap().unwrap();
        ctx.remove(job);
        ctx.save_changes().await.unwrap();
        Job::query()
            .filter(Job::TEXT.eq("b"))
            .delete()
            .execute(&db)
            .await
            .unwrap();
        db.write(async |tx| {
            sqlx::query("UPDATE job SET id = 100 WHERE text = 'c'")
                .execute(&mut *tx)
                .await?;
            sqlx::query("DELETE FROM job WHERE text = 'd'")
                .execute(&mut *tx)
                .await?;
            // It is there again, in the same commit.
            sqlx::query("INSERT INTO job (id, text) VALUES (?, 'again')")
                .bind(ids[3])
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await
        .unwrap();
        let batch = feed.next_batch().await.unwrap();
        let mut expected = vec![
            format!("2 -{}", ids[0]),
            format!("3 -{}", ids[1]),
            format!("4 -{}", ids[2]),
            format!("4 -{}", ids[3]),
            "4 again".into(),
            "4 c".into(),
        ];
        expected[4..].sort();
        assert_eq!(told(&batch), expected, "{mode:?}");
    }
}

#[tokio::test]
async fn a_key_of_several_columns_is_told_of_too() {
    let db = opened(Mode::Inline).await;
    let mut ctx = db.context();
    for number in 1..=5 {
        ctx.add(Page {
            site: "a'b".into(),
            number,
            seq: CommitSeq(0),
        });
    }
    ctx.save_changes().await.unwrap();
    Page::query()
        .filter(Page::NUMBER.gt(1))
        .delete()
        .execute(&db)
        .await
        .unwrap();
    let mut feed = db.feed::<Page>("pages").batch_rows(2).split_commits();
    let mut all = Vec::new();
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        for event in &batch {
            all.push((event.is_deleted(), event.key()));
        }
        batch.ack().await.unwrap();
    }
    let key = |number| ("a'b".to_owned(), number);
    assert_eq!(
        all,
        [
            (false, key(1)),
            (true, key(2)),
            (true, key(3)),
            (true, key(4)),
            (true, key(5))
        ]
    );
}

/// Sessions delete and write side by side; the deletions are numbered as they are applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_delete_different_rows_do_not_conflict() {
    let db = opened(Mode::Inline).await;
    let ids = add(&db, &["a", "b", "c", "d"]).await;
    let mut feed = db.feed::<Job>("sessions").start(Start::Now);
    feed.lag().await.unwrap();
    let mut one = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut other = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    for (session, id) in [(&mut one, ids[0]), (&mut other, ids[1])] {
        let deleted = Job::query().filter(Job::ID.eq(id)).delete();
        assert_eq!(deleted.execute(&mut **session).await.unwrap(), 1);
    }
    other.commit().await.unwrap();
    one.commit().await.unwrap();
    let batch = feed.next_batch().await.unwrap();
    assert_eq!(
        told(&batch),
        [format!("2 -{}", ids[1]), format!("3 -{}", ids[0])]
    );
}

#[tokio::test]
async fn what_a_filter_leaves_out_is_passed() {
    let db = opened(Mode::Inline).await;
    let mut feed = db.feed::<Job>("some").filter(Job::TEXT.eq("wanted"));
    assert!(feed.try_next_batch().await.unwrap().is_none());
    for _ in 0..1100 {
        add(&db, &["other"]).await;
    }
    assert!(feed.try_next_batch().await.unwrap().is_none());
    let cursors = db.cursors().await.unwrap();
    assert_eq!((cursors[0].seq, cursors[0].behind), (1100, 0));
    add(&db, &["wanted"]).await;
    let lag = feed.lag().await.unwrap();
    assert_eq!((lag.commits, lag.rows), (1, 1));
    let batch = feed.next_batch().await.unwrap();
    assert_eq!(told(&batch), ["1101 wanted"]);
}

#[tokio::test]
async fn a_consumer_that_is_behind_by_too_much_is_told() {
    let db = opened(Mode::Inline).await;
    add(&db, &["a", "b"]).await;
    let mut slow = db.feed::<Job>("slow").start(Start::Now);
    let mut fast = db.feed::<Job>("fast").start(Start::Now);
    slow.lag().await.unwrap();
    fast.lag().await.unwrap();
    execute(&db, "DELETE FROM job WHERE text = 'a'").await;
    fast.next_batch().await.unwrap().ack().await.unwrap();
    let prune = |retention| db.prune_tombstones::<Job>(retention);
    let hour = Duration::from_hours(1);
    assert_eq!(prune(Retention::new(hour)).await.unwrap(), 0, "too young");
    assert_eq!(
        prune(Retention::new(Duration::ZERO)).await.unwrap(),
        0,
        "not seen by all"
    );
    assert_eq!(
        prune(Retention::new(Duration::ZERO).at_most(hour))
            .await
            .unwrap(),
        0
    );
    let most = Retention::new(Duration::ZERO).at_most(Duration::ZERO);
    assert_eq!(prune(most).await.unwrap(), 1);
    assert_eq!(kind_of_next(&mut slow).await, ErrorKind::CursorExpired);
    assert!(fast.try_next_batch().await.unwrap().is_none());
    slow.rewind(Start::Snapshot).await.unwrap();
    assert_eq!(told(&slow.next_batch().await.unwrap()), ["1 b"]);
    // One that has seen nothing has missed nothing.
    let mut new = db.feed::<Job>("new");
    assert_eq!(told(&new.next_batch().await.unwrap()), ["1 b"]);
    let refused = db.prune_tombstones::<Effect>(most).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Model);
}

#[tokio::test]
async fn a_backup_that_is_restored_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let db = opened(Mode::Inline).await;
    add(&db, &["a"]).await;
    let mut feed = db.feed::<Job>("mailer");
    let batch = feed.next_batch().await.unwrap();
    let position = batch.position();
    assert_eq!(position.to_string().parse(), Ok(position));
    batch.ack().await.unwrap();
    let backup = folder.path().join("restored.db");
    db.backup_to(&backup).await.unwrap();
    let restored = Database::open(&backup).await.unwrap();
    add(&restored, &["other"]).await;
    let mut feed = restored.feed::<Job>("mailer");
    assert_eq!(kind_of_next(&mut feed).await, ErrorKind::EpochChanged);
    let elsewhere = restored.feed::<Job>("new");
    let refused = elsewhere.start(Start::At(position)).try_next_batch().await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::EpochChanged);
    let refused = feed.rewind(Start::At(position)).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::EpochChanged);
    feed.rewind(Start::After(position.seq)).await.unwrap();
    let batch = feed.next_batch().await.unwrap();
    assert_eq!(told(&batch), ["2 other"]);
    let Position { epoch, .. } = batch.position();
    assert_ne!(epoch, position.epoch);
    // The original goes on.
    let mut feed = db.feed::<Job>("mailer");
    feed.rewind(Start::At(position)).await.unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
    let ahead = Position {
        seq: position.seq + 1,
        ..position
    };
    let refused = feed.rewind(Start::At(ahead)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::EpochChanged, "a plain copy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_waits_is_woken_by_a_commit_of_this_process() {
    for mode in Mode::ALL {
        let db = opened(mode).await;
        let mut feed = db.feed::<Job>("woken").look_every(Duration::from_hours(1));
        assert!(feed.try_next_batch().await.unwrap().is_none());
        let waiting =
            tokio::spawn(async move { feed.next_batch().await.map(|batch| told(&batch)) });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        add(&db, &["a"]).await;
        assert_eq!(waiting.await.unwrap().unwrap(), ["1 a"], "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_program_writes_is_told_with_the_triggers() {
    let db = opened(Mode::Inline).await;
    db.stamp_foreign_writes::<(Job,)>().await.unwrap();
    let mut feed = db
        .feed::<Job>("foreign")
        .look_every(Duration::from_millis(5));
    let told_of = async |feed: &mut anabranch::feed::Feed<Job>| {
        let batch = feed.next_batch().await.unwrap();
        batch.ack().await.unwrap();
        told(&batch)
    };
    assert!(feed.try_next_batch().await.unwrap().is_none());
    let other = outsider(db.path());
    other
        .execute("INSERT INTO job (id, text) VALUES (5, 'a')", [])
        .unwrap();
    assert_eq!(told_of(&mut feed).await, ["1 a"]);
    other.execute("UPDATE job SET text = 'b'", []).unwrap();
    assert_eq!(told_of(&mut feed).await, ["2 b"]);
    other.execute("DELETE FROM job", []).unwrap();
    assert_eq!(told_of(&mut feed).await, ["3 -5"]);
    other
        .execute("INSERT INTO job (id, text) VALUES (5, 'a')", [])
        .unwrap();
    other.execute("DELETE FROM job", []).unwrap();
    assert_eq!(told_of(&mut feed).await, ["5 -5"]);
    // And ours have one number for all.
    add(&db, &["c", "d"]).await;
    let batch = told_of(&mut feed).await;
    assert_eq!(batch.len(), 2);
    assert_eq!(batch[0].split(' ').next(), batch[1].split(' ').next());
}

#[tokio::test]
async fn a_stream_reads_ahead_and_ends_when_the_cursor_is_put_elsewhere() {
    let db = opened(Mode::Inline).await;
    for text in ["a", "b", "c"] {
        add(&db, &[text]).await;
    }
    let mut feed = db.feed::<Job>("stream").batch_rows(1);
    {
        let mut batches = feed.stream();
        let one = batches.try_next().await.unwrap().unwrap();
        let two = batches.try_next().await.unwrap().unwrap();
        assert_eq!(
            (told(&one), told(&two)),
            (vec!["1 a".into()], vec!["2 b".into()])
        );
        assert_eq!(
            two.ack().await.unwrap_err().kind(),
            ErrorKind::CursorMoved,
            "the first is first"
        );
        one.ack().await.unwrap();
        two.ack().await.unwrap();
        let three = batches.try_next().await.unwrap().unwrap();
        db.feed::<Job>("stream")
            .rewind(Start::Beginning)
            .await
            .unwrap();
        assert_eq!(
            three.ack().await.unwrap_err().kind(),
            ErrorKind::CursorMoved
        );
        let ended = batches.try_next().await.unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::CursorMoved, "{ended}");
        assert!(batches.next().await.is_none());
    }
    assert_eq!(told(&feed.next_batch().await.unwrap()), ["1 a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_dealt_with_is_tried_again_and_then_put_aside() {
    let db = opened(Mode::Inline).await;
    let ids = add(&db, &["good", "bad", "good"]).await;
    let retries = Retries::new()
        .attempts(3)
        .backoff(Duration::from_millis(1), Duration::from_millis(2));
    let handled = Arc::new(AtomicU32::new(0));
    let handle = |handled: Arc<AtomicU32>| {
        async move |event: &Event<Job>| {
            handled.fetch_add(1, Relaxed);
            match event.row() {
                Some(job) if job.text == "bad" => Err(io::Error::other("no such address").into()),
                _ => Ok(()),
            }
        }
    };
    let mut feed = db.feed::<Job>("each");
    let stopped = feed
        .each(retries, handle(Arc::clone(&handled)))
        .await
        .unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Application);
    assert_eq!(stopped.table(), Some("job"));
    assert_eq!(handled.load(Relaxed), 1 + 3);
    let running = tokio::spawn({
        let db = db.clone();
        let handle = handle(Arc::clone(&handled));
        async move {
            let mut feed = db.feed::<Job>("each");
            feed.each(retries.then(GiveUp::Park), handle).await
        }
    });
    let parked = async {
        until("it is put aside", async || {
            !db.feed::<Job>("each").parked(10).await.unwrap().is_empty()
        })
        .await;
        db.feed::<Job>("each").parked(10).await.unwrap()
    };
    let parked = tokio::select! {
        ended = running => panic!("{ended:?}"),
        parked = parked => parked,
    };
    assert_eq!(parked.len(), 1);
    assert_eq!(
        (parked[0].key, &*parked[0].reason),
        (ids[1], "no such address")
    );
    assert_eq!(
        parked[0].row.as_ref().unwrap().as_ref().unwrap().text,
        "bad"
    );
    assert!(
        feed.try_next_batch().await.unwrap().is_none(),
        "it goes on behind it"
    );
    assert_eq!(db.cursors().await.unwrap()[0].parked, 1);
    assert!(feed.forget(parked[0].id, &db).await.unwrap());
    assert!(!feed.forget(parked[0].id, &db).await.unwrap());
}

#[tokio::test]
async fn an_event_has_one_name_whenever_it_is_told() {
    let db = opened(Mode::Inline).await;
    add(&db, &["a"]).await;
    let id = async |name: &str| {
        let batch = db.feed::<Job>(name).next_batch().await.unwrap();
        batch.events()[0].id()
    };
    let first = id("one").await;
    assert_eq!(id("other").await, first);
    execute(&db, "UPDATE job SET text = 'b'").await;
    let second = id("one").await;
    assert_ne!(second, first);
    assert_ne!(second.to_string(), first.to_string());
}

#[derive(Debug, Entity)]
struct Bare {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

#[tokio::test]
async fn what_a_feed_needs_is_told_if_it_is_missing() {
    let db = opened(Mode::Inline).await;
    let unmade = db.feed::<Bare>("bare").try_next_batch().await.unwrap_err();
    assert_eq!(unmade.kind(), ErrorKind::Model, "{unmade}");
    db.create_tables::<Bare>().await.unwrap();
    let unindexed = db.feed::<Bare>("bare").try_next_batch().await.unwrap_err();
    assert_eq!(unindexed.kind(), ErrorKind::Model, "{unindexed}");
    assert!(unindexed.to_string().contains("index"), "{unindexed}");
    assert!(
        db.feed::<Job>("jobs")
            .try_next_batch()
            .await
            .unwrap()
            .is_none()
    );
    let taken = db.feed::<Page>("jobs").try_next_batch().await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Model, "{taken}");
}

/// What the compiler has to see: that tasks can be made of all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_a_feed_does_can_be_done_in_a_task() {
    let db = opened(Mode::Inline).await;
    add(&db, &["a"]).await;
    add(&db, &["b"]).await;
    let task = tokio::spawn(async move {
        let mut feed = db.feed::<Job>("task").batch_rows(1);
        feed.rewind(Start::Beginning).await.unwrap();
        assert_eq!(feed.lag().await.unwrap().rows, 2);
        let batch = feed.try_next_batch().await.unwrap().unwrap();
        batch.park(&batch.events()[0], "no", &db).await.unwrap();
        db.write(async |tx| batch.ack_in(&mut *tx).await)
            .await
            .unwrap();
        let parked = feed.parked(1).await.unwrap();
        assert!(feed.forget(parked[0].id, &db).await.unwrap());
        {
            let mut batches = feed.stream();
            batches
                .try_next()
                .await
                .unwrap()
                .unwrap()
                .ack()
                .await
                .unwrap();
        }
        assert_eq!(db.cursors().await.unwrap().len(), 1);
        db.remove_cursor("task").await.unwrap()
    });
    assert!(task.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_waits_is_told_that_the_database_is_closed() {
    for mode in Mode::ALL {
        let db = opened(mode).await;
        let mut feed = db.feed::<Job>("closed").look_every(Duration::MAX);
        assert!(feed.try_next_batch().await.unwrap().is_none());
        let waiting = tokio::spawn(async move { feed.next_batch().await.map(drop) });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        db.close().await.unwrap();
        assert_eq!(
            waiting.await.unwrap().unwrap_err().kind(),
            ErrorKind::Closed
        );
    }
}
