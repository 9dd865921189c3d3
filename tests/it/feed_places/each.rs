//! A feed that hands over event by event.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anabranch::{
    feed::{Feed, GiveUp, Park, Retries, Start},
    prelude::*,
};
use anabranch_tests::{execute, outsider, until};
use tokio::sync::Notify;

use crate::feed_places::{Parcel, opened, send};

/// The towns that were handed over until this one, at which it is dropped; and why, if it ended before.
async fn each_until(
    mut feed: Feed<Parcel>,
    retries: Retries,
    until: &str,
) -> (String, Option<ErrorKind>) {
    let handed = Mutex::new(Vec::new());
    let reached = Notify::new();
    let each = feed.each(retries, async |event| {
        let town = &event.row().unwrap().town;
        handed.lock().unwrap().push(town.clone());
        if town == until {
            reached.notify_one();
            std::future::pending::<()>().await;
        }
        match &**town {
            "bad" => Err("no such town".into()),
            _ => Ok(()),
        }
    });
    let ended = tokio::select! {
        ended = each => Some(ended.unwrap_err().kind()),
        () = reached.notified() => None,
    };
    (handed.into_inner().unwrap().join(" "), ended)
}

/// What was handed over of a batch is not handed over again, but for the commit that was not done.
#[tokio::test]
async fn commits_that_are_done_are_acknowledged_before_the_batch_is() {
    let db = opened().await;
    execute(
        &db,
        "INSERT INTO parcel (id, town) VALUES (1, 'a'), (2, 'b')",
    )
    .await;
    for town in ["c", "bad", "e"] {
        send(&db, town).await;
    }
    execute(
        &db,
        "INSERT INTO parcel (id, town) VALUES (8, 'f'), (9, 'g')",
    )
    .await;
    let once = Retries::new().attempts(1);
    let run = async |name: &str, ack_every, retries, until: &str| {
        let feed = db.feed::<Parcel>(name).ack_every(ack_every);
        each_until(feed, retries, until).await
    };
    let (zero, long) = (Duration::ZERO, Duration::MAX);
    let stopped = Some(ErrorKind::Application);
    // One that stops, whatever the interval, goes on at its commit.
    for (name, ack_every) in [("stops", zero), ("stops late", long)] {
        let first = run(name, ack_every, once, "").await;
        assert_eq!(first, ("a b c bad".into(), stopped));
        assert_eq!(
            run(name, ack_every, once, "").await,
            ("bad".into(), stopped)
        );
    }
    // One that is dropped goes on behind what was acknowledged.
    let park = once.then(GiveUp::Park);
    let first = run("dropped", zero, park, "f").await;
    assert_eq!(first, ("a b c bad e f".into(), None));
    let parked = db.feed::<Parcel>("dropped").parked(9).await.unwrap();
    assert_eq!(parked.len(), 1, "with the commit that it is of");
    assert_eq!(run("dropped", zero, park, "g").await.0, "f g");
    assert_eq!(
        run("dropped late", long, park, "f").await.0,
        "a b c bad e f"
    );
    assert!(
        db.feed::<Parcel>("dropped late")
            .parked(9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        run("dropped late", long, park, "g").await.0,
        "a b c bad e f g"
    );
    // Rows at the start are in no order of commits.
    let mut rows = db.feed::<Parcel>("rows").start(Start::Snapshot);
    rows.lag().await.unwrap();
    assert_eq!(run("rows", zero, once, "").await.0, "a b c bad");
    assert_eq!(run("rows", zero, once, "").await.0, "a b c bad");
}

#[tokio::test]
async fn an_event_of_no_use_is_put_aside_at_once_however_long_others_are_tried() {
    let db = opened().await;
    for town in ["away", "bad", "c"] {
        send(&db, town).await;
    }
    let tried = Mutex::new(Vec::new());
    let mut feed = db.feed::<Parcel>("map");
    let retries = Retries::new()
        .attempts(u32::MAX)
        .backoff(Duration::ZERO, Duration::ZERO);
    let is_done = Notify::new();
    let each = feed.each(retries, async |event| {
        let town = &event.row().unwrap().town;
        let before = {
            let mut tried = tried.lock().unwrap();
            tried.push(town.clone());
            tried.len()
        };
        match &**town {
            "away" if before < 50 => Err("it is away".into()),
            "bad" => Err(Park::because("no such town").into()),
            "c" => {
                is_done.notify_one();
                std::future::pending().await
            }
            _ => Ok(()),
        }
    });
    tokio::select! {
        ended = each => panic!("{ended:?}"),
        () = is_done.notified() => {}
    }
    let tried = tried.into_inner().unwrap();
    assert_eq!(tried.iter().filter(|town| *town == "away").count(), 50);
    assert_eq!(tried[50..], ["bad", "c"]);
    let mut feed = db.feed::<Parcel>("map").ack_every(Duration::ZERO);
    let stopped = feed.each(Retries::new().attempts(1), async |event| {
        match &*event.row().unwrap().town {
            "bad" => Err(Park::because("no such town").into()),
            "c" => Err("it is closed".into()),
            _ => Ok(()),
        }
    });
    let stopped = stopped.await.unwrap_err();
    let text = stopped.to_string();
    assert!(
        text.contains("the feed map stopped at a change of commit 3"),
        "{text}"
    );
    assert!(text.ends_with(": it is closed"), "{text}");
    let parked = feed.parked(9).await.unwrap();
    assert_eq!((parked[0].key, &*parked[0].reason), (2, "no such town"));
    let all = db.feed::<Parcel>("all").next_batch().await.unwrap();
    assert_eq!(parked[0].event_id, all.events()[1].id());
}

#[tokio::test]
async fn what_is_put_aside_is_listed_whatever_became_of_its_row() {
    let db = opened().await;
    for town in ["a", "b", "c"] {
        send(&db, town).await;
    }
    let all = db.feed::<Parcel>("all").next_batch().await.unwrap();
    for event in &all {
        all.park(event, "later", &db).await.unwrap();
    }
    execute(
        &db,
        "UPDATE parcel SET town = CAST(x'ff' AS TEXT) WHERE id = 1",
    )
    .await;
    execute(&db, "DELETE FROM parcel WHERE id = 2").await;
    let feed = db.feed::<Parcel>("all");
    let parked = feed.parked(9).await.unwrap();
    let unread = parked[0].row.as_ref().unwrap_err();
    assert_eq!(unread.kind(), ErrorKind::Decode);
    assert!(parked[1].row.as_ref().unwrap().is_none());
    assert!(parked[2].row.as_ref().unwrap().is_some());
    let last = feed.parked_after(parked[1].id, 9).await.unwrap();
    assert_eq!((last.len(), last[0].id), (1, parked[2].id));
    assert!(feed.forget(parked[0].id, &db).await.unwrap());
}

/// The closure borrows what it captures, and the task can be moved between threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_one_name_go_on_behind_each_other() {
    let db = opened().await;
    let dealt = Arc::new(Mutex::new(BTreeSet::new()));
    let workers = [(); 2].map(|()| {
        let (db, dealt) = (db.clone(), Arc::clone(&dealt));
        tokio::spawn(async move {
            let mut feed = db.feed::<Parcel>("two").batch_rows(3);
            feed.each(Retries::new(), async |event| {
                tokio::task::yield_now().await;
                dealt.lock().unwrap().insert(event.key());
                Ok(())
            })
            .await
        })
    });
    for town in 0..300 {
        send(&db, &town.to_string()).await;
    }
    until("all are dealt with", async || {
        dealt.lock().unwrap().len() == 300
    })
    .await;
    for worker in workers {
        assert!(!worker.is_finished());
        worker.abort();
    }
}

