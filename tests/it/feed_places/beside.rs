//! Feeds beside others: other programs and processes, entities of the same table, filters.

use std::time::Duration;

use anabranch::{
    feed::{Retention, Start},
    prelude::*,
    query::Condition,
};
use anabranch_tests::{execute, outsider};
use rusqlite::backup::Backup;

use crate::feed_places::{Parcel, Stamp, opened, send, told};

/// The same table without tombstones, and with a filter.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "parcel", filter(far = Far::is_far))]
struct Far {
    #[entity(id)]
    id: i64,
    town: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

impl Far {
    fn is_far() -> Condition<Self> {
        Self::TOWN.ne("near")
    }
}

/// SQLite's own restore writes the copy into the file, which nobody opens after that.
#[tokio::test]
async fn a_backup_that_is_restored_into_the_open_file_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let db = opened().await;
    send(&db, "a").await;
    let mut feed = db.feed::<Parcel>("map");
    let batch = feed.next_batch().await.unwrap();
    db.backup_to(&copy).await.unwrap();
    batch.ack().await.unwrap();
    let source = outsider(&copy);
    let mut target = outsider(db.path());
    let backup = Backup::new(&source, &mut target).unwrap();
    backup.run_to_completion(100, Duration::ZERO, None).unwrap();
    drop(backup);
    let error = feed.try_next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EpochChanged);
    feed.accept_epoch().await.unwrap();
    let again = feed.next_batch().await.unwrap();
    assert_ne!(again.position().epoch, batch.position().epoch);
    assert!(!again.position().epoch.is_nil());
    again.ack().await.unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
    feed.rewind(Start::At(again.position())).await.unwrap();
    assert_eq!(db.last_commit().await.unwrap(), Some(again.position()));
}

/// What is listed has changed, and no table.
#[tokio::test]
async fn a_table_that_another_process_lists_is_numbered_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.db");
    let db = Database::open(&path).await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    execute(
        &db,
        "CREATE TABLE stamp (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL DEFAULT 0) STRICT",
    )
    .await;
    execute(&db, "CREATE INDEX stamp_seq ON stamp (seq)").await;
    send(&db, "a").await;
    let before = schema(&db);
    let other = Database::open(&path).await.unwrap();
    other.create_tables::<Stamp>().await.unwrap();
    assert_ne!(schema(&db), before, "others do not hear of it");
    let again = schema(&db);
    other.create_tables::<Stamp>().await.unwrap();
    assert_eq!(schema(&db), again, "there is nothing to hear of");
    execute(&db, "INSERT INTO stamp DEFAULT VALUES").await;
    assert_eq!(
        db.feed::<Stamp>("stamps").next_batch().await.unwrap().len(),
        1
    );
}

fn schema(db: &Database) -> i64 {
    let version = outsider(db.path()).query_row("PRAGMA schema_version", [], |row| row.get(0));
    version.unwrap()
}

#[tokio::test]
async fn one_table_that_another_program_changed_hides_no_other() {
    let db = opened().await;
    db.feed::<Parcel>("map").lag().await.unwrap();
    db.feed::<Stamp>("stamps").lag().await.unwrap();
    send(&db, "a").await;
    outsider(db.path())
        .execute_batch("ALTER TABLE stamp RENAME COLUMN seq TO number")
        .unwrap();
    let all = db.cursors().await.unwrap();
    let waiting: Vec<_> = all.iter().map(|cursor| cursor.waiting).collect();
    assert_eq!(waiting, [1, 0]);
}

#[tokio::test]
async fn what_is_put_aside_is_listed_with_its_row_whatever_filters_the_entity_has() {
    let db = opened().await;
    send(&db, "near").await;
    let mut feed = db.feed::<Far>("far");
    let batch = feed.next_batch().await.unwrap();
    batch.park(&batch.events()[0], "later", &db).await.unwrap();
    let parked = feed.parked(1).await.unwrap();
    assert_eq!(
        parked[0].row.as_ref().unwrap().as_ref().unwrap().town,
        "near"
    );
}

#[tokio::test]
async fn a_consumer_that_is_told_of_no_deletions_misses_none() {
    let db = opened().await;
    send(&db, "a").await;
    let mut feed = db.feed::<Far>("far").start(Start::After(0));
    feed.lag().await.unwrap();
    execute(&db, "DELETE FROM parcel").await;
    let all = Retention::new(Duration::ZERO).at_most(Duration::ZERO);
    assert_eq!(db.prune_tombstones::<Parcel>(all).await.unwrap(), 1);
    assert!(feed.try_next_batch().await.unwrap().is_none());
}

/// There is something to be told, and a mark that would be of use to nobody now.
#[tokio::test]
async fn a_mark_that_cannot_be_written_is_left_for_later() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Database::builder(folder.path().join("busy.db"));
    let db = builder.busy_timeout(Duration::ZERO).open().await.unwrap();
    db.create_tables::<(Parcel, Stamp)>().await.unwrap();
    let mut feed = db.feed::<Parcel>("map");
    feed.lag().await.unwrap();
    for _ in 0..1_001 {
        execute(&db, "INSERT INTO stamp DEFAULT VALUES").await;
    }
    let other = outsider(db.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
    assert_eq!(db.cursors().await.unwrap()[0].seq, 0);
    other.execute_batch("ROLLBACK").unwrap();
    assert!(feed.try_next_batch().await.unwrap().is_none());
    assert_eq!(db.cursors().await.unwrap()[0].seq, 1_001);
}

#[tokio::test]
async fn a_cursor_that_was_removed_is_not_made_anew_by_a_rewind_that_fails() {
    let db = opened().await;
    send(&db, "a").await;
    let mut feed = db.feed::<Parcel>("map");
    feed.lag().await.unwrap();
    db.remove_cursor("map").await.unwrap();
    for _ in 0..2 {
        let error = feed.try_next_batch().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        feed.rewind(Start::After(9)).await.unwrap_err();
    }
    feed.rewind(Start::Beginning).await.unwrap();
    assert_eq!(told(&feed.next_batch().await.unwrap()), ["a"]);
}

/// SQL can write it, and no entity have it: without a name it would be taken for another.
#[tokio::test]
async fn a_key_that_no_entity_can_have_is_told_of_before_anything_is_handed_over() {
    #[derive(Debug, Clone, PartialEq, Entity)]
    #[entity(tombstones)]
    struct Name {
        #[entity(id)]
        name: String,
        #[entity(commit_seq, index)]
        seq: CommitSeq,
    }
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Name>().await.unwrap();
    execute(
        &db,
        "INSERT INTO name (name) VALUES ('a' || char(0) || 'b'), ('c')",
    )
    .await;
    for start in [Start::Beginning, Start::Snapshot] {
        let mut feed = db.feed::<Name>(format!("{start:?}")).start(start);
        let error = feed.next_batch().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
        assert!(error.to_string().contains("name.name"), "{error}");
    }
    execute(&db, "DELETE FROM name WHERE name <> 'c'").await;
    let error = db.feed::<Name>("Beginning").next_batch().await.unwrap_err();
    assert!(error.to_string().contains("a deletion"), "{error}");
}
