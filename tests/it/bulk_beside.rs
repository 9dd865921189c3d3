//! Bulk operations beside whatever else goes on: dropped in the queue, sources that write, triggers and views, and keys
//! that sessions were given.

use std::{
    ops::ControlFlow,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anabranch::{
    prelude::*,
    query::{Over, row_number},
};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
    start, until,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "items")]
struct Item {
    #[entity(id)]
    id: i64,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "counted")]
struct Counted {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(version)]
    version: i64,
}

fn texts(count: i64) -> impl Iterator<Item = Note> + Send {
    (0..count).map(|n| note(format!("{n}")))
}

fn named(id: i64, name: &str) -> Item {
    Item {
        id,
        name: name.to_owned(),
    }
}

async fn with(schema: &[&'static str]) -> Database {
    let db = notes(Mode::Inline).await;
    for statement in schema {
        execute(&db, statement).await;
    }
    db
}

async fn count(db: &Database) -> u64 {
    Note::query().count(db).await.unwrap()
}

async fn items(db: &Database) -> Vec<Item> {
    Item::query()
        .order_by(Item::ID.asc())
        .all(db)
        .await
        .unwrap()
}

/// SQLite gave such rows NULL for a key, and no query could read them.
#[tokio::test]
async fn rows_without_keys_are_refused_where_sqlite_gives_none() {
    for key in ["INT PRIMARY KEY", "BIGINT PRIMARY KEY"] {
        let db = notes(Mode::Inline).await;
        let other = anabranch_tests::outsider(db.path());
        other
            .execute_batch(&format!(
                "CREATE TABLE items (id {key}, name TEXT NOT NULL);
                 INSERT INTO items VALUES (5, 'e'); INSERT INTO note VALUES (7, 'tea'), (8, 'jam')"
            ))
            .unwrap();
        let copy = || Note::query().select(Note::TEXT).insert_into(Item::NAME);
        let refused = copy().execute(&db).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Model, "{key}: {refused}");
        assert_eq!(
            (refused.table(), refused.column()),
            (Some("items"), Some("id"))
        );
        assert!(refused.to_string().contains("name the column"), "{refused}");
        let in_a_session = db
            .concurrent(async |s| copy().execute(&mut *s).await)
            .await
            .unwrap_err();
        assert_eq!(in_a_session.kind(), ErrorKind::Model);
        let in_a_transaction = db
            .write(async |tx| copy().returning(Item::NAME).all(&mut *tx).await)
            .await
            .unwrap_err();
        assert_eq!(in_a_transaction.kind(), ErrorKind::Model);

        // As it says; the others are given keys, as ever.
        let largest = Item::query().max(Item::ID, &db).await.unwrap().unwrap();
        let number = row_number().over(Over::all().order_by([Note::ID.asc()]));
        let keyed = Note::query().select((number + largest, Note::TEXT));
        let keyed = keyed.insert_into((Item::ID, Item::NAME));
        assert_eq!(keyed.execute(&db).await.unwrap(), 2);
        db.bulk_insert_optimized([named(0, "cake")]).await.unwrap();
        let keys: Vec<_> = items(&db).await.iter().map(|item| item.id).collect();
        assert_eq!(keys, [5, 6, 7, 8], "{key}");
    }
}

#[tokio::test]
async fn rows_without_keys_are_taken_where_the_table_says_what_becomes_of_them() {
    for schema in [
        "CREATE TABLE items (id INT PRIMARY KEY DEFAULT (abs(random()) / 2 + 1), name TEXT NOT NULL)",
        "CREATE TABLE items (name TEXT NOT NULL, ID INTEGER PRIMARY KEY)",
        "CREATE VIRTUAL TABLE items USING fts5 (id, name)",
    ] {
        let db = with(&[schema, "INSERT INTO note VALUES (7, 'tea')"]).await;
        let copy = Note::query().select(Note::TEXT).insert_into(Item::NAME);
        assert_eq!(copy.execute(&db).await.unwrap(), 1, "{schema}");
    }
    let db = with(&[
        "CREATE TABLE kept (name TEXT NOT NULL)",
        "CREATE VIEW items AS SELECT rowid AS id, name FROM kept",
        "CREATE TRIGGER into_kept INSTEAD OF INSERT ON items
         BEGIN INSERT INTO kept VALUES (NEW.name); END",
        "INSERT INTO note VALUES (7, 'tea')",
    ])
    .await;
    let copy = Note::query().select(Note::TEXT).insert_into(Item::NAME);
    copy.execute(&db).await.unwrap();
    assert_eq!(items(&db).await, [named(1, "tea")]);
}

/// SQLite knows nothing of the keys that sessions were given.
#[tokio::test]
async fn a_session_whose_key_sqlite_gave_to_another_row_runs_again() {
    let db = with(&["INSERT INTO note VALUES (7, 'tea')"]).await;
    db.create_tables::<Item>().await.unwrap();
    let copy = || Note::query().select(Note::TEXT).insert_into(Item::NAME);
    let beside = db.clone();
    let (attempts, id) = db
        .concurrent(async move |s| {
            let mut ctx = s.context();
            let handle = ctx.add(named(0, "of the session"));
            ctx.save_changes().await?;
            let id = ctx[handle].id;
            drop(ctx);
            if s.attempt() == 1 {
                // On another task: the database is the session's on this one.
                let db = beside.clone();
                let copied = tokio::spawn(async move {
                    Note::query()
                        .select(Note::TEXT)
                        .insert_into(Item::NAME)
                        .execute(&db)
                        .await
                });
                assert_eq!(copied.await.unwrap()?, 1);
            }
            Ok((s.attempt(), id))
        })
        .await
        .unwrap();
    assert_eq!((attempts, id), (2, 2));
    assert_eq!(
        items(&db).await,
        [named(1, "tea"), named(2, "of the session")]
    );

    // Begun by hand, it is told as a conflict, and not as a key that is taken.
    let mut s = db.begin_concurrent(Isolation::Snapshot).await.unwrap();
    let raw: i64 = sqlx::query_scalar(
        "INSERT INTO items (id, name) VALUES (next_id('items'), 'raw') RETURNING id",
    )
    .fetch_one(&mut *s)
    .await
    .unwrap();
    let taken = copy().returning(Item::ID).all(&db).await.unwrap();
    assert_eq!(taken, [raw], "the premise");
    let error = s.commit().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(items(&db).await.len(), 3);
}
