//! Feeds: where a consumer stands, and how it goes on where it cannot.

mod beside;
mod each;

use std::time::Duration;

use anabranch::{
    feed::{Batch, Change, Feed, Retention, Start},
    prelude::*,
    value::Value,
};
use anabranch_tests::{execute, outsider, until};
use futures_util::StreamExt as _;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Parcel {
    #[entity(id)]
    id: i64,
    town: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Stamp {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

async fn opened() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Parcel, Stamp)>().await.unwrap();
    db
}

async fn send(db: &Database, town: &str) {
    let mut ctx = db.context();
    ctx.add(Parcel {
        id: 0,
        town: town.to_owned(),
        seq: CommitSeq(0),
    });
    ctx.save_changes().await.unwrap();
}

fn told(batch: &Batch<Parcel>) -> Vec<String> {
    let tell = |change: &Change<Parcel>| match change {
        Change::Saved(parcel) => parcel.town.clone(),
        Change::Deleted(id) => format!("-{id}"),
    };
    let events = batch.events().iter();
    events.map(|event| tell(&event.change)).collect()
}

async fn next(feed: &mut Feed<Parcel>) -> Vec<String> {
    told(&feed.try_next_batch().await.unwrap().unwrap())
}

async fn refused(feed: &mut Feed<Parcel>, kind: ErrorKind, says: &str) {
    let error = feed.try_next_batch().await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[tokio::test]
async fn a_consumer_goes_on_within_a_commit_of_a_restored_file() {
    let db = opened().await;
    execute(
        &db,
        "INSERT INTO parcel (id, town) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )
    .await;
    let mut feed = db.feed::<Parcel>("map").batch_rows(2).split_commits();
    let batch = feed.next_batch().await.unwrap();
    assert!(batch.is_split());
    batch.ack().await.unwrap();
    // There is no other epoch yet.
    feed.accept_epoch().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("restored.db");
    db.backup_to(&path).await.unwrap();
    let restored = Database::open(&path).await.unwrap();
    send(&restored, "d").await;

    let mut feed = (restored.feed::<Parcel>("map"))
        .batch_rows(2)
        .split_commits();
    refused(&mut feed, ErrorKind::EpochChanged, "feed.accept_epoch").await;
    feed.accept_epoch().await.unwrap();
    assert_eq!(next(&mut feed).await, ["c"]);
    // The rest of the commit, and then the next one.
    feed.next_batch().await.unwrap().ack().await.unwrap();
    assert_eq!(next(&mut feed).await, ["d"]);
    // Batches of the file that was there before are not of this one.
    let late = batch.ack().await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::CursorMoved);
}

#[tokio::test]
async fn a_place_after_the_last_commit_is_not_gone_on_from() {
    let db = opened().await;
    send(&db, "a").await;
    let mut feed = db.feed::<Parcel>("map");
    feed.next_batch().await.unwrap().ack().await.unwrap();
    execute(&db, "UPDATE anabranch_cursors SET seq = 9").await;
    refused(&mut feed, ErrorKind::EpochChanged, "the cursor map").await;
    let error = feed.accept_epoch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("feed.rewind"), "{error}");
    feed.rewind(Start::Snapshot).await.unwrap();
    assert_eq!(next(&mut feed).await, ["a"]);
}

#[tokio::test]
async fn a_cursor_that_was_removed_is_not_made_anew_behind_ones_back() {
    let db = opened().await;
    send(&db, "a").await;
    let mut feed = db.feed::<Parcel>("mailer");
    feed.next_batch().await.unwrap().ack().await.unwrap();
    assert!(db.remove_cursor("mailer").await.unwrap());
    for _ in 0..2 {
        refused(&mut feed, ErrorKind::Refused, "was removed").await;
        assert!(feed.lag().await.unwrap_err().kind() == ErrorKind::Refused);
    }
    assert!(db.cursors().await.unwrap().is_empty());
    feed.rewind(Start::Now).await.unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
    assert_eq!(next(&mut db.feed::<Parcel>("other")).await, ["a"]);
}