/// The slower one of two has nothing to put aside: the faster one dealt with it.
#[tokio::test]
async fn what_is_parked_by_one_that_was_too_slow_is_not_kept() {
    let db = opened().await;
    send(&db, "a").await;
    let slow = db.feed::<Parcel>("map").next_batch().await.unwrap();
    let fast = db.feed::<Parcel>("map").next_batch().await.unwrap();
    let feed = db.feed::<Parcel>("map");
    let faster = Mutex::new(Some(fast));
    // It is overtaken while it deals with the event.
    let mut worker = db.feed::<Parcel>("map");
    let overtaken = Notify::new();
    let each = worker.each(Retries::new(), async |event| {
        if event.key() == 2 {
            overtaken.notify_one();
            return std::future::pending().await;
        }
        let fast = faster.lock().unwrap().take();
        fast.unwrap().ack().await?;
        Err(Park::because("no such town").into())
    });
    let next = async {
        until("it was overtaken", async || {
            faster.lock().unwrap().is_none()
        })
        .await;
        send(&db, "b").await;
        overtaken.notified().await;
    };
    tokio::select! {
        ended = each => panic!("{ended:?}"),
        () = next => {}
    }
    assert!(feed.parked(9).await.unwrap().is_empty());
    let late = slow
        .park(&slow.events()[0], "no such town", &db)
        .await
        .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::CursorMoved);
    assert!(feed.parked(9).await.unwrap().is_empty());
}