#[tokio::test]
async fn a_start_after_the_last_commit_is_refused_and_says_which_that_is() {
    let db = opened().await;
    send(&db, "a").await;
    for seq in [2, i64::MAX, -1, i64::MIN] {
        let mut feed = db.feed::<Parcel>("map").start(Start::After(seq));
        for _ in 0..2 {
            refused(
                &mut feed,
                ErrorKind::Refused,
                "the last one of this file is 1",
            )
            .await;
        }
        assert!(!db.remove_cursor("map").await.unwrap());
        let mut other = db.feed::<Parcel>("there");
        other.lag().await.unwrap();
        let error = other.rewind(Start::After(seq)).await.unwrap_err();
        assert!(
            error.to_string().contains(&format!("after commit {seq}:")),
            "{error}"
        );
        assert_eq!(next(&mut other).await, ["a"]);
    }
}

/// Told each time with its key, so that nothing is passed in silence; a filter leaves it out.
#[tokio::test]
async fn a_row_that_cannot_be_read_is_told_of_until_it_is_mended_or_left_out() {
    let db = opened().await;
    for town in ["a", "b", "c"] {
        send(&db, town).await;
    }
    execute(&db, "DROP TABLE parcel").await;
    execute(
        &db,
        "CREATE TABLE parcel (id INTEGER PRIMARY KEY NOT NULL, town ANY NOT NULL, seq INTEGER NOT NULL DEFAULT 0)",
    )
    .await;
    execute(&db, "CREATE INDEX by_seq ON parcel (seq)").await;
    db.create_tables::<Parcel>().await.unwrap();
    for row in [
        "INSERT INTO parcel (id, town) VALUES (1, 'd')",
        "INSERT INTO parcel (id, town) VALUES (2, x'00')",
        "INSERT INTO parcel (id, town) VALUES (3, 'e')",
    ] {
        execute(&db, row).await;
    }
    let mut feed = db.feed::<Parcel>("map").start(Start::Now);
    feed.rewind(Start::After(3)).await.unwrap();
    let error = feed.try_next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(
        (error.table(), error.column()),
        (Some("parcel"), Some("town"))
    );
    assert_eq!(error.key(), [Value::Integer(2)]);
    assert_eq!(
        feed.try_next_batch().await.unwrap_err().kind(),
        ErrorKind::Decode
    );
    let mut others = db.feed::<Parcel>("map").filter(Parcel::ID.ne(2));
    assert_eq!(next(&mut others).await, ["d", "e"]);
    execute(&db, "UPDATE parcel SET town = 'm' WHERE id = 2").await;
    assert_eq!(next(&mut feed).await, ["d", "e", "m"]);
}

/// Its deletions of before the triggers have no number, and are told to nobody.
#[tokio::test]
async fn deletions_of_other_programs_without_triggers_are_forgotten_by_their_age() {
    let db = opened().await;
    send(&db, "a").await;
    send(&db, "b").await;
    let mut feed = db.feed::<Parcel>("slow");
    feed.lag().await.unwrap();
    outsider(db.path())
        .execute("DELETE FROM parcel WHERE town = 'a'", [])
        .unwrap();
    execute(&db, "DELETE FROM parcel WHERE town = 'b'").await;
    let kept = async || {
        let kept =
            anabranch::query::raw::<i64>("SELECT count(*) FROM anabranch_deleted_parcel", ());
        kept.one(&db).await.unwrap()
    };
    assert_eq!(kept().await, 2);
    let prune = |age| db.prune_tombstones::<Parcel>(Retention::new(age));
    assert_eq!(
        prune(Duration::from_hours(1)).await.unwrap(),
        0,
        "too young"
    );
    assert_eq!(
        prune(Duration::ZERO).await.unwrap(),
        1,
        "the one that nobody waits for"
    );
    assert_eq!(kept().await, 1);
    assert_eq!(next(&mut feed).await, ["-2"]);
}