/// Another program holds the write lock for longer than is waited for it.
#[tokio::test]
async fn each_waits_for_what_passes_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Database::builder(folder.path().join("busy.db"));
    let db = builder.busy_timeout(Duration::ZERO).open().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    send(&db, "a").await;
    db.feed::<Parcel>("another").lag().await.unwrap();
    let other = outsider(db.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut feed = db.feed::<Parcel>("map");
    let retries = Retries::new().backoff(Duration::from_millis(1), Duration::from_millis(1));
    let few = feed.each(retries.attempts(3), async |_| Ok(())).await;
    assert_eq!(
        few.unwrap_err().kind(),
        ErrorKind::Busy,
        "it has no cursor yet"
    );
    let (before, handed) = (db.statistics().refused, AtomicU64::new(0));
    let refused = async || {
        until("it was refused again and again", async || {
            db.statistics().refused > before + 6 * (1 + handed.load(Relaxed))
        })
        .await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let each = feed.each(retries.attempts(u32::MAX), async |_| {
        // Its acknowledgement is refused now.
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        handed.fetch_add(1, Relaxed);
        Ok(())
    });
    let meanwhile = async {
        refused().await;
        until("it is handed over", async || handed.load(Relaxed) == 1).await;
        refused().await;
        until("it is acknowledged", async || {
            let all = db.cursors().await.unwrap();
            all.iter()
                .any(|cursor| cursor.name == "map" && cursor.waiting == 0)
        })
        .await;
    };
    tokio::select! {
        ended = each => panic!("{ended:?}"),
        () = meanwhile => {}
    }
    assert_eq!(handed.load(Relaxed), 1);
}

/// It is not acknowledged, and all of it comes again.
#[tokio::test]
async fn what_was_put_aside_of_a_commit_that_is_not_done_is_not_kept() {
    let db = opened().await;
    send(&db, "a").await;
    execute(
        &db,
        "INSERT INTO parcel (id, town) VALUES (2, 'b'), (3, 'c')",
    )
    .await;
    let retries = Retries::new().attempts(1);
    let mut feed = db.feed::<Parcel>("map");
    let stopped = feed.each(retries, async |event| match event.key() {
        2 => Err(Park::because("no such town").into()),
        3 => Err("no such house".into()),
        _ => Ok(()),
    });
    assert_eq!(stopped.await.unwrap_err().kind(), ErrorKind::Application);
    assert!(db.feed::<Parcel>("map").parked(9).await.unwrap().is_empty());
    assert_eq!(
        db.feed::<Parcel>("map").next_batch().await.unwrap().len(),
        2
    );
}