#[tokio::test]
async fn what_waits_for_each_cursor_is_counted_by_its_own_table() {
    let db = opened().await;
    for name in ["first", "second"] {
        db.feed::<Parcel>(name).lag().await.unwrap();
    }
    db.feed::<Stamp>("quiet").lag().await.unwrap();
    for town in ["a", "b", "c"] {
        send(&db, town).await;
    }
    let mut second = db.feed::<Parcel>("second");
    second.next_batch().await.unwrap().ack().await.unwrap();
    execute(&db, "DELETE FROM parcel WHERE town = 'a'").await;
    let waiting = async || {
        let cursors = db.cursors().await.unwrap();
        for cursor in &cursors {
            assert_eq!(cursor.waits.is_some(), cursor.waiting > 0, "{cursor:?}");
        }
        let waiting = |cursor: anabranch::feed::CursorState| (cursor.name, cursor.waiting);
        cursors.into_iter().map(waiting).collect::<Vec<_>>()
    };
    let expected = |counts: [u64; 3]| {
        let names = ["first", "quiet", "second"].map(str::to_owned);
        names.into_iter().zip(counts).collect::<Vec<_>>()
    };
    assert_eq!(waiting().await, expected([3, 0, 1]));
    let lag = db.feed::<Parcel>("first").lag().await.unwrap();
    assert_eq!((lag.commits, lag.rows, lag.deletions), (4, 2, 1));
    // Tables that are gone have nothing to tell.
    execute(&db, "DROP TABLE parcel").await;
    execute(&db, "DROP TABLE anabranch_deleted_parcel").await;
    assert_eq!(waiting().await, expected([0, 0, 0]));
}

/// As a program may that copies rows of another file.
#[tokio::test]
async fn a_row_with_the_number_of_no_commit_is_told_of_until_it_has_one_of_its_own() {
    let db = opened().await;
    send(&db, "a").await;
    outsider(db.path())
        .execute(
            "INSERT INTO parcel (id, town, seq) VALUES (7, 'x', 5), (8, 'y', 9223372036854775807), (9, 'z', -4)",
            [],
        )
        .unwrap();
    for start in [Start::Beginning, Start::Snapshot] {
        let mut feed = db.feed::<Parcel>("map");
        feed.rewind(start).await.unwrap();
        let batch = feed.try_next_batch().await.unwrap().unwrap();
        assert_eq!(told(&batch)[0], "a");
        batch.ack().await.unwrap();
        for _ in 0..2 {
            let error = feed.try_next_batch().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Model, "{error}");
            assert_eq!(
                (error.table(), error.column()),
                (Some("parcel"), Some("seq"))
            );
            assert_eq!(error.key(), [Value::Integer(7)]);
        }
    }
    execute(&db, "UPDATE parcel SET town = town WHERE id > 6").await;
    let mut feed = db.feed::<Parcel>("map");
    assert_eq!(next(&mut feed).await, ["x", "y", "z"]);
    feed.next_batch().await.unwrap().ack().await.unwrap();
    execute(
        &db,
        "INSERT INTO anabranch_deleted_parcel (id, anabranch_seq) VALUES (20, 9)",
    )
    .await;
    let stamped = feed.try_next_batch().await.unwrap().unwrap();
    assert_eq!(
        told(&stamped),
        ["-20"],
        "this one the library gave a number"
    );
    stamped.ack().await.unwrap();
    outsider(db.path())
        .execute(
            "INSERT INTO anabranch_deleted_parcel (id, anabranch_seq) VALUES (21, 9)",
            [],
        )
        .unwrap();
    let error = feed.try_next_batch().await.unwrap_err();
    assert_eq!(error.table(), Some("anabranch_deleted_parcel"));
}

/// Another program takes away what a feed needs while it runs.
#[tokio::test]
async fn deletions_that_nobody_writes_down_any_more_are_not_passed_in_silence() {
    for (taken_away, says) in [
        ("DROP TRIGGER anabranch_parcel_deleted", "triggers"),
        ("DROP TRIGGER anabranch_parcel_rekeyed", "triggers"),
        ("DROP INDEX parcel_seq", "index"),
        (
            "DELETE FROM anabranch_stamped; CREATE TABLE t (x)",
            "number",
        ),
    ] {
        let db = opened().await;
        send(&db, "a").await;
        let mut feed = db.feed::<Parcel>("map");
        feed.next_batch().await.unwrap().ack().await.unwrap();
        assert!(feed.try_next_batch().await.unwrap().is_none());
        let other = outsider(db.path());
        other.execute_batch("CREATE TABLE other (x)").unwrap();
        assert!(feed.try_next_batch().await.unwrap().is_none());
        other.execute_batch(taken_away).unwrap();
        other.execute_batch("DELETE FROM parcel").unwrap();
        refused(&mut feed, ErrorKind::Model, says).await;
        refused(&mut feed, ErrorKind::Model, says).await;
        db.create_tables::<Parcel>().await.unwrap();
    }
}

/// There was nothing yet when it began.
#[tokio::test]
async fn commits_after_an_empty_start_are_no_rows_of_the_start() {
    let db = opened().await;
    let mut feed = db.feed::<Parcel>("map").start(Start::Snapshot);
    feed.lag().await.unwrap();
    send(&db, "a").await;
    send(&db, "b").await;
    let batch = feed.next_batch().await.unwrap();
    assert!(batch.is_empty() && batch.ends_snapshot());
    batch.ack().await.unwrap();
    let batch = feed.next_batch().await.unwrap();
    assert!(!batch.is_snapshot() && !batch.is_split());
    assert_eq!(told(&batch), ["a", "b"]);
    assert_eq!(batch.commits().count(), 2);
    feed.rewind(Start::Snapshot).await.unwrap();
    let batch = feed.next_batch().await.unwrap();
    assert!(batch.ends_snapshot() && batch.len() == 2);
    // What was left for the second page is gone.
    let mut feed = db.feed::<Parcel>("map").batch_rows(1);
    let first = feed.next_batch().await.unwrap();
    assert!(first.is_snapshot() && !first.ends_snapshot());
    first.ack().await.unwrap();
    execute(&db, "DELETE FROM parcel WHERE town = 'b'").await;
    let second = feed.next_batch().await.unwrap();
    assert!(second.is_empty() && second.ends_snapshot());
    second.ack().await.unwrap();
    assert_eq!(next(&mut feed).await, ["-2"]);
}

#[tokio::test]
async fn a_backup_that_is_put_in_place_twice_is_another_file_each_time() {
    let db = opened().await;
    send(&db, "a").await;
    db.feed::<Parcel>("map").lag().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup.db");
    db.backup_to(&backup).await.unwrap();
    let mut names = Vec::new();
    for day in ["monday", "tuesday"] {
        let path = folder.path().join(format!("{day}.db"));
        std::fs::copy(&backup, &path).unwrap();
        for _ in 0..2 {
            // Opened again it is the same file.
            let restored = Database::open(&path).await.unwrap();
            let mut feed = restored.feed::<Parcel>("map");
            if names.len().is_multiple_of(2) {
                refused(&mut feed, ErrorKind::EpochChanged, "feed.accept_epoch").await;
                feed.accept_epoch().await.unwrap();
            }
            let batch = feed.next_batch().await.unwrap();
            names.push((batch.events()[0].id(), batch.position().epoch));
            restored.close().await.unwrap();
        }
    }
    assert_eq!(names[0], names[1]);
    assert_eq!(names[2], names[3]);
    assert_ne!(names[0].0, names[2].0);
    assert_ne!(names[0].1, names[2].1);
}

/// Else it would seem to wait for ever for what it never gets.
#[tokio::test]
async fn a_place_moves_on_past_what_its_filter_leaves_out() {
    let db = opened().await;
    let waits = async || db.cursors().await.unwrap()[0].waiting;
    let mut feed = (db.feed::<Parcel>("map"))
        .filter(Parcel::TOWN.ne("x"))
        .look_every(Duration::MAX);
    assert!(feed.try_next_batch().await.unwrap().is_none());
    let db = db.clone();
    let meanwhile = async {
        for _ in 0..3 {
            send(&db, "x").await;
        }
        assert_eq!(waits().await, 3);
        until("it is past them", async || waits().await == 0).await;
        send(&db, "a").await;
    };
    let (batch, ()) = tokio::join!(feed.next_batch(), meanwhile);
    assert_eq!(told(&batch.unwrap()), ["a"]);
}

#[tokio::test]
async fn with_what_a_consumer_fails_is_in_the_list_of_all() {
    let db = opened().await;
    send(&db, "a").await;
    for name in ["expired", "well"] {
        let mut feed = db.feed::<Parcel>(name).start(Start::Now);
        feed.lag().await.unwrap();
    }
    execute(&db, "DELETE FROM parcel").await;
    let mut well = db.feed::<Parcel>("well");
    well.next_batch().await.unwrap().ack().await.unwrap();
    let at_once = Retention::new(Duration::ZERO).at_most(Duration::ZERO);
    assert_eq!(db.prune_tombstones::<Parcel>(at_once).await.unwrap(), 1);
    let fails = async || {
        let cursors = db.cursors().await.unwrap();
        let fails = cursors.iter().map(|cursor| cursor.fails_with);
        fails.collect::<Vec<_>>()
    };
    assert_eq!(fails().await, [Some(ErrorKind::CursorExpired), None]);
    let mut expired = db.feed::<Parcel>("expired");
    refused(
        &mut expired,
        ErrorKind::CursorExpired,
        "behind for too long",
    )
    .await;
    assert!(well.try_next_batch().await.unwrap().is_none());
    assert!(db.renew_epoch().await.unwrap());
    assert_eq!(fails().await, [Some(ErrorKind::EpochChanged); 2]);
    // Also one that had nothing to look for.
    refused(&mut well, ErrorKind::EpochChanged, "feed.accept_epoch").await;
    execute(
        &db,
        "UPDATE anabranch_cursors SET epoch = (SELECT epoch FROM anabranch_epoch), inside = 'odd'",
    )
    .await;
    let bare = db.cursors().await.unwrap();
    assert_eq!(bare[1].fails_with, Some(ErrorKind::Decode));
    well.rewind(Start::Now).await.unwrap();
    assert!(well.try_next_batch().await.unwrap().is_none());
}

/// Where nothing was told for long the cursor is moved on, and what a stream has read up to is behind it.
#[tokio::test]
async fn a_stream_acknowledges_also_after_its_place_was_moved_on() {
    for is_filtered in [false, true] {
        let db = opened().await;
        let mut feed = db
            .feed::<Parcel>("map")
            .look_every(Duration::from_millis(1));
        if is_filtered {
            feed = feed.filter(Parcel::TOWN.ne("x"));
        }
        let mut batches = feed.stream();
        for round in ["a", "b", "c"] {
            send(&db, round).await;
            let batch = batches.next().await.unwrap().unwrap();
            assert_eq!(told(&batch), [round]);
            batch.ack().await.unwrap();
            let acked = batch.position().seq;
            let meanwhile = async {
                if is_filtered {
                    send(&db, "x").await;
                } else {
                    number(&db, 1_001).await;
                }
                until("its place was moved on", async || {
                    db.cursors().await.unwrap()[0].seq > acked
                })
                .await;
            };
            tokio::select! {
                found = batches.next() => panic!("{found:?}"),
                () = meanwhile => {}
            }
        }
    }
}

/// So many commits of another table.
async fn number(db: &Database, commits: usize) {
    for _ in 0..commits {
        execute(db, "INSERT INTO stamp DEFAULT VALUES").await;
    }
}

/// What was committed at the start may not be taken yet: an application that cleans up by the least number keeps it.
#[tokio::test]
async fn a_consumer_in_its_snapshot_has_acknowledged_nothing() {
    let db = opened().await;
    for town in ["a", "b", "c"] {
        send(&db, town).await;
    }
    let mut feed = db
        .feed::<Parcel>("map")
        .start(Start::Snapshot)
        .batch_rows(1);
    let state = async || db.cursors().await.unwrap().remove(0);
    feed.next_batch().await.unwrap().ack().await.unwrap();
    let within = state().await;
    assert!(within.is_in_snapshot && within.waits.is_some());
    assert_eq!((within.seq, within.behind, within.waiting), (0, 3, 3));
    for town in ["b", "c"] {
        let batch = feed.next_batch().await.unwrap();
        assert_eq!(told(&batch), [town]);
        batch.ack().await.unwrap();
    }
    let after = state().await;
    assert!(!after.is_in_snapshot && after.waits.is_none());
    assert_eq!((after.seq, after.behind, after.waiting), (3, 0, 0));
}
